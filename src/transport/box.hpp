// Box: the private road of a pair of ranks that talk: one sender, one receiver, no atomic
// read-modify-write, and one cache line for a short message.
//
// A ring of cells, and a ring of bytes for data that does not fit a cell. The sender counts what it
// has written, the receiver what it has read; the sender looks at the receiver's count only when
// its own copy of it says that there is no room.
//
// Invariants
//  1. Position p uses cell p mod box_cells; its sequence is p + 1 once it is published.
//  2. cells: consumed ≤ written ≤ consumed + box_cells; bytes: likewise with box_ring_bytes.
//  3. The data of a cell is one piece of the ring: what does not fit before the ring's end starts
//     at its beginning, and the bytes left out count as written.
// Thread rule: one sender and one receiver, each under its own rank's lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "node/segment.hpp"
#include "transport/cell.hpp"
#include "transport/joint_copy.hpp"

namespace warren::transport {

// The largest block of the ring. Up to ring_preferred_limit its sender has the lines back before it
// needs them (prefetch_ring); larger blocks are faster in frames through a bounce buffer, whose
// lines go back and forth between the two caches. The ring takes more where there are none.
inline constexpr std::size_t ring_block_limit = 4096;
inline constexpr std::size_t ring_preferred_limit = 2048;

struct Box {
    // Stored by the receiver, read by the sender.
    struct alignas(node::cache_line_bytes) Consumed {
        std::atomic<std::uint64_t> bytes;
        std::atomic<std::uint32_t> cells;
    };

    Consumed consumed;
    JointCopy joint_copy; // of what the receiver fetches from the sender
    // A word of the receiver's message room for the sender's; seldom stored, read with each large
    // message.
    alignas(node::cache_line_bytes) std::atomic<std::uint32_t> advice;
    // A word of the sender's message room for the receiver's: whether the sender waits for all that
    // it has offered. Stored when it begins to, and with the next offer that isn't waited for; read
    // with each offer.
    alignas(node::cache_line_bytes) std::atomic<std::uint32_t> awaits;
    alignas(4096) Cell cells[node::box_cells];
    alignas(4096) std::byte ring[node::box_ring_bytes];

    static Box* at(const node::Segment& segment, std::uint32_t number) {
        return reinterpret_cast<Box*>(segment.at(segment.header().boxes_offset) +
                                      std::uint64_t{number} * node::box_bytes);
    }
};
static_assert(sizeof(Box) == node::box_bytes);

// How many cells ahead either side asks for a line: what it takes to come, in messages.
inline constexpr std::uint32_t cells_ahead = 8;

inline void prefetch_for_write(const void* line) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
    __builtin_prefetch(line, 1);
#endif
}

class BoxSender {
  public:
    BoxSender() = default;
    explicit BoxSender(Box* box) : box_(box) {}

    explicit operator bool() const { return box_ != nullptr; }

    // The next cell, or null when the receiver is a whole ring behind.
    Cell* claim() {
        if (written_ - consumed_ >= node::box_cells) [[unlikely]] {
            // Acquire pairs with the receiver's release: it has read the cell's last contents.
            consumed_ = box_->consumed.cells.load(std::memory_order_acquire);
            if (written_ - consumed_ >= node::box_cells) {
                return nullptr;
            }
        }
        return &box_->cells[written_ % node::box_cells];
    }

    void publish(Cell& cell) {
        cell.sequence.store(++written_, std::memory_order_release);
        // The receiver still has the line from a lap ago: have it back by the time that it is due.
        prefetch_for_write(&box_->cells[(written_ + cells_ahead) % node::box_cells]);
    }

    // Room for `bytes` (≤ ring_block_limit) of data in one piece, or null when there is none now.
    // Nothing is taken until commit_ring(reference).
    std::byte* claim_ring(std::uint32_t bytes, BlockReference& reference) {
        const std::uint64_t offset = ring_written_ % node::box_ring_bytes;
        const std::uint64_t to_end = node::box_ring_bytes - offset;
        const std::uint64_t start = bytes <= to_end ? ring_written_ : ring_written_ + to_end;
        constexpr std::uint64_t line = node::cache_line_bytes;
        const std::uint64_t end = start + ((bytes + line - 1) & ~(line - 1));
        if (end - ring_consumed_ > node::box_ring_bytes) {
            ring_consumed_ = box_->consumed.bytes.load(std::memory_order_acquire);
            if (end - ring_consumed_ > node::box_ring_bytes) {
                return nullptr;
            }
        }
        reference.bytes = bytes;
        reference.position = static_cast<std::uint32_t>(start % node::box_ring_bytes);
        reference.mark = end;
        return box_->ring + reference.position;
    }

    void commit_ring(const BlockReference& reference) { ring_written_ = reference.mark; }

    // Has the lines of the next block, if it is as long, back from the receiver, who has read them
    // a round ago: while this rank waits for an answer it has the time.
    void prefetch_ring(std::size_t bytes) const {
        if (ring_written_ + 2 * bytes - ring_consumed_ > node::box_ring_bytes) {
            return; // they may hold what is still to be read
        }
        const std::size_t begin = ring_written_ % node::box_ring_bytes;
        const std::size_t to_end = node::box_ring_bytes - begin;
        std::byte* next = box_->ring + (bytes <= to_end ? begin : 0);
        for (std::size_t offset = 0; offset < bytes; offset += node::cache_line_bytes) {
            prefetch_for_write(next + offset);
        }
    }

    JointCopy& joint_copy() const { return box_->joint_copy; }
    std::uint32_t advice() const { return box_->advice.load(std::memory_order_relaxed); }
    void set_awaits(bool value) const {
        box_->awaits.store(value ? 1 : 0, std::memory_order_relaxed);
    }

  private:
    Box* box_ = nullptr;
    std::uint32_t written_ = 0;
    std::uint32_t consumed_ = 0; // as last seen
    std::uint64_t ring_written_ = 0;
    std::uint64_t ring_consumed_ = 0; // as last seen
};

class BoxReceiver {
  public:
    BoxReceiver(Box* box, std::uint32_t sender) : box_(box), next_(box->cells), sender_(sender) {}

    std::uint32_t sender() const { return sender_; }
    std::uint32_t read() const { return read_; } // cells, modulo 2^32

    Cell* peek() const {
        return next_->sequence.load(std::memory_order_acquire) == read_ + 1 ? next_ : nullptr;
    }

    void pop() {
        ++read_;
        next_ = &box_->cells[read_ % node::box_cells];
        box_->consumed.cells.store(read_, std::memory_order_release);
    }

    // Bytes of the block in peek()'s cell that have been handed over already.
    std::uint64_t handed = 0;

    // For a receiver that is behind: cells that are surely, or probably, there already. (A cell
    // that is not written yet should be left to the sender's cache.)
    void prefetch() const {
        __builtin_prefetch(&box_->cells[(read_ + cells_ahead) % node::box_cells]);
    }

    const std::byte* ring(std::uint32_t position) const { return box_->ring + position; }
    void release_ring(std::uint64_t end) {
        box_->consumed.bytes.store(end, std::memory_order_release);
    }

    JointCopy& joint_copy() const { return box_->joint_copy; }
    std::atomic<std::uint32_t>& advice() const { return box_->advice; }
    bool awaits() const { return box_->awaits.load(std::memory_order_relaxed) != 0; }

  private:
    Box* box_;
    Cell* next_;
    std::uint32_t read_ = 0;
    std::uint32_t sender_;
};

} // namespace warren::transport
