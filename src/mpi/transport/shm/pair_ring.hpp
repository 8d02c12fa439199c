// PairRing: carries messages from one rank to one other of its node. It has one sender and one
// receiver, needs no atomic read-modify-write, and moves a short message in one cache line.
//
// It is a ring of cells and a ring of bytes for data that does not fit a cell. The sender counts
// what it has written, the receiver what it has read. Each cell that the receiver sends in the
// opposite direction carries its count of cells read, so that this knowledge costs no transfer. The
// sender reads the receiver's own count only when the acknowledged one leaves no space.
//
// Two ranks that answer each other have one message under way at a time. The sender then knows that
// all earlier cells were read, and starts again at the beginning of both rings. The same few lines
// stay in the nearest caches of both ranks, which takes a third off the round trip of 1 KiB. The
// sender doesn't prefetch lines in this case: a waiting receiver polls its own copy of the next
// cell, so a line fetched early would have to be fetched again. A sender of several messages in a
// row prefetches lines ahead.
//
// Invariants
//  1. The cell of position p has the sequence p + 1 once it is published, and says where that of
//     p + 1 is: behind it, or at the beginning if all before p had been read. In the second case
//     the sender goes round the cell of p once, so that it has been read before it is used again.
//  2. cells: consumed ≤ written ≤ consumed + pair_ring_cells - 1; bytes: consumed ≤ written ≤
//     consumed + pair_ring_data_bytes.
//  3. The data of a cell is one piece of the ring: what does not fit before the ring's end starts
//     at its beginning, and the bytes left out count as written.
//  4. Each cell is written at least once in 2^20 + 3 · pair_ring_cells positions, so an old
//     sequence is never taken for a new one after 2^32.
//  5. A cell acknowledges a count modulo 2^16. The sender trusts it only if the cell was published
//     at most 2^15 + pair_ring_cells positions ago, so that 16 bits identify the count. A cell that
//     is taken after pair_ring_cells or more others was not yet there when the first of them was
//     taken; the sender notes this every 2^14 positions (epoch_). A rank that has not accepted the
//     opposite pair ring yet doesn't learn. If it starts to after more than 2^14 positions, all
//     cells present then may be too old, and are ignored.
// Thread rule: one sender and one receiver, each under its own rank's lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/invariant.hpp"
#include "base/page.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/transport/shm/cell.hpp"
#include "mpi/transport/shm/joint_copy.hpp"
#include "mpi/transport/shm/tuning.hpp"

namespace warren::transport {

struct PairRing {
    // Stored by the receiver, read by the sender.
    struct alignas(node::cache_line_bytes) Consumed {
        std::atomic<std::uint64_t> bytes;
        std::atomic<std::uint32_t> cells;
    };

    Consumed consumed;
    JointCopy joint_copy; // of what the receiver fetches from the sender
    // Written by the receiver's message room, seldom; read by the sender's with each large message
    // (message::Advice).
    alignas(node::cache_line_bytes) std::atomic<std::uint32_t> advice;
    // Written by the sender's message room: 1 while the sender waits for all that it has offered.
    // It is stored when that wait begins and with the next offer that isn't waited for. The
    // receiver's message room reads it with each offer.
    alignas(node::cache_line_bytes) std::atomic<std::uint32_t> awaits;
    alignas(page_bytes) Cell cells[pair_ring_cells];
    alignas(page_bytes) std::byte ring[pair_ring_data_bytes];

    static PairRing* at(const node::Segment& segment, std::uint32_t number) {
        return segment.at(pair_rings) + number;
    }
};
static_assert(sizeof(PairRing) == pair_ring_bytes);

inline void prefetch_for_write(const void* line) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
    __builtin_prefetch(line, 1);
#endif
}

class PairRingSender {
  public:
    PairRingSender() = default;
    explicit PairRingSender(PairRing* pair_ring) : pair_ring_(pair_ring) {}

    explicit operator bool() const { return pair_ring_ != nullptr; }

    // Takes the acknowledgement of the last cell that this rank has popped from the opposite pair
    // ring: the receiver had read `acknowledged` cells, modulo 2^16. That cell was number `heard`.
    // Invariant 5.
    void learn(std::uint16_t acknowledged, std::uint32_t heard) {
        const std::uint32_t since = written_ - epoch_;
        if (since >= epoch_positions) [[unlikely]] {
            epoch_ = written_;
            // If it is overdue, nothing came back until now.
            trusted_from_ = since == epoch_positions ? trusted_next_ : heard + pair_ring_cells;
            trusted_next_ = heard + pair_ring_cells;
        }
        if (static_cast<std::int32_t>(heard - trusted_from_) < 0) {
            return;
        }
        // A count of cells that are not under way is older than what is known already.
        const auto further = static_cast<std::uint16_t>(acknowledged - consumed_);
        if (further <= written_ - consumed_) {
            consumed_ += further;
        }
    }

    // The next cell, or null when the receiver is a whole ring behind.
    Cell* claim() {
        if (written_ - consumed_ >= pair_ring_cells_at_once) [[unlikely]] {
            // Acquire pairs with the receiver's release: it has read the cell's last contents.
            consumed_ = pair_ring_->consumed.cells.load(std::memory_order_acquire);
            if (written_ - consumed_ >= pair_ring_cells_at_once) {
                return nullptr;
            }
        }
        WARREN_INVARIANT(index_ < pair_ring_cells && index_ != go_round_,
                         "pair ring 1: the next cell is in the ring and not the one to go round");
        return &pair_ring_->cells[index_];
    }

    void publish(Cell& cell) {
        WARREN_INVARIANT(written_ - consumed_ < pair_ring_cells_at_once,
                         "pair ring 2: consumed <= written <= consumed + pair_ring_cells - 1");
        // True only if known: then the receiver has finished with both rings.
        alone_ = consumed_ == written_;
        std::uint32_t next = (index_ + 1) % pair_ring_cells;
        if (alone_) {
            go_round_ = pair_ring_cells; // read, like all before this one
            if (index_ >= hot_cells - 1 && written_ % laps_period >= lap_positions) {
                go_round_ = index_;
                next = 0;
            }
        } else if (next == go_round_) [[unlikely]] {
            go_round_ = pair_ring_cells;
            next = (next + 1) % pair_ring_cells;
        }
        cell.turn.next = static_cast<std::uint16_t>(next);
        index_ = next;
        cell.sequence.store(++written_, std::memory_order_release);
        if (!alone_) {
            // The receiver's cache holds the line since the last lap: prefetch it.
            prefetch_for_write(&pair_ring_->cells[(next + cells_ahead) % pair_ring_cells]);
        }
    }

    // Room for `bytes` (≤ ring_block_limit) of data in one piece, or null when there is none now.
    // Nothing is taken until commit_ring(reference).
    std::byte* claim_ring(std::uint32_t bytes, BlockReference& reference) {
        if (consumed_ == written_) {
            ring_consumed_ = ring_written_; // the data of cells that were read
        }
        const std::uint64_t start = next_start(bytes, consumed_ == written_);
        constexpr std::uint64_t line = node::cache_line_bytes;
        const std::uint64_t end = start + ((bytes + line - 1) & ~(line - 1));
        if (end - ring_consumed_ > pair_ring_data_bytes) {
            ring_consumed_ = pair_ring_->consumed.bytes.load(std::memory_order_acquire);
            if (end - ring_consumed_ > pair_ring_data_bytes) {
                return nullptr;
            }
        }
        reference.bytes = bytes;
        reference.position = static_cast<std::uint32_t>(start % pair_ring_data_bytes);
        reference.mark = end;
        WARREN_INVARIANT(reference.position + bytes <= pair_ring_data_bytes,
                         "pair ring 3: a cell's data is one piece of the ring");
        return pair_ring_->ring + reference.position;
    }

    void commit_ring(const BlockReference& reference) {
        WARREN_INVARIANT(reference.mark >= ring_written_ &&
                             reference.mark - ring_consumed_ <= pair_ring_data_bytes,
                         "pair ring 2: bytes: consumed <= written <= consumed + the ring");
        ring_written_ = reference.mark;
    }

    // Prefetches the lines of the next block, if it has this size too, out of the receiver's cache.
    // Called while this rank waits for an answer.
    void prefetch_ring(std::size_t bytes) const {
        if (alone_ ? bytes > ring_preferred_limit
                   : ring_written_ + 2 * bytes - ring_consumed_ > pair_ring_data_bytes) {
            return; // they may hold what is still to be read
        }
        std::byte* next = pair_ring_->ring + next_start(bytes, alone_) % pair_ring_data_bytes;
        for (std::size_t offset = 0; offset < bytes; offset += node::cache_line_bytes) {
            prefetch_for_write(next + offset);
        }
    }

    JointCopy& joint_copy() const { return pair_ring_->joint_copy; }
    std::uint32_t advice() const { return pair_ring_->advice.load(std::memory_order_relaxed); }
    void set_awaits(bool value) const {
        pair_ring_->awaits.store(value ? 1 : 0, std::memory_order_relaxed);
    }

  private:
    // One cell fewer than exist: a lap may leave one cell out (invariant 1).
    static constexpr std::uint32_t pair_ring_cells_at_once = pair_ring_cells - 1;
    // Every laps_period positions, lap_positions of them use the cells in order (invariant 4).
    static constexpr std::uint32_t laps_period = std::uint32_t{1} << 20;
    static constexpr std::uint32_t lap_positions = 2 * pair_ring_cells;
    static constexpr std::uint32_t epoch_positions = std::uint32_t{1} << 14;

    // Start of the next block. `back`: at the ring's beginning if hot_ring_bytes are used.
    std::uint64_t next_start(std::size_t bytes, bool back) const {
        const std::uint64_t offset = ring_written_ % pair_ring_data_bytes;
        const std::uint64_t to_end = pair_ring_data_bytes - offset;
        const bool goes_on = bytes <= to_end && !(back && offset >= hot_ring_bytes);
        return goes_on ? ring_written_ : ring_written_ + to_end;
    }

    PairRing* pair_ring_ = nullptr;
    std::uint32_t index_ = 0;                  // of the next cell
    std::uint32_t go_round_ = pair_ring_cells; // this cell once; pair_ring_cells: none
    std::uint32_t written_ = 0;
    std::uint32_t consumed_ = 0;     // as last seen
    bool alone_ = false;             // all before the last cell were read when it was published
    std::uint32_t epoch_ = 0;        // where it was last noted how many cells were taken
    std::uint32_t trusted_from_ = 0; // by what was noted the time before
    std::uint32_t trusted_next_ = 0;
    std::uint64_t ring_written_ = 0;
    std::uint64_t ring_consumed_ = 0; // as last seen
};

class PairRingReceiver {
  public:
    PairRingReceiver(PairRing* pair_ring, std::uint32_t sender)
        : pair_ring_(pair_ring), next_(pair_ring->cells), sender_(sender) {}

    std::uint32_t sender() const { return sender_; }
    std::uint32_t read() const { return read_; } // cells, modulo 2^32

    Cell* peek() const {
        return next_->sequence.load(std::memory_order_acquire) == read_ + 1 ? next_ : nullptr;
    }

    // Cells of the opposite pair ring that the sender had read when it published the last cell.
    std::uint16_t acknowledged() const { return acknowledged_; }

    void pop() {
        WARREN_INVARIANT(next_->sequence.load(std::memory_order_relaxed) == read_ + 1,
                         "pair ring 1: the cell that is taken has its position's sequence");
        ++read_;
        acknowledged_ = next_->turn.acknowledged;
        next_ = &pair_ring_->cells[next_->turn.next % pair_ring_cells];
        pair_ring_->consumed.cells.store(read_, std::memory_order_release);
    }

    // Bytes of the block in peek()'s cell that have been handed over already.
    std::uint64_t handed = 0;

    // For a receiver that is behind: prefetches a cell that is probably written already. (A cell
    // that is not should stay in the sender's cache.)
    void prefetch() const {
        const auto index = static_cast<std::size_t>(next_ - pair_ring_->cells);
        __builtin_prefetch(&pair_ring_->cells[(index + cells_ahead) % pair_ring_cells]);
    }

    const std::byte* ring(std::uint32_t position) const { return pair_ring_->ring + position; }
    // Position of the next block if the two ranks go on answering each other.
    std::uint32_t expected_position() const { return expected_; }
    void release_ring(std::uint64_t end) {
        const auto offset = static_cast<std::uint32_t>(end % pair_ring_data_bytes);
        expected_ = offset >= hot_ring_bytes ? 0 : offset;
        pair_ring_->consumed.bytes.store(end, std::memory_order_release);
    }

    JointCopy& joint_copy() const { return pair_ring_->joint_copy; }
    std::atomic<std::uint32_t>& advice() const { return pair_ring_->advice; }
    bool awaits() const { return pair_ring_->awaits.load(std::memory_order_relaxed) != 0; }

  private:
    PairRing* pair_ring_;
    Cell* next_;
    std::uint32_t read_ = 0;
    std::uint32_t sender_;
    std::uint32_t expected_ = 0;
    std::uint16_t acknowledged_ = 0;
};

} // namespace warren::transport
