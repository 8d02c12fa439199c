// JointCopy: how two processes share the work of one large copy, from the sender's memory straight
// into the receiver's.
//
// The kernel copies between processes on one core. So the receiver of a fetched message divides it
// into blocks and copies them from the front. A sender that is in an MPI call meanwhile copies from
// the back, block by block. Each system call has a cost, so the receiver takes half of what is left
// at a time: a sender that arrives right after the start can copy the other half. If the sender is
// itself fetching from this receiver, it will help little, and the receiver takes more. A pair has
// one such copy at a time in each direction, in its pair ring.
//
// Invariants
//  1. `blocks` holds the turn, a number that each copy has for itself (modulo 2^32), and the range
//     [first, end) of the blocks that nobody has taken. Within a turn that range only shrinks.
//  2. The receiver writes the description while all blocks of the last turn are taken, and then
//     stores `blocks` (release). A rank that takes a block by compare-and-swap has therefore read
//     the description of that block's turn, or the swap fails.
//  3. Only the rank that has taken a block copies it. The sender counts its finished blocks in
//     `helped` (release). The receiver ends the turn when all blocks are counted, so that nobody
//     touches either memory after that, or when the sender has died, perhaps inside a block.
// Thread rule: one receiver and one sender, each under its own rank's lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "mpi/job/segment.hpp"
#include "mpi/transport/shm/tuning.hpp"
#include "mpi/transport/transport.hpp"

namespace warren::transport {

struct alignas(node::cache_line_bytes) JointCopy {
    std::atomic<std::uint64_t> blocks; // turn in the upper half, then end, then first
    // The description, stable while `blocks` has something to take.
    std::atomic<std::uint64_t> from; // address in the sender
    std::atomic<std::uint64_t> to;   // address in the receiver
    std::atomic<std::uint64_t> bytes;
    std::atomic<std::uint64_t> block_bytes;

    alignas(node::cache_line_bytes) std::atomic<std::uint32_t> helped;
    static constexpr std::uint32_t helper_failed_bit = std::uint32_t{1} << 31;

    // A part of the whole.
    struct Block {
        std::uint64_t from;
        std::uint64_t to;
        std::uint64_t bytes;
    };

    // The receiver: copies, with copy(Block) -> PeerCopy, all blocks that the sender doesn't. If
    // the result isn't `done`, the data at `to` is undefined. `is_gone`: whether the sender has
    // died; called from time to time while the sender doesn't finish a block. `mutual`: the sender
    // has something to fetch from the receiver.
    template <typename Copy, typename IsGone>
    PeerCopy receive(std::uint64_t from, std::uint64_t to, std::uint64_t bytes, bool mutual,
                     Copy copy, IsGone is_gone);

    // The sender: copies a block with copy(Block) -> PeerCopy if there is one. False: there was
    // none.
    template <typename Copy>
    bool help(Copy copy);

  private:
    static constexpr std::uint64_t index_mask = 0xffff;
    static constexpr std::uint64_t end_shift = 16;
    static constexpr std::uint64_t turn_shift = 32;
    static std::uint64_t first_of(std::uint64_t word) { return word & index_mask; }
    static std::uint64_t end_of(std::uint64_t word) { return word >> end_shift & index_mask; }

    static std::uint64_t block_size(std::uint64_t bytes);
    // Number of the `left` blocks that the receiver takes at once.
    static std::uint64_t share(std::uint64_t left, std::uint64_t block, bool mutual);
    // Waits, for a bounded time, until the sender has finished `count` blocks.
    enum class Helper : std::uint8_t { through, failed, late };
    Helper await_helper(std::uint64_t count, bool sleeps) const;
};

template <typename Copy, typename IsGone>
PeerCopy JointCopy::receive(std::uint64_t source, std::uint64_t target, std::uint64_t size,
                            bool mutual, Copy copy, IsGone is_gone) {
    const std::uint64_t block = block_size(size);
    const std::uint64_t count = (size + block - 1) / block;
    const auto part = [&](std::uint64_t index, std::uint64_t end) -> Block {
        const std::uint64_t offset = index * block;
        const std::uint64_t limit = end * block < size ? end * block : size;
        return {.from = source + offset, .to = target + offset, .bytes = limit - offset};
    };
    from.store(source, std::memory_order_relaxed);
    to.store(target, std::memory_order_relaxed);
    bytes.store(size, std::memory_order_relaxed);
    block_bytes.store(block, std::memory_order_relaxed);
    helped.store(0, std::memory_order_relaxed);
    const std::uint64_t turn = (blocks.load(std::memory_order_relaxed) >> turn_shift) + 1;
    // The first ones are taken already.
    std::uint64_t copied = share(count, block, mutual);
    std::uint64_t now = turn << turn_shift | count << end_shift | copied;
    blocks.store(now, std::memory_order_release);
    PeerCopy result = copy(part(0, copied));
    now = blocks.load(std::memory_order_relaxed);
    while (first_of(now) < end_of(now)) {
        const std::uint64_t left = end_of(now) - first_of(now);
        // Data that can't be copied is closed to the sender too.
        const std::uint64_t step = result == PeerCopy::done ? share(left, block, mutual) : left;
        if (blocks.compare_exchange_weak(now, now + step, std::memory_order_relaxed)) {
            if (result == PeerCopy::done) {
                result = copy(part(first_of(now), first_of(now) + step));
            }
            copied += step;
            now = blocks.load(std::memory_order_relaxed);
        }
    }
    Helper helper = await_helper(count - copied, false);
    while (helper == Helper::late) {
        if (is_gone()) {
            return PeerCopy::failed;
        }
        helper = await_helper(count - copied, true);
    }
    if (helper == Helper::failed && result == PeerCopy::done) {
        // Only one of the two may reach into the other's memory.
        result = copy(part(copied, count));
    }
    return result;
}

template <typename Copy>
bool JointCopy::help(Copy copy) {
    std::uint64_t now = blocks.load(std::memory_order_acquire);
    while (first_of(now) < end_of(now)) {
        const std::uint64_t last = end_of(now) - 1;
        const std::uint64_t block = block_bytes.load(std::memory_order_relaxed);
        const std::uint64_t offset = last * block;
        const std::uint64_t left = bytes.load(std::memory_order_relaxed) - offset;
        const Block part = {.from = from.load(std::memory_order_relaxed) + offset,
                            .to = to.load(std::memory_order_relaxed) + offset,
                            .bytes = left < block ? left : block};
        const std::uint64_t taken = (now & ~(index_mask << end_shift)) | last << end_shift;
        // Acquire also when it fails: the description may be another turn's.
        if (blocks.compare_exchange_weak(now, taken, std::memory_order_acquire)) {
            if (copy(part) != PeerCopy::done) {
                helped.fetch_or(helper_failed_bit, std::memory_order_relaxed);
            }
            helped.fetch_add(1, std::memory_order_release);
            return true;
        }
    }
    return false;
}

} // namespace warren::transport
