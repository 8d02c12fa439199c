#include "mpi/rank/lock.hpp"

#include "base/futex.hpp"
#include "mpi/rank/tuning.hpp"

namespace warren {

void RankLock::acquire_slowly() {
    const std::uint64_t begin_ns = monotonic_ns();
    wanted_.fetch_add(1, std::memory_order_relaxed);
    const auto taken = [this] {
        for (int turn = 0; turn < (spins_ ? wait_policy::lock_spins : wait_policy::lock_yields);
             ++turn) {
            std::uint32_t seen = word_.load(std::memory_order_relaxed);
            if (seen == unheld &&
                word_.compare_exchange_weak(seen, held, std::memory_order_acquire)) {
                return true;
            }
            if (spins_) {
                spin_pause();
            } else {
                give_way();
            }
        }
        return false;
    };
    if (!taken()) {
        // It may sleep from now on, so the word says so whenever this thread has it or waits.
        while (word_.exchange(held_with_sleepers, std::memory_order_acquire) != unheld) {
            futex_wait(word_, held_with_sleepers);
        }
    }
    wanted_.fetch_sub(1, std::memory_order_relaxed);
    waits.add(1);
    if (Observer* its = observer.load(std::memory_order_relaxed)) {
        its->lock_waited(monotonic_ns() - begin_ns);
    }
}

void RankLock::release() {
    if (word_.exchange(unheld, std::memory_order_release) == held_with_sleepers) [[unlikely]] {
        futex_wake(word_, 1);
    }
}

void RankLock::pass() {
    release();
    if (!spins_) {
        give_way(); // the other one needs this processor
    }
    for (int spin = 0;
         spin < wait_policy::lock_pass_spins && word_.load(std::memory_order_relaxed) == unheld;
         ++spin) {
        spin_pause();
    }
    acquire();
}

} // namespace warren
