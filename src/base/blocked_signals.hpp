// No signal comes to the calling thread while one of these lives. A thread that is made meanwhile
// inherits the mask, so that handlers of the program never run in threads of the library.
// Thread rule: the thread that made it destroys it.
#pragma once

#include <csignal>
#include <cstdint>
#include <sys/syscall.h>
#include <unistd.h>

namespace warren {

// The kernel's calls restore the mask as it was: the C library's unblock what it sends to threads
// itself, for which a thread may wait (launch/host/rank_timers.cpp).
class BlockedSignals {
  public:
    using Mask = std::uint64_t; // bit n - 1: signal n

    BlockedSignals() { set(SIG_BLOCK, all_but_library, &before_); }
    ~BlockedSignals() { set(SIG_SETMASK, before_, nullptr); }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

    Mask before() const { return before_; }
    // The calling thread, which has been made meanwhile, gets the mask of before().
    static void restore(Mask before) { set(SIG_SETMASK, before, nullptr); }
    static Mask of_thread() {
        Mask mask = 0;
        set(SIG_BLOCK, 0, &mask);
        return mask;
    }

  private:
    // Threads can be cancelled and change their user meanwhile.
    static constexpr Mask all_but_library = ~(Mask{3} << (__SIGRTMIN - 1));

    static void set(int how, Mask mask, Mask* former) {
        syscall(SYS_rt_sigprocmask, how, &mask, former, sizeof mask);
    }

    Mask before_ = 0;
};

} // namespace warren
