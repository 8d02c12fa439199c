// Blocked and pending signals of ranks that are fibres, and waits for signals: the kernel's are a
// worker's, which runs other ranks too.
//
// The kernel delivers what a rank has blocked, and hold_back keeps it until the rank unblocks it or
// waits for it. A rank that waits (for a signal, a child, time, descriptors) gets signals in its
// own fibre. Thread rule: any thread, signal handlers included.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <span>

#include "launch/host/rank_signals.hpp"
#include "warren/image.h"

namespace warren::launch {

// Once, before there are other threads. `deliver` acts on a signal in the calling thread's rank,
// and says whether a handler has run;
// `watch` has the dispatcher get a signal of which no rank has changed the action.
struct SignalFunctions {
    bool (*deliver)(std::uint32_t rank, siginfo_t& information);
    void (*watch)(int number);
    void (*dispatch)(int number, siginfo_t* information, void* context);
};
void prepare_fibre_signals(std::uint32_t ranks, const SignalFunctions& functions);

// Keeps a signal that has come for the rank, if that has it blocked or waits. False: act on it now.
// `by_caller`: the caller would, and blocks signals also as the handler that it may be in.
// `has_room`: false and errno if too many are pending already.
bool hold_back(std::uint32_t rank, const siginfo_t& information, bool by_caller = false,
               bool* has_room = nullptr);
// Keeps a signal for which the rank has a handler: that runs in the rank's own fibre as soon as the
// fibre goes on, where it sees its stack and its thread-local variables. False, and errno: too many
// are pending.
bool keep_for_fibre(std::uint32_t rank, const siginfo_t& information);
// The calling fibre goes on: handlers of what has been kept for it run.
void act_in_interrupted_fibre();
// A handler has returned, of a signal that the kernel blocks until the dispatcher returns, too (0:
// of none): the calling fibre acts on what has been held back meanwhile.
void act_on_held_back(int number);
// Whether the rank waits for signals and would get this one.
bool waits_for_signal(std::uint32_t rank, int number);

// Whether the rank has the signal blocked.
bool blocks_signal(std::uint32_t rank, int number);

// Those of the calling fibre, or other thread.
sigset_t signals_blocked_by_caller();
// The calling fibre jumps out of a handler, if it is in one: what the kernel blocks for that is
// blocked for the fibre then. Restored if the handler goes on and returns.
void leave_handler_with_mask();
// A handler that returns changes nothing of the mask of its fibre.
Mask mask_of_fibre(std::uint32_t rank);
void restore_mask_of_fibre(std::uint32_t rank, Mask mask);
// pthread_sigmask for programs.
int set_signal_mask(int how, const sigset_t* set, sigset_t* former);

// Null: the caller is no fibre, or in a child of fork, whose signals are the kernel's.
RankSignals* signals_of_caller();

// The caller's rank, if it is a thread that is no fibre and waits for these signals; else null.
RankSignals* watch_for_thread(const sigset_t& awaited);

// Whether handlers have run, and what they want of a call that they have interrupted.
enum class Handled : std::uint8_t { none, restart, interrupt };

// A wait of a fibre in which its signals come to the fibre itself, so that they can end the wait. A
// handler may leave it by siglongjmp. Thread rule: the fibre.
class SignalWait {
  public:
    // for_any: the program waits for signals, also for those that come from outside for any rank.
    enum class Kind : std::uint8_t { for_other, for_any };
    // `mask`: what is blocked meanwhile; null: the same as before. `awaited`: what take() gets.
    SignalWait(RankSignals& signals, Kind kind, const sigset_t* mask,
               const sigset_t* awaited = nullptr);
    ~SignalWait(); // acts on what has come
    SignalWait(const SignalWait&) = delete;
    SignalWait& operator=(const SignalWait&) = delete;

    // Acts on the signals that have come.
    Handled act();
    // Whether act() would do something.
    bool is_interrupted();
    bool take_awaited(siginfo_t& information);
    // Sleeps until a signal has come since act(), or it is `end_ns`, or soon. False: it is.
    bool sleep(std::uint64_t end_ns);
    // Makes a call of the kernel, which gets the mask to set meanwhile and waits, until it ends for
    // another reason than other ranks' signals. -1 and EINTR: handlers have run.
    template <typename Call>
    int call(const Call& call) {
        while (act() == Handled::none) {
            sigset_t mask;
            const bool is_first = begin_call(mask);
            const int result = is_first ? call(&mask) : -1;
            const int error = is_first ? errno : EINTR;
            end_call(mask);
            errno = error;
            if (result >= 0 || error != EINTR) {
                return result;
            }
        }
        errno = EINTR;
        return -1;
    }

  private:
    // No signal interrupts the thread until the call. False: one has come before.
    bool begin_call(sigset_t& former);
    void end_call(const sigset_t& former);

    RankSignals& signals_;
    const Kind kind_;
    const bool has_mask_;
    const std::uint64_t former_; // blocked before
    std::uint32_t seen_ = 0;     // signals that had come before act() looked
    std::uint64_t pause_ns_;
};

// Replacements for the C library's functions: those that make threads, for fibres, and those of
// masks, for threads as well.
std::span<const warren_image_binding> fibre_thread_bindings();
std::span<const warren_image_binding> mask_bindings();

} // namespace warren::launch
