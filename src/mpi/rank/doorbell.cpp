#include "mpi/rank/doorbell.hpp"

#include <climits>

#include "mpi/rank/tuning.hpp"

namespace warren {

void Doorbell::join() {
    if (header_->fence_in_wakers.load(std::memory_order_relaxed) == 0 &&
        !register_sleeper_fence()) {
        header_->fence_in_wakers.store(1, std::memory_order_seq_cst);
        limit_ = &wait_policy::refused_sleep_limit;
    }
}

void Doorbell::fence_for_wakers() {
    if (!sleeper_fence()) {
        // Refused now what was granted before (a filter installed since): as in join().
        header_->fence_in_wakers.store(1, std::memory_order_seq_cst);
        limit_ = &wait_policy::refused_sleep_limit;
    }
}

void Doorbell::wake(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
    // Only the waker that takes the bit away calls the kernel.
    do {
        const std::uint32_t awake = (seen & ~asleep) + 2;
        if (word.compare_exchange_strong(seen, awake, std::memory_order_seq_cst)) {
            futex_wake(word, INT_MAX);
            return;
        }
        // Another waker was quicker, and the owner may have looked before: as in ring().
        std::atomic_thread_fence(std::memory_order_seq_cst);
        seen = word.load(std::memory_order_relaxed);
    } while ((seen & asleep) != 0);
}

} // namespace warren
