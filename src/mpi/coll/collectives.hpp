// Blocking collective operations. Each takes the path that paths.hpp chooses.
//
// Arguments have been checked. Where the standard has MPI_IN_PLACE, the caller passes the same
// memory as input and output. Thread rule: under the rank's lock; waits release it.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "mpi/coll/blocks.hpp"
#include "mpi/coll/immediate.hpp"
#include "mpi/coll/paths.hpp"
#include "mpi/coll/slot_pool.hpp"
#include "mpi/coll/small_collectives.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/comm/communicator.hpp"
#include "mpi/message/engine.hpp"
#include "mpi/op/op.hpp"

namespace warren::coll {

// A rank's view of one communicator's collectives: two references, made for each call.
class Collectives {
  public:
    Collectives(message::Engine& engine, comm::Communicator& communicator)
        : engine_(engine), communicator_(communicator) {
        slot_pool::find(engine.rank().segment, communicator);
    }

    Error barrier();
    Error bcast(const message::Buffer& buffer, int root);
    // Not of intercommunicators. Blocks of one size; `blocks` at the root only.
    Error gather(const message::Buffer& own, const Blocks& blocks, int root);
    Error scatter(const Blocks& blocks, const message::Buffer& own, int root);
    // `own` has as many bytes as blocks[rank], and may be it. The second: blocks of many sizes.
    Error allgather(const message::Buffer& own, const Blocks& blocks);
    Error allgatherv(const message::Buffer& own, const Blocks& blocks);
    // Blocks of one size. `out` and `in` may be the same.
    Error alltoall(const Blocks& out, const Blocks& in);

    // `out` at the root only.
    Error reduce(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                 const Op& op, int root);
    Error allreduce(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                    const Op& op);
    // Not of intercommunicators. `counts` of elements of the result, by rank.
    Error reduce_scatter(const void* in, void* out, const MPI_Count counts[],
                         const datatype::Datatype& type, const Op& op);
    Error scan(const Reduction& reduction, const void* in, void* out, bool exclusive);

    // Returns success on all ranks or an error on all: this rank's own, or one of another rank's
    // class with the text `others`. After success each of `values`, of which there may be
    // most_agreed, is the largest of all ranks.
    static constexpr std::size_t most_agreed = 6;
    Error agree(Error own, const char* others, std::span<std::int64_t> values = {});

    // This rank can't do its part of an operation: tells the others, in the slot or by messages.
    // `plan`: the operation's steps.
    template <typename Plan>
    Error refuse(Error error, Plan plan) {
        if (slot_pool::has_slot(communicator_)) {
            SmallCollectives(engine_, communicator_).refuse();
            return error;
        }
        Immediate steps(engine_, communicator_);
        steps.refuse(error);
        plan(steps);
        return steps.end();
    }

  private:
    // Whether this is the only rank. An intercommunicator has no slot, and always other ranks.
    bool alone() const {
        if (communicator_.peers() == 1) [[unlikely]] {
            return !communicator_.inter();
        }
        return false;
    }
    template <typename Solid>
    [[gnu::always_inline]] Path choose(Tag operation, MPI_Count bytes, const Solid& solid) const {
        return coll::choose(operation, bytes, engine_.rank(), communicator_, solid);
    }
    // Chooses the path of a reduction. Messages combine operands with gaps where they are.
    [[gnu::always_inline]] Path choose(Tag operation, MPI_Count count,
                                       const datatype::Datatype& type) const {
        return type.contiguous ? choose(operation, count * type.size, [] { return true; })
                               : Path::messages;
    }
    // Does an operation in a staging area, or directly from buffer to buffer, as the path says.
    // `operation`: a function of SharedData or SharedDirect, which returns whether it could. False:
    // nothing has been done, messages do it.
    template <typename Operation>
    bool by_sharing(Path path, Error& outcome, const Operation& operation);
    // An operation of no bytes.
    Error pass(Tag kind, int root = 0, OpKind op = OpKind::null);

    message::Engine& engine_;
    comm::Communicator& communicator_;
};

} // namespace warren::coll
