#include "rank/lock.hpp"

#include <climits>

#include "base/futex.hpp"

namespace warren {

namespace {
// About the time of a short call by the holder; longer waits sleep.
constexpr int spins_before_sleep = 200;
} // namespace

void RankLock::acquire() {
    const std::uint32_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
    for (int spin = 0; spin < spins_before_sleep; ++spin) {
        // Pairs with the release store of the last holder.
        if (serving_.load(std::memory_order_acquire) == ticket) {
            return;
        }
        spin_pause();
    }
    // seq_cst on sleepers_ and serving_: either release() sees this sleeper, or this thread sees
    // the ticket that release() served.
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (true) {
        const std::uint32_t serving = serving_.load(std::memory_order_seq_cst);
        if (serving == ticket) {
            break;
        }
        futex_wait(serving_, serving);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void RankLock::release() {
    serving_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) {
        futex_wake(serving_, INT_MAX);
    }
}

} // namespace warren
