#include "mpi/rma/shared_mutex.hpp"

#include <algorithm>

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
    timespec limit = shortest_mutex_sleep;
    while (true) {
        std::uint32_t seen = word_.load(std::memory_order_relaxed);
        const int ended = ended_owner_of(seen, *user.segment);
        if (seen == 0 || ended != nobody) {
            if (word_.compare_exchange_weak(seen, held_by(user.rank), std::memory_order_acquire)) {
                // Others may still sleep: whoever wakes here does not know.
                has_sleepers_.store(1, std::memory_order_relaxed);
                return ended;
            }
            continue;
        }
        // The store is complete before the kernel looks at the word again.
        has_sleepers_.store(1, std::memory_order_seq_cst);
        futex_wait(word_, seen, &limit);
        limit.tv_nsec = std::min(2 * limit.tv_nsec, look_at_owner.tv_nsec);
    }
}

void SharedMutex::wake() {
    has_sleepers_.store(0, std::memory_order_relaxed);
    futex_wake(word_, 1);
    // One who goes to sleep for the next owner may have said so just before this cleared it.
    if (word_.load(std::memory_order_relaxed) != 0) {
        has_sleepers_.store(1, std::memory_order_relaxed);
    }
}

} // namespace warren::rma
