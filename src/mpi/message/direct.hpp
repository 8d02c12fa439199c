// Direct: copies a message between two ranks of one address space once, from the sender's buffer to
// the receiver's. Both ranks may copy.
//
// The sender announces where its DirectSend is. Once the receiver has matched the message, it
// stores there where the data goes, divides it into blocks, and copies them from the front. A
// sender that is in an MPI call meanwhile copies from the back.
//
// Invariants
//  1. The receiver stores `blocks` (release) after all its other members.
//  2. A block is copied only by the rank that has taken it out of `blocks` by compare-and-swap.
//  3. The receiver stores `finished` when all blocks are copied: its own, and the sender's, which
//     `helped` counts with release. It touches nothing of the sender's after that.
// So the sender's buffer and request live until `finished`, and the receiver's until the last
// block. Thread rule: each rank under its own lock; both share the struct, and each member says
// how.
#pragma once

#include <atomic>
#include <cstdint>

#include "mpi/datatype/buffer.hpp"
#include "mpi/transport/shm/copy_large.hpp"

namespace warren::message {

// DirectSend: part of the sender's request. Its words are plain, not std::atomic, because a request
// is made without initialising members that its operation does not use.
struct DirectSend {
    // Place of data: one piece, or laid out by a buffer.
    struct Place {
        const datatype::Buffer* buffer;
        std::byte* piece; // null: laid out
    };

    Place from; // the sender's, constant once announced
    // The receiver's, before it stores `blocks`.
    Place to;
    std::uint64_t bytes; // to copy
    std::uint64_t block_bytes;

    std::uint64_t
        blocks; // atomic: the first that nobody has taken, and in the upper half their end
    std::uint32_t helped;   // atomic: blocks that the sender has copied
    std::uint32_t finished; // atomic: 1: the data is where it belongs

    void announce(const Place& place) {
        from = place;
        set(blocks, std::uint64_t{0});
        set(helped, 0U);
        set(finished, 0U);
    }
    bool has_finished() { return std::atomic_ref(finished).load(std::memory_order_acquire) != 0; }

    // The receiver's last store.
    void finish() { std::atomic_ref(finished).store(1, std::memory_order_release); }

    // The receiver's work: copies `size` bytes, all or those that the sender leaves.
    void receive(const Place& target, std::uint64_t size, const transport::LargeCopy& large);
    // The sender's: copies a block if there is one. False: there was none.
    bool help(const transport::LargeCopy& large);

  private:
    template <typename Word>
    static void set(Word& word, Word value) {
        std::atomic_ref(word).store(value, std::memory_order_relaxed);
    }
    template <typename Move>
    void copy(std::uint64_t first, std::uint64_t size, Move move) const;
};

} // namespace warren::message
