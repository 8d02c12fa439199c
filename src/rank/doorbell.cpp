#include "rank/doorbell.hpp"

#include <climits>

namespace warren {

namespace {
constexpr timespec refused_sleep_limit = {.tv_sec = 0, .tv_nsec = 10'000'000};
}

void Doorbell::join() {
    if (header_->fence_in_wakers.load(std::memory_order_relaxed) == 0 &&
        !register_sleeper_fence()) {
        header_->fence_in_wakers.store(1, std::memory_order_seq_cst);
        limit_ = &refused_sleep_limit;
    }
}

void Doorbell::wake(std::atomic<std::uint32_t>& word) {
    // Only the waker that takes the 1 away calls the kernel.
    if (word.exchange(0, std::memory_order_seq_cst) != 0) {
        futex_wake(word, INT_MAX);
    }
}

} // namespace warren
