// Bounce buffers: where large messages of a pair with a box pass through the node segment.
//
// The sender copies a message into one of its buffers frame by frame and publishes how far it has
// come; the receiver copies out all that is there, so both work at once. Measured on two cores,
// this beats a single copy by the kernel at every size: the kernel's copy is serial and pays per
// page. What makes it fast is that buffers go round: the receiver keeps the buffer that it has just
// read and uses it for its own next large send, whose lines are then in its cache already.
//
// Every rank owns a few buffers. A buffer is on its owner's stack, under way, kept by another rank,
// or returned (a bit of the owner's slot) and not yet looked at by the owner.
// Invariants
//  1. All but kept_reserve of a rank's committed buffers may be kept by others (the owner
//     grants it with each send): the rest come back as soon as their receiver has read them, so an
//     owner never starves because idle ranks keep what it needs.
//  2. A rank keeps at most one buffer of others.
//  3. A buffer is committed before its first use, on the owner's demand.
// Thread rule: under the rank's lock; returned bits are set by any rank.
#pragma once

#include <cstdint>

#include "node/segment.hpp"
#include "rank/rank.hpp"

namespace warren::transport {

// A buffer of the node, and whether its receiver may keep it.
struct Bounce {
    std::uint32_t number = 0;
    bool may_be_kept = false;
};

class BounceStock {
  public:
    explicit BounceStock(Rank& rank);

    // Whether there are such buffers at all: not when ranks share processors, nor without memory.
    bool available() const { return committed_ != 0 || can_commit_; }

    // Takes a buffer for a send. False when all are under way.
    bool take(Bounce& bounce);

    // After the data has been read: keeps the buffer or gives it back.
    void drop(const Bounce& bounce);

    // Has the rank's doorbell rung when a buffer comes back. False: one has come back already, and
    // nobody may ring for it.
    bool ask_for_return();

    std::byte* memory(std::uint32_t number) const {
        return rank_.segment.at(rank_.header().bounces_offset) +
               std::uint64_t{number} * node::bounce_stride_bytes;
    }

    // Own buffers that are out, under way or kept by a receiver: many when receivers are behind.
    std::uint32_t outstanding() const { return committed_ - on_stack_; }

  private:
    // The bit of a slot's bounces_returned that says: ring me.
    static constexpr std::uint32_t wanted_bit = std::uint32_t{1} << 31;
    static constexpr std::uint32_t kept_reserve = 2;

    bool commit_one();
    void collect();
    void push_own(std::uint32_t number);
    void give_back(std::uint32_t number);
    std::uint32_t owner(std::uint32_t number) const { return number / node::bounce_buffers; }

    Rank& rank_;
    bool can_commit_;
    bool keeping_ = false;
    Bounce kept_;
    std::uint32_t committed_ = 0; // own buffers with memory: the first so many
    std::uint32_t on_stack_ = 0;
    std::uint32_t stack_[node::bounce_buffers];
    std::uint32_t granted_ = 0; // own buffers that others may keep: a bit for each
};

} // namespace warren::transport
