// ProcessLock: a lock that a child of fork is never shut out by. It notes the process that holds
// it: one that a thread of the parent held when the child was made is free there. What it guards is
// then as that thread had it, and must be of use so.
//
// Held for a few instructions or calls of the system. Where handlers of signals may want it, who
// takes it lets none come meanwhile.
#pragma once

#include <atomic>
#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

namespace warren {

class ProcessLock {
  public:
    void lock() {
        const pid_t own = getpid();
        pid_t holder = 0;
        while (!holder_.compare_exchange_weak(holder, own, std::memory_order_acquire,
                                              std::memory_order_relaxed)) {
            if (holder == own) {
                sched_yield();
                holder = 0;
            }
        }
    }
    void unlock() { holder_.store(0, std::memory_order_release); }

  private:
    std::atomic<pid_t> holder_{0};
};

} // namespace warren
