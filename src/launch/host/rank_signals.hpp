// Pending signals of each rank of the process: those for the rank as a whole that no thread of it
// takes at present, and the threads that wait for such.
//
// A fibre's blocked signals are here, too (fibre_signals.hpp); of threads the kernel has them
// (thread_signals.hpp). Thread rule: whoever holds the rank's signals; signal handlers as well.
#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <sys/types.h>

#include "base/blocked_signals.hpp"
#include "launch/host/signal_queue.hpp"

namespace warren::launch {

Mask mask_of(const sigset_t& set);
sigset_t set_of(Mask mask);
// The kernel's, of the calling thread.
Mask mask_of_thread();

// A thread of a rank, no fibre, from its beginning in the rank to its end there. Its own memory.
struct SignalThread {
    pid_t number = 0;
    // Signals that its program has blocked. (The kernel's mask may have more, for moments.)
    std::atomic<Mask> mask{0};
    std::atomic<std::uint32_t> passed{0}; // how many have been sent to it for the rank
    std::uint32_t taken = 0;              // how many of those have come
    SignalThread* next = nullptr;
};

// A thread of a rank, no fibre, that lets signals through while it waits. On its stack.
struct SignalWaiter {
    SignalThread* thread;
    Mask mask;           // of those signals
    bool takes;          // them from the queue (sigwait); else handlers run (sigsuspend)
    bool entered;        // a handler has begun
    std::uint32_t told;  // how often it has been sent one only to look into the queue
    std::uint32_t heard; // how often it has looked for that reason
    SignalWaiter* next;
    SignalWaiter* outer; // of the same thread
};

// All zeros at first: the pages of ranks without pending signals take no memory.
struct RankSignals {
    std::atomic<bool> locked;
    Mask blocked;
    Mask awaited; // by sigwait and its kin
    bool waits;   // so signals are its own fibre's to take
    bool waits_for_any;
    Mask blocked_before_wait;
    stack_t stack;         // for a fibre's handlers, as its program has set it; 0 bytes: none
    std::uintptr_t acting; // the outermost frame of act_on_held_back, which handlers interrupt
    std::uint32_t nested;  // how many there are within it
    pid_t calling; // the thread in which the fibre waits in a call of the kernel; 0: it doesn't
    std::atomic<std::uint32_t> arrived; // counts those that came while it waited
    std::atomic<std::uint32_t> pending; // changes while it is held
    SignalWaiter* waiters;
    SignalThread* threads; // in the order in which they have come
    SignalQueue queue;
};

// Once, before there are other threads.
void prepare_rank_signals(std::uint32_t ranks);
// Null: there is no such rank, or the caller is in a child of fork, whose signals are the kernel's.
RankSignals* signals_of_rank(std::uint32_t rank);

// Holds a rank's signals. No signal comes to the calling thread meanwhile, which would hold them
// too.
class Held {
  public:
    explicit Held(RankSignals& signals);
    ~Held() { signals_.locked.store(false, std::memory_order_release); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

  private:
    RankSignals& signals_;
    const BlockedSignals blocked_; // restored after the lock is given back
};

// Puts a signal into the queue, which the caller holds. False, and errno: there is no room.
bool put_in_queue(RankSignals& signals, const siginfo_t& information);
// Takes the pending signal of the mask that has the lowest number, the first that has come of
// those. False: there is none for the taker.
bool take_from_queue(RankSignals& signals, Mask mask, siginfo_t& taken,
                     Taker taker = Taker::first_thread);
// The rank ignores the signal now: it is no longer pending.
void remove_from_queue(RankSignals& signals, int number);
// Those in the queue.
Mask pending_in_queue(RankSignals& signals, Taker taker = Taker::first_thread);
// A thread that waits for the signal; null: none. The caller holds them.
SignalWaiter* find_waiter(RankSignals& signals, int number);

} // namespace warren::launch
