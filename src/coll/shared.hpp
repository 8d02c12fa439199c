// Shared collectives: small collective operations of a communicator whose ranks are all on one
// node, made in the communicator's collective slot of the node segment instead of by messages.
//
// A slot has a ring of phases; operation number s of the communicator uses phase s mod phases.
// Every rank ARRIVES exactly once in every operation, and no later than it leaves it:
//     at entry, in operations that nobody leaves before all have come (barrier, allreduce);
//     a broadcast's root when it has published, the others when they have read;
//     a reduction's leaves when they have contributed, its root when it has combined.
// Two ways to do it, chosen by the node's load and the communicator's size, the same at all ranks:
//  * flat (a processor for each of few ranks): each rank has a line per phase with its arrival and
//    contribution, and reads the others' lines itself. One cache line's way per operation.
//  * counted (many ranks, or more than processors): contributions in lines, arrivals counted; the
//  last arriver combines
//    and publishes. Each rank is scheduled once per operation, which is the least possible, and
//    does next to nothing; waiters yield first, then sleep, and wake each other as a tree.
//
// Invariants
//  1. A rank that has arrived in s has left all operations before s.
//  2. What operation s writes into its phase was last read in operation s - phases. A writer of
//     data therefore first makes sure that all have arrived in s - phases + 1 (settle). An
//     operation that waits for all gives that knowledge for free. It follows that nobody enters s
//     before all have arrived in s - phases, whatever the operations are.
//  3. Counted: arrivals of phase p, modulo 2^32, are size · (operations of p that are complete)
//  plus those
//     of the one under way. Published numbers of a phase only grow.
//  4. Counted: a waiter's bit is in a bitmap for its operation and what it waits for, "published"
//     or "arrived", and a bit is only taken by who knows that this has happened; so a waiter whose
//     bit was taken finds its condition true, leaves, and wakes the next ones.
//  5. A slot's memory is zero when a communicator gets it: the last member of a communicator that
//     ends clears it.
// Thread rule: one operation at a time per communicator and rank (the standard's rule), under the
// rank's lock, which waits release; ranks are processes or threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "coll/op.hpp"
#include "comm/communicator.hpp"
#include "message/engine.hpp"
#include "node/segment.hpp"

namespace warren::coll {

// Operands up to this size go through the slot.
inline constexpr MPI_Count shared_bytes = 56;

// The most ranks that read each other's lines: beyond, reading is dearer than counting.
inline constexpr int flat_ranks = 8;

class SharedSlot {
  public:
    // For a communicator that has a place (`has_place`).
    SharedSlot(message::Engine& engine, comm::Communicator& communicator);
    static bool has_place(const comm::Communicator& communicator) {
        return communicator.place.slot < comm::CollectivePlace::unknown;
    }
    // The same, after it has been found out: the first member that asks takes a slot for all.
    static bool find_place(message::Engine& engine, comm::Communicator& communicator) {
        if (communicator.place.slot == comm::CollectivePlace::unknown) [[unlikely]] {
            settle_place(engine.rank().segment, communicator);
        }
        return has_place(communicator);
    }

    void barrier();
    // `count` elements of a contiguous type, at most shared_bytes. `in` and `out` may be the same.
    // Combined in the order of ranks.
    void allreduce(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                   const Op& op);
    // `out` only at the root.
    void reduce(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                const Op& op, int root);
    void bcast(void* data, MPI_Count bytes, int root);

    // MPI_Comm_split: the context of the ranks of this colour, 0 when there is none left, and who
    // they are, ordered by key, then rank: none for MPI_UNDEFINED. (shared_split.cpp)
    std::uint32_t split(int colour, int key, std::vector<int>& members);

    // Takes a free slot of the node; CollectivePlace::none when none is free, or memory is out; and
    // gives it back, when all of its members have ended their use.
    static std::uint32_t acquire(const node::Segment& segment);
    static void give_back(const node::Segment& segment, std::uint32_t slot);
    // In a context's entry: there was no slot for it.
    static constexpr std::uint32_t refused = 0xffffffff;

  private:
    struct Line;
    struct SplitLine;

    [[gnu::cold]] static void settle_place(const node::Segment& segment,
                                           comm::Communicator& communicator);
    SplitLine& split_line(std::uint64_t operation, int rank) const;
    void deal_out(std::uint64_t operation);

    // Flat.
    void flat_arrive(std::uint64_t operation);
    void flat_wait(int rank, std::uint64_t operation);
    // Counted.
    bool count_arrival(std::uint64_t operation); // true: as the last
    void publish(std::uint64_t operation);
    void wait_published(std::uint64_t operation);
    void wait_arrived(std::uint64_t operation);
    template <typename Done>
    void wait_counted(std::atomic<std::uint64_t>* waiters, Done done);
    void wake_some(std::atomic<std::uint64_t>* waiters);

    void settle(std::uint64_t operation);
    void combine(void* result, const std::byte* own, std::uint64_t operation, MPI_Count count,
                 const datatype::Datatype& type, const Op& op);
    WaitReason reason() const;

    Line& line(std::uint64_t operation, int rank) const;
    std::byte* phase(std::uint64_t operation) const;
    std::atomic<std::uint32_t>& arrivals(std::uint64_t operation) const;
    Line& published(std::uint64_t operation) const;
    std::atomic<std::uint64_t>* published_waiters(std::uint64_t operation) const;
    std::atomic<std::uint64_t>* arrived_waiters(std::uint64_t operation) const;
    std::uint32_t arrivals_after(std::uint64_t operation) const;

    message::Engine& engine_;
    Rank& node_rank_;
    comm::Communicator& communicator_;
    comm::CollectivePlace& place_;
    std::byte* base_;
    const int rank_;
    const int size_;
    const bool flat_;
};

// One cache line: the data first, for its alignment.
struct SharedSlot::Line {
    std::byte data[shared_bytes];
    std::atomic<std::uint64_t> operation; // 1 + number of the operation that it belongs to
};

// Combines with an operation that may be the program's: it runs without the rank's lock, since it
// may call MPI.
inline void apply_unlocked(Rank& rank, const Op& op, const void* in, void* inout, MPI_Count count,
                           const datatype::Datatype& type) {
    if (op.predefined()) [[likely]] {
        op.apply(in, inout, count, type);
        return;
    }
    rank.lock.unlock();
    op.apply(in, inout, count, type);
    rank.lock.lock();
}

} // namespace warren::coll
