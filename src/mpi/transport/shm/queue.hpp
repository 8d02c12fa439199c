// Queue: carries cells from any rank of the node to one receiver. Each rank has one from the start.
//
// It is a ring of cells in the node segment. A sender claims the tail by compare-and-swap when
// there is space, fills the cell and publishes it; the receiver takes the cells in order of their
// claims. Data that does not fit a cell goes into one of the sender's chunks, which the receiver
// gives back.
//
// Invariants
//  1. Position p (counted without end, modulo 2^32) uses cell p mod queue_cells. Its sequence is
//     p + 1 from its publication until the cell is published again a lap later.
//  2. consumed ≤ tail ≤ consumed + queue_cells: a claimed cell is never one that the receiver has
//     yet to read.
//  3. A chunk is free while its word is 0, else it is the receiver's rank + 1. Only its owner sets
//     the word, only that receiver clears it.
// Cells from one sender arrive in the order of its sends.
// Thread rule: any number of senders, each under its own rank's lock; one receiver, under its lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/invariant.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/transport/shm/cell.hpp"
#include "mpi/transport/shm/segment_regions.hpp"

namespace warren::transport {

struct Chunk {
    alignas(node::cache_line_bytes) std::atomic<std::uint32_t> busy;
    alignas(node::cache_line_bytes) std::byte data[chunk_bytes - node::cache_line_bytes];
};
static_assert(sizeof(Chunk) == chunk_bytes);
inline constexpr std::size_t chunk_data_bytes = sizeof(Chunk::data);

inline Cell* queue_of(const node::Segment& segment, std::uint32_t rank) {
    return segment.at(queues) + std::uint64_t{rank} * queue_cells;
}

// The sender's view of another rank's queue.
class QueueSender {
  public:
    QueueSender(const node::Segment& segment, std::uint32_t receiver)
        : cells_(queue_of(segment, receiver)), slot_(&segment.slot(receiver)) {}
    // The queue of a rank of another node, as it were: always full. `wall`: a full slot.
    explicit QueueSender(node::RankSlot& wall) : cells_(nullptr), slot_(&wall) {}
    static void make_wall(node::RankSlot& slot) {
        queue_ends_of(slot).tail.store(queue_cells, std::memory_order_relaxed);
    }

    // Claims a cell. Null when the queue is full.
    Cell* claim(std::uint32_t& position) {
        std::uint32_t tail = ends().tail.load(std::memory_order_relaxed);
        do {
            // Acquire pairs with the release in pop(): the receiver has read the cell's last
            // contents before they are overwritten. The signed comparison also refuses a tail that
            // was read before others moved on; the compare-and-swap would fail anyway.
            const std::uint32_t used = tail - ends().consumed.load(std::memory_order_acquire);
            if (static_cast<std::int32_t>(used) >= static_cast<std::int32_t>(queue_cells)) {
                return nullptr;
            }
        } while (!ends().tail.compare_exchange_weak(tail, tail + 1, std::memory_order_relaxed));
        position = tail;
        return &cells_[tail % queue_cells];
    }

    // Room for one more, at this moment.
    bool has_space() const {
        return ends().tail.load(std::memory_order_relaxed) -
                   ends().consumed.load(std::memory_order_relaxed) <
               queue_cells;
    }

    // The receiver's.
    std::atomic<std::uint32_t>& doorbell() const { return slot_->doorbell; }

    static void publish(Cell& cell, std::uint32_t position) {
        WARREN_INVARIANT(cell.sequence.load(std::memory_order_relaxed) != position + 1,
                         "queue 1: a position is published once");
        cell.sequence.store(position + 1, std::memory_order_release);
    }

  private:
    QueueEnds& ends() const { return queue_ends_of(*slot_); }

    Cell* cells_;
    node::RankSlot* slot_;
};

// The receiver's view of its own queue.
class QueueReceiver {
  public:
    QueueReceiver(const node::Segment& segment, std::uint32_t receiver)
        : cells_(queue_of(segment, receiver)),
          ends_(&queue_ends_of(segment.slot(receiver))),
          position_(ends_->consumed.load(std::memory_order_relaxed)) {}

    // The next cell, or null when none has been published.
    Cell* peek() const {
        Cell& cell = cells_[position_ % queue_cells];
        return cell.sequence.load(std::memory_order_acquire) == position_ + 1 ? &cell : nullptr;
    }

    // Whether a sender has claimed a cell that peek() doesn't find yet. It reads the rank's slot:
    // slots of a node are adjacent lines, where each rank's cells are in pages of their own.
    bool claimed() const { return ends_->tail.load(std::memory_order_acquire) != position_; }

    // The position after the last claimed cell; and whether all before a position has been popped.
    std::uint32_t end() const { return ends_->tail.load(std::memory_order_relaxed); }
    bool is_past(std::uint32_t end) const {
        return static_cast<std::int32_t>(position_ - end) >= 0;
    }

    // Gives the cell of peek() back to the senders.
    void pop() {
        WARREN_INVARIANT(cells_[position_ % queue_cells].sequence.load(std::memory_order_relaxed) ==
                             position_ + 1,
                         "queue 1: the cell that is taken has its position's sequence");
        WARREN_INVARIANT(ends_->tail.load(std::memory_order_relaxed) - position_ - 1 < queue_cells,
                         "queue 2: consumed <= tail <= consumed + queue_cells");
        ends_->consumed.store(++position_, std::memory_order_release);
    }

  private:
    Cell* cells_;
    QueueEnds* ends_;
    std::uint32_t position_;
};

} // namespace warren::transport
