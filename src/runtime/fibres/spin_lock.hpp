// SpinLock: held for a few dozen instructions, by threads that don't switch meanwhile. Whoever
// finds that the holder has lost its processor gives away its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <sched.h>

#include "base/futex.hpp"
#include "runtime/fibres/tuning.hpp"

namespace warren::fibre {

class SpinLock {
  public:
    void lock() {
        if (held_.exchange(1, std::memory_order_acquire) != 0) [[unlikely]] {
            lock_slowly();
        }
    }
    bool try_lock() {
        return held_.load(std::memory_order_relaxed) == 0 &&
               held_.exchange(1, std::memory_order_acquire) == 0;
    }
    // A full fence, right after lock(), of this lock or another one.
    static void fence_after_lock() {
#if defined(__x86_64__)
        // Which is one itself: an instruction with the prefix lock. The compiler must keep order.
        std::atomic_signal_fence(std::memory_order_seq_cst);
#else
        std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    }
    void unlock() {
        held_.store(0, std::memory_order_release);
    }

  private:
    [[gnu::noinline]] void lock_slowly() {
        do {
            for (int spin = 0; held_.load(std::memory_order_relaxed) != 0; ++spin) {
                if (spin < spins_before_yield) {
                    spin_pause();
                } else {
                    sched_yield(); // the kernel's: also for a thread that is a worker
                }
            }
        } while (held_.exchange(1, std::memory_order_acquire) != 0);
    }

    std::atomic<std::uint32_t> held_{0};
};

} // namespace warren::fibre
