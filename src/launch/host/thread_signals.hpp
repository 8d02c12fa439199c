// Signals for a rank as a whole that threads take, all those of a rank that is a thread, and those
// that a fibre's program has made. As in a process a signal comes to the first thread, if that lets
// it through, else to another one that does or that waits for it; else it is pending until one
// does.
//
// Thread rule: any thread; the first three in signal handlers as well.
#pragma once

#include <csignal>
#include <cstdint>
#include <ctime>
#include <sys/types.h>
#include <ucontext.h>

#include "launch/host/rank_signals.hpp"
#include "warren/image.h"

namespace warren::launch {

// The signal goes to a thread of this rank that is a thread, or is pending for it. False, and
// errno: too many are queued.
bool post_to_rank(std::uint32_t rank, const siginfo_t& information);
// The fibre rank has the signal blocked: another thread of its program gets it. False: none takes
// it. The caller holds the rank's signals.
bool offer_to_threads(RankSignals& signals, const siginfo_t& information);
// The kernel's number of the first thread of a rank that is a thread.
pid_t first_thread(std::uint32_t rank);
// Whose thread it is that has the kernel's number, and is no fibre; no_rank: no rank's.
std::uint32_t rank_of_kernel_thread(pid_t number);
// The signals that the calling thread lets through now are pending no longer.
void take_pending(RankSignals& signals, Mask let_through);

// Once, before there are other threads. `watch`: has the dispatcher get a signal of which no rank
// has changed the action.
void prepare_thread_signals(std::uint32_t ranks, bool fibres, void (*watch)(int number));
// The calling thread is the rank's first. Others that are no fibres are noted when they begin.
void note_signal_thread(std::uint32_t rank, const sigset_t& blocked);
// It gets none any more: the rank has ended.
void end_signal_thread(std::uint32_t rank);

// The program has these signals blocked in the calling thread, which is no fibre. The dispatcher
// notes it when a handler begins, and when it has returned.
Mask noted_mask();
void note_mask(Mask mask);
// A signal that has been passed on to the calling thread, for its rank, has come.
void note_come();

// pthread_sigmask and sigpending of a thread that is no fibre.
int set_mask_of_thread(int how, const sigset_t* set, sigset_t* former);
int list_pending_of_thread(sigset_t* set);
// setcontext and swapcontext: a program's way out of a handler, and back.
int set_context(const ucontext_t* context);
int swap_context(ucontext_t* from, const ucontext_t* to);

// Whether the caller is such a thread of a rank.
RankSignals* signals_of_thread_caller();

// The calling thread waits with this mask while it lives; null: with its own.
class LetThrough {
  public:
    explicit LetThrough(const sigset_t* mask);
    ~LetThrough();
    LetThrough(const LetThrough&) = delete;
    LetThrough& operator=(const LetThrough&) = delete;

  private:
    RankSignals* const signals_;
    SignalWaiter waiter_{};
};

// A handler begins for which the calling thread has a mask meanwhile, instead of this one to which
// it goes back.
Mask mask_of_wait(Mask interrupted);

// The calling thread jumps out of a handler, and out of the wait that this has interrupted.
void leave_waits();

// sigtimedwait for such a thread; UINT64_MAX: without limit.
int await_in_thread(RankSignals& signals, const sigset_t& set, siginfo_t& information,
                    std::uint64_t end_ns);

} // namespace warren::launch
