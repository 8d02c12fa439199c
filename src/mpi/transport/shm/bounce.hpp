// Bounce buffers: where large messages of a pair with a pair ring pass through the node segment.
//
// The sender copies a message into one of its buffers frame by frame and publishes its progress;
// the receiver copies out all that is published, so both work at once. For blocks that the sender
// has just written this is mostly faster than a single copy by the kernel, which reads them from
// the other core line by line and pays per page. The receiver keeps the buffer that it has just
// read, whose lines are in its cache, and uses it for its own next large send. This circulation of
// buffers makes the method fast.
//
// Every rank owns a few buffers. A buffer is on its owner's stack, under way, kept by another rank,
// or returned (a bit of the owner's slot) and not yet looked at by the owner.
// Invariants
//  1. All but kept_reserve of a rank's committed buffers may be kept by others (the owner
//     grants it with each send): the rest come back as soon as their receiver has read them, so an
//     owner never starves because idle ranks keep what it needs.
//  2. A rank keeps at most one buffer of others.
//  3. A buffer is committed before its first use, on the owner's demand.
//  4. A block and its BouncePlace lie within the buffer's stride.
// Thread rule: under the rank's lock; returned bits are set by any rank.
#pragma once

#include <cstdint>

#include "base/invariant.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/rank/rank.hpp"
#include "mpi/transport/shm/tuning.hpp"

namespace warren::transport {

// A buffer of the node, and whether its receiver may keep it.
struct Bounce {
    std::uint32_t number = 0;
    bool may_be_kept = false;
};

// BouncePlace: position of a block in a bounce buffer, as packed into its cell.
//
// `shift` gives a block the same alignment within its cache line as in the sender's memory, and
// probably in the receiver's.
//
// A receiver that keeps up finds every block at the buffer's beginning, in lines that both caches
// hold. If the receiver is behind, blocks rotate through the whole buffer (`turn`). Otherwise a few
// blocks would reuse lines that are still in the nearer caches of both cores, and such lines are
// the slowest for another core to read or to write again. On two cores that share only the last
// cache, blocks of 8 to 128 KiB that rotate move 1.5 to 2 times as fast.
struct BouncePlace {
    std::uint32_t number = 0; // of the buffer
    std::uint32_t turn = 0;   // below `turns`
    std::uint32_t shift = 0;  // below a line

    static constexpr std::uint32_t shift_bits = 6;
    static constexpr std::uint32_t turn_bits = 5;
    static constexpr std::uint32_t turn_bytes = 8192;
    static constexpr std::uint32_t turns = bounce_bytes / turn_bytes;

    static std::uint32_t shift_of(const void* data) {
        return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data)) &
               ((1U << shift_bits) - 1);
    }
    std::size_t offset() const { return std::size_t{turn} * turn_bytes + shift; }
    std::uint32_t packed() const { return (number << turn_bits | turn) << shift_bits | shift; }
    static BouncePlace unpacked(std::uint32_t packed) {
        return {.number = packed >> (turn_bits + shift_bits),
                .turn = packed >> shift_bits & ((1U << turn_bits) - 1),
                .shift = packed & ((1U << shift_bits) - 1)};
    }
};
static_assert(1U << BouncePlace::shift_bits == node::cache_line_bytes);
static_assert(BouncePlace::turns <= 1U << BouncePlace::turn_bits);
static_assert(std::uint64_t{node::rank_limit} * bounce_buffers
                  << (BouncePlace::turn_bits + BouncePlace::shift_bits) <=
              std::uint64_t{1} << 32);
static_assert(bounce_bytes + node::cache_line_bytes <= bounce_stride_bytes);

class BounceStock {
  public:
    explicit BounceStock(Rank& rank);

    // Whether the rank has bounce buffers: not when ranks share processors, nor without memory.
    bool available() const { return committed_ != 0 || can_commit_; }

    // Takes a buffer for a send. False when all are under way.
    bool take(Bounce& bounce);

    // After the data has been read: keeps the buffer or gives it back.
    void drop(const Bounce& bounce);

    // Requests a ring of this rank's doorbell when a buffer comes back. False: one has come back
    // already, and nobody may ring for it.
    bool ask_for_return();

    std::byte* memory(std::uint32_t number) const {
        return rank_.segment.at(bounces) + std::uint64_t{number} * bounce_stride_bytes;
    }

    // The turn of a block that follows the last rotating block in its buffer.
    std::uint32_t next_turn(std::uint32_t number, std::size_t bytes) {
        const auto length = static_cast<std::uint32_t>((bytes + BouncePlace::turn_bytes - 1) /
                                                       BouncePlace::turn_bytes);
        // A buffer that another rank owns shares the entry of one of this rank's.
        std::uint32_t& next = next_turns_[number % bounce_buffers];
        const std::uint32_t turn = next + length <= BouncePlace::turns ? next : 0;
        next = turn + length;
        WARREN_INVARIANT(next <= BouncePlace::turns, "bounce 4: a block lies within its buffer");
        return turn;
    }

  private:
    // The bit of bounces_returned that asks for a ring.
    static constexpr std::uint32_t wanted_bit = std::uint32_t{1} << 31;
    static constexpr std::uint32_t kept_reserve = 2;

    bool commit_one();
    void collect();
    void push_own(std::uint32_t number);
    void give_back(std::uint32_t number);
    std::uint32_t owner(std::uint32_t number) const { return number / bounce_buffers; }

    Rank& rank_;
    bool can_commit_;
    bool keeping_ = false;
    Bounce kept_;
    std::uint32_t committed_ = 0; // own buffers with memory: the first so many
    std::uint32_t on_stack_ = 0;
    std::uint32_t stack_[bounce_buffers];
    std::uint32_t next_turns_[bounce_buffers] = {};
    std::uint32_t granted_ = 0; // own buffers that others may keep: a bit for each
};

} // namespace warren::transport
