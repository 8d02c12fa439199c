// Offer: an operation on memory of another process that its target may carry out itself.
//
// The kernel takes 1 us to read or write a word of another process, and 180 us to write 1,000
// pieces. A target that waits in a call of MPI is quicker: it takes a cell at once. So an origin
// puts a number into its box and tells the target by a cell (Notice::offered) what to do. The
// target claims the number, does the operation, and says so in the box. The origin takes back what
// nobody has claimed after offer_ticks, and has the kernel copy. So nobody waits for a target that
// computes.
// Thread rule: an origin's box is written by the thread of the rank that makes the offer, one at a
// time (Window::offer), and by the target that has claimed it. Invariants
//  1. Whoever moves the box from `offered` carries the operation out: the target claims, the origin
//     withdraws.
//  2. An origin has at most one cell of a window under way: targets that compute have few in their
//     queues.
#pragma once

#include <atomic>
#include <cstdint>

#include "mpi/job/segment.hpp"

namespace warren::rma {

enum class OfferState : std::uint32_t { none, offered, claimed, done, declined };

// Evenly spaced blocks of the target's memory, and the packed data for them.
struct OfferedBlocks {
    std::uint64_t data;  // in the origin's process
    std::int64_t stride; // bytes
    std::uint32_t count;
    std::uint32_t bytes; // of a block
};

struct OfferBox {
    // 8 * number + OfferState. The release of a state pairs with the acquire of who sees it.
    alignas(node::cache_line_bytes) std::atomic<std::uint64_t> state;
    // A cell is under way: set by the origin, cleared by the target that takes it.
    std::atomic<std::uint32_t> has_cell;
    std::uint32_t unused;
    std::uint64_t before; // what was there; by the target, with `done`
    OfferedBlocks blocks; // of `write_blocks`; by the origin, before `offered`

    static constexpr std::uint64_t word(std::uint64_t number, OfferState state) {
        return number * 8 + static_cast<std::uint64_t>(state);
    }
    static constexpr OfferState state_of(std::uint64_t word) {
        return static_cast<OfferState>(word % 8);
    }
    // Whether the origin has no cell under way. A target that has ended takes none any more.
    template <typename HasEnded>
    bool is_free(HasEnded target_has_ended) {
        if (has_cell.load(std::memory_order_relaxed) == 0) {
            return true;
        }
        if (!target_has_ended()) {
            return false;
        }
        has_cell.store(0, std::memory_order_relaxed);
        return true;
    }
    // Whether the state has become this one instead of `offered`.
    bool leave_offered(std::uint64_t number, OfferState next) {
        std::uint64_t offered = word(number, OfferState::offered);
        return state.compare_exchange_strong(offered, word(number, next),
                                             std::memory_order_acquire);
    }
};

enum class OfferKind : std::uint8_t {
    accumulate,
    compare_and_swap,
    write, // a served request
    write_blocks,
    read_word, // up to 8 bytes
    write_word,
};

// A cell's data.
struct OfferCell {
    std::uint64_t number = 0;
    // In the target's process: of an element, of the first block; of a `write`, of a served request
    // in the origin's.
    std::uint64_t address = 0;
    std::uint64_t operand = 0;  // of a `write`: bytes of the request
    std::uint64_t compared = 0; // of a comparison
    OfferKind kind = OfferKind::accumulate;
    std::uint8_t operation = 0; // coll::OpKind
    std::uint8_t basic = 0;     // type, as an index of the predefined ones; of a word: its bytes
    std::uint8_t fetches = 0;
    std::uint32_t target = 0; // rank in the window
};

// When an origin makes offers: not for a while after targets have not taken them.
// Thread rule: under the rank's lock.
class OfferPolicy {
  public:
    bool wants_one() {
        if (to_skip_ > 0) {
            --to_skip_;
            return false;
        }
        return true;
    }
    void note(bool was_taken) {
        skips_ = was_taken ? 0 : skips_ < most_skips ? 2 * skips_ + 1 : skips_;
        to_skip_ = skips_;
    }

  private:
    static constexpr std::uint32_t most_skips = 255;
    std::uint32_t skips_ = 0;
    std::uint32_t to_skip_ = 0;
};

} // namespace warren::rma
