// Slot member: a rank's view of its communicator and of the communicator's collective slot, made
// for each call. The parts of a call in the slot work on it.
//
// Thread rule: one call at a time per communicator and rank (the standard's rule), under the rank's
// lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/coll/slot_memory.hpp"
#include "mpi/coll/tuning.hpp"
#include "mpi/comm/communicator.hpp"
#include "mpi/message/engine.hpp"

namespace warren::coll {

struct SlotMember {
    // For a communicator that has a slot (slot_pool.hpp).
    SlotMember(message::Engine& of_rank, comm::Communicator& of_slot)
        : SlotMember(of_rank, of_slot, is_flat(of_rank.rank(), of_slot.peers())) {}
    // `flat_slot`: is_flat() of them, for callers that know it.
    SlotMember(message::Engine& of_rank, comm::Communicator& of_slot, bool flat_slot)
        : engine(of_rank),
          node_rank(engine.rank()),
          communicator(of_slot),
          rank(communicator.rank()),
          size(communicator.peers()), // as no intercommunicator has a slot
          flat(flat_slot),
          memory(node_rank.segment.unit(collective_slots, communicator.place.slot),
                 node_rank.size) {}

    // Whether ranks read each other's lines (flat_sync.hpp); otherwise arrivals are counted
    // (counted_sync.hpp). The same at all ranks: the node's load and the number of ranks decide.
    static bool is_flat(const Rank& rank, int ranks) {
        return !rank.oversubscribed() && ranks <= flat_ranks;
    }

    comm::CollectivePlace& place() const { return communicator.place; }
    int next() const { return (rank + 1) % size; }
    int previous() const { return (rank + size - 1) % size; }

    void ring(int other) const { node_rank.ring(communicator.endpoint(other)); }
    void ring_others() const {
        for (int other = 0; other < size; ++other) {
            if (other != rank) {
                ring(other);
            }
        }
    }
    WaitReason wait_reason() const;
    std::atomic<std::uint64_t>* published_waiters(std::uint64_t operation) const {
        return memory.published_waiters(operation, node_rank.size);
    }
    std::atomic<std::uint64_t>* arrived_waiters(std::uint64_t operation) const {
        return memory.arrived_waiters(operation, node_rank.size);
    }

    message::Engine& engine;
    Rank& node_rank;
    comm::Communicator& communicator;
    const int rank;
    const int size;
    const bool flat;
    const SlotMemory memory;
};

} // namespace warren::coll
