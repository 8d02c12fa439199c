// Farewell: how ranks of several nodes leave MPI together.
//
// A rank that leaves no longer polls the port, and its process closes it. So no rank may leave
// while another one still waits for something of it: a part of a message, an answer, room. Before
// MPI_Finalize ends, all ranks of the world meet in a dissemination barrier of cells (kind::
// farewell), for which each has completed its sends. Ranks of a job on one node don't need that:
// what they have sent stays in the segment.
//
// Invariant: a rank has said `said()` rounds of each farewell; who hears a round for the n-th time
// hears it for the n-th farewell, since each rank says a round once per farewell, in order.
// Thread rule: under the rank's lock.
#pragma once

#include <cstdint>

#include "mpi/message/core.hpp"
#include "mpi/message/kinds.hpp"

namespace warren::message {

class Farewell {
  public:
    explicit Farewell(Core& core) : core_(core) {}

    void register_kinds(KindTable& kinds);
    void arrived(const transport::Arrival& arrival);

    // Begins the next farewell: the number of its rounds.
    std::uint32_t begin();
    // Tells this round's rank; and whether the round's other rank has told this one.
    void say(std::uint32_t round);
    bool heard(std::uint32_t round) const { return heard_[round] >= farewells_; }

  private:
    static constexpr std::uint32_t round_limit = 32;

    Core& core_;
    std::uint32_t farewells_ = 0;
    std::uint32_t heard_[round_limit] = {};
};

} // namespace warren::message
