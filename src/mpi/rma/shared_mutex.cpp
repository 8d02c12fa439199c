#include "mpi/rma/shared_mutex.hpp"

#include "mpi/rma/tuning.hpp"

namespace warren::rma {

int SharedMutex::lock_slowly(const MutexUser& user) {
    for (int poll = 0; user.spins && poll < polls_before_sleep; ++poll) {
        std::uint32_t unheld = 0;
        if (word_.load(std::memory_order_relaxed) == 0 &&
            word_.compare_exchange_strong(unheld, held_by(user.rank), std::memory_order_acquire)) {
            return nobody;
        }
        spin_pause();
    }
    // Others may still sleep: whoever wakes here does not know.
    const std::uint32_t own = held_by(user.rank) | has_sleepers;
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    while (true) {
        const int ended = ended_owner_of(seen, *user.segment);
        if (seen == 0 || ended != nobody) {
            if (word_.compare_exchange_weak(seen, own, std::memory_order_acquire)) {
                return ended;
            }
            continue;
        }
        if ((seen & has_sleepers) != 0 ||
            word_.compare_exchange_weak(seen, seen | has_sleepers, std::memory_order_relaxed)) {
            futex_wait(word_, seen | has_sleepers, &look_at_owner);
            seen = word_.load(std::memory_order_relaxed);
        }
    }
}

} // namespace warren::rma
