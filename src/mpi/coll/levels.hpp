// Levels: how the ranks of a communicator on several nodes work together: those of each node in a
// communicator of theirs, by shared memory, and the first rank of each node, the leaders, in
// another, by messages. Data crosses between two nodes once, however many ranks they have.
//
// They are made at a communicator's levels_from-th operation that can use them, since many
// communicators have few. Operations that don't commute, and all others, are of messages only.
// After an error in one level a rank tells those of the next, in the way of Collectives::refuse.
// Thread rule: under the rank's lock; waits release it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/comm/communicator.hpp"
#include "mpi/message/engine.hpp"

namespace warren::coll {

struct Levels {
    std::unique_ptr<comm::Communicator> node;    // null: no other rank is on this node
    std::unique_ptr<comm::Communicator> leaders; // null: this rank is none
    std::vector<std::uint32_t> nodes;            // of the leaders, by their ranks
    std::vector<int> here;                       // ranks on this node
    int own = 0;                                 // this node's leader, as a rank of the leaders
};

// For a communicator that has no collective slot; null: it does without levels.
Levels* find_levels(message::Engine& engine, comm::Communicator& communicator);
// Before the communicator ends.
void end_levels(Rank& rank, comm::Communicator& communicator);

class TwoLevels {
  public:
    TwoLevels(message::Engine& engine, const comm::Communicator& communicator, Levels& levels)
        : engine_(engine), communicator_(communicator), levels_(levels) {}

    Error barrier();
    Error bcast(const Buffer& buffer, int root);
    // The operations commute.
    Error reduce(const Reduction& reduction, const void* in, void* out, int root);
    Error allreduce(const Reduction& reduction, const void* in, void* out);

  private:
    // A node's leader, as a rank of the leaders.
    int leader_of(int rank) const;
    int place_here(int rank) const;
    // Does an operation in one level, or if there is an error already, tells its other ranks.
    template <typename Operation, typename Plan>
    Error go_on(Error before, comm::Communicator& level, Operation operation, Plan plan);
    Error bcast_on_node(Error before, const Buffer& buffer, int root);

    message::Engine& engine_;
    const comm::Communicator& communicator_;
    Levels& levels_;
};

} // namespace warren::coll
