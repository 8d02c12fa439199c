#include "mpi/rma/shared_mutex.hpp"

namespace warren::rma {

namespace {

// Polls of a mutex that is held for some 10 ns to 10 µs, before a sleep of some 5 µs.
constexpr int polls_before_sleep = 200;

} // namespace

void SharedMutex::lock_slowly(std::uint32_t owner, bool spins) {
    for (int poll = 0; spins && poll < polls_before_sleep; ++poll) {
        std::uint32_t unheld = 0;
        if (word_.load(std::memory_order_relaxed) == 0 &&
            word_.compare_exchange_strong(unheld, held_by(owner), std::memory_order_acquire)) {
            return;
        }
        spin_pause();
    }
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    while (true) {
        if (seen == 0) {
            // Others may still sleep: whoever wakes here does not know.
            if (word_.compare_exchange_weak(seen, held_by(owner) | has_sleepers,
                                            std::memory_order_acquire)) {
                return;
            }
            continue;
        }
        if ((seen & has_sleepers) != 0 ||
            word_.compare_exchange_weak(seen, seen | has_sleepers, std::memory_order_relaxed)) {
            futex_wait(word_, seen | has_sleepers);
            seen = word_.load(std::memory_order_relaxed);
        }
    }
}

} // namespace warren::rma
