#include "launch/host/fibre_signals.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/blocked_signals.hpp"
#include "base/futex.hpp"
#include "image/host_interface.hpp"
#include "launch/host/actions.hpp"
#include "launch/host/children.hpp"
#include "launch/host/crash.hpp"
#include "launch/host/dispatch.hpp"
#include "launch/host/passed_signals.hpp"
#include "launch/host/rank_signals.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/signal_owners.hpp"
#include "launch/host/thread_signals.hpp"
#include "launch/host/thread_status.hpp"
#include "runtime/fibres/api.hpp"

namespace warren::launch {

namespace {

// How long a fibre sleeps before it looks whether a child has ended or, in a handler, whether a
// signal has come.
constexpr std::uint64_t first_look_ns = 20'000;
constexpr std::uint64_t longest_look_ns = 2'000'000;

} // namespace

namespace {

struct FibreSignals {
    bool prepared = false;
    Mask of_process = 0; // blocked in the kernel since the process began
    SignalFunctions functions{};
};

FibreSignals& fibre_signals() {
    static FibreSignals& only = *new FibreSignals; // outlives everything
    return only;
}

// The kernel's mask of the calling fibre, which is in a handler, or has left one by longjmp.
Mask blocked_in_kernel() {
    return mask_of_thread() & ~fibre_signals().of_process;
}

// Those that nobody can block, and what the processor raises.
bool is_always_the_kernels(int number) {
    return number == SIGKILL || number == SIGSTOP ||
           (is_crash_signal(number) && number != SIGPIPE && number != SIGABRT) ||
           (number >= __SIGRTMIN && number < SIGRTMIN);
}

// Signals that a rank blocks or waits for have to come to the dispatcher.
void watch_all(Mask mask) {
    for (int number = 1; number < NSIG; ++number) {
        if ((mask & bit(number)) != 0 && !is_always_the_kernels(number) &&
            !is_crash_signal(number)) {
            fibre_signals().functions.watch(number);
        }
    }
}

// While a rank's fibre acts on a signal that has come during a wait, it does not wait: a handler
// may leave by siglongjmp and never come back to it.
class InterruptedWait {
  public:
    // `keeps_mask`: the wait has a mask of its own, under which handlers run.
    InterruptedWait(RankSignals& signals, bool keeps_mask)
        : signals_(signals),
          waits_(signals.waits),
          for_any_(signals.waits_for_any),
          blocked_(signals.blocked),
          awaited_(signals.awaited),
          before_(signals.blocked_before_wait) {
        if (waits_) {
            set(keeps_mask ? blocked_ : before_, 0, false);
        }
    }
    void resume() {
        if (waits_) {
            set(blocked_, awaited_, true);
        }
    }

  private:
    void set(Mask blocked, Mask awaited, bool waits) {
        const Held held(signals_);
        signals_.blocked = blocked;
        signals_.awaited = awaited;
        signals_.waits = waits;
        signals_.waits_for_any = for_any_;
        signals_.blocked_before_wait = before_;
    }

    RankSignals& signals_;
    const bool waits_;
    const bool for_any_;
    const Mask blocked_;
    const Mask awaited_;
    const Mask before_;
};

// Whether a signal of the mask is pending.
bool has_some(RankSignals& signals, Mask open) {
    const Held held(signals);
    return (signals.queue.numbers() & open) != 0;
}

// Acts on a signal, whose handler runs when others, which block `added`, are about to.
Handled act_on_one(RankSignals& signals, siginfo_t& information, Mask added, bool has_mask) {
    const std::uint32_t rank = rank_of_thread();
    const int flags = actions().of(rank, information.si_signo).sa_flags;
    InterruptedWait wait(signals, has_mask);
    const Mask before = signals.blocked;
    if (added != 0) {
        restore_mask_of_fibre(rank, before | added);
    }
    const bool has_run = fibre_signals().functions.deliver(rank, information);
    if (added != 0) {
        restore_mask_of_fibre(rank, before);
    }
    wait.resume();
    return !has_run                    ? Handled::none
           : (flags & SA_RESTART) != 0 ? Handled::restart
                                       : Handled::interrupt;
}

// Acts on pending signals of a mask. The kernel has a handler interrupted before its first
// instruction by the next signal that it leaves open; so the last one runs first, and a handler
// that jumps away has those before it never run. `added` is what they block.
Handled act_on_several(RankSignals& signals, Mask open, Mask added, int depth, bool has_mask) {
    constexpr int most = 64; // handlers that leave their own signal open could fill the stack
    Handled handled = Handled::none;
    siginfo_t information{};
    while (take_from_queue(signals, open, information)) {
        const struct sigaction& action = actions().of(rank_of_thread(), information.si_signo);
        if (is_handler(action) && depth < most) {
            const Mask its = blocked_by_handler(action, information.si_signo);
            handled = std::max(
                handled, act_on_several(signals, open & ~its, added | its, depth + 1, has_mask));
        }
        handled = std::max(handled, act_on_one(signals, information, added, has_mask));
        if (depth == 0) {
            break; // it may have changed the mask
        }
    }
    return handled;
}

// Acts on what is pending and not blocked, in the rank's fibre. `has_mask`: a wait's mask counts,
// also in a handler.
Handled act_on_pending(RankSignals& signals, bool has_mask = false) {
    Handled handled = Handled::none;
    while (signals.pending.load(std::memory_order_relaxed) != 0) {
        const Mask blocked = signals.blocked | (has_mask ? 0 : blocked_in_kernel());
        const Mask open = ~blocked & ~signals.awaited;
        if (!has_some(signals, open)) {
            break;
        }
        handled = std::max(handled, act_on_several(signals, open, 0, 0, has_mask));
        if (has_mask && handled != Handled::none) {
            break; // the program goes back to the mask before the wait
        }
    }
    return handled;
}

// `in_kernel`: blocked besides.
bool has_something_to_do(RankSignals& signals, Mask in_kernel) {
    return has_some(signals, ~(signals.blocked | in_kernel));
}

// ---- What programs call

int set_mask(int how, const sigset_t* set, sigset_t* former) {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr ||
        (set != nullptr && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK)) {
        return set_mask_of_thread(how, set, former);
    }
    // A jump out of a handler restores the kernel's mask, so what that has blocked stays there.
    const Mask in_kernel = blocked_in_kernel();
    const Mask only_there = in_kernel & ~signals->blocked;
    const Mask before = signals->blocked | in_kernel;
    if (set != nullptr) {
        const Mask wanted = mask_of(*set) & ~(bit(SIGKILL) | bit(SIGSTOP));
        const Mask now = how == SIG_BLOCK     ? before | wanted
                         : how == SIG_UNBLOCK ? before & ~wanted
                                              : wanted;
        watch_all(now & ~before);
        {
            const Held held(*signals);
            signals->blocked = now & ~only_there;
        }
        if ((before & ~now) != 0) {
            const bool is_in_one = is_in_handler();
            const sigset_t in_both =
                set_of(before & ~now & (in_kernel | fibre_signals().of_process));
            pthread_sigmask(SIG_UNBLOCK, &in_both, nullptr);
            if (is_in_one) {
                note_unblocking();
            }
            act_on_pending(*signals);
        }
    }
    if (former != nullptr) {
        *former = set_of(before);
    }
    return 0;
}

int set_mask_of_process(int how, const sigset_t* set, sigset_t* former) {
    const int error = set_mask(how, set, former);
    errno = error != 0 ? error : errno;
    return error == 0 ? 0 : -1;
}

int block_one(int number, int how) {
    sigset_t set;
    sigemptyset(&set);
    return sigaddset(&set, number) != 0 ? -1 : set_mask_of_process(how, &set, nullptr);
}

int hold_signal(int number) {
    return block_one(number, SIG_BLOCK);
}

int release_signal(int number) {
    return block_one(number, SIG_UNBLOCK);
}

int list_pending(sigset_t* set) {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr) {
        return list_pending_of_thread(set);
    }
    signal_ended_children();
    const Mask in_kernel = blocked_in_kernel();
    const Mask there = in_kernel != 0 ? signals_of_thread(own_thread(), "\nSigPnd:", 0) : 0;
    const Mask pending = pending_in_queue(*signals) | (there & in_kernel);
    *set = set_of(pending & (signals->blocked | in_kernel));
    return 0;
}

// How a fibre gets to know of a signal that has been kept.
struct Kept {
    bool has_room = true;
    bool waits = false; // it has to be told
    pid_t calling = 0;  // also this thread, which waits in the kernel
};

// `always`: also if the rank neither blocks the signal nor waits.
bool keep(RankSignals& signals, const siginfo_t& information, Mask in_kernel, bool always,
          Kept& kept) {
    const int number = information.si_signo;
    const Held held(signals);
    // If the rank waits, another thread raises what ends a process, and is to go no further.
    const bool waiting = signals.waits && !is_crash_signal(number);
    const bool is_blocked = ((signals.blocked | in_kernel) & bit(number)) != 0;
    if (!is_blocked && !waiting && !always) {
        return false;
    }
    const bool is_for_fibre = !is_blocked || is_crash_signal(number) ||
                              information.si_code == SI_TKILL ||
                              (waiting && (signals.awaited & bit(number)) != 0);
    if (!is_for_fibre && offer_to_threads(signals, information)) {
        return true;
    }
    kept.has_room = put_in_queue(signals, information);
    signals.arrived.fetch_add(1, std::memory_order_seq_cst);
    kept.waits = waiting;
    kept.calling = waiting ? signals.calling : 0;
    return true;
}

void tell(RankSignals& signals, const siginfo_t& information, const Kept& kept) {
    if (kept.waits) {
        warren_fibre_tell(signals.arrived);
    }
    if (kept.calling != 0 && kept.calling != own_thread()) {
        pass_on(kept.calling, Passed::to_wake, information);
    }
}

} // namespace

void leave_handler_with_mask() {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr) {
        return;
    }
    signals->nested = 0; // the frames that it counts are left
    const Mask in_kernel = blocked_in_kernel();
    if (in_kernel == 0 || !is_in_handler()) {
        return;
    }
    {
        const Held held(*signals);
        signals->blocked |= in_kernel;
    }
    const sigset_t set = set_of(in_kernel);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

Mask mask_of_fibre(std::uint32_t rank) {
    const RankSignals* signals = signals_of_rank(rank);
    return signals != nullptr ? signals->blocked : 0;
}

void restore_mask_of_fibre(std::uint32_t rank, Mask mask) {
    RankSignals* signals = signals_of_rank(rank);
    if (signals != nullptr && signals->blocked != mask) {
        const Held held(*signals);
        signals->blocked = mask;
    }
}

int set_signal_mask(int how, const sigset_t* set, sigset_t* former) {
    return set_mask(how, set, former);
}

RankSignals* signals_of_caller() {
    return fibre_signals().prepared && warren_fibre_is_one() ? signals_of_rank(rank_of_thread())
                                                             : nullptr;
}

RankSignals* watch_for_thread(const sigset_t& awaited) {
    RankSignals* signals = signals_of_thread_caller();
    if (signals != nullptr && fibre_signals().prepared) {
        watch_all(mask_of(awaited));
    }
    return signals;
}

namespace {

// While a handler runs, the kernel keeps for its thread what the handler blocks.
void take_from_kernel() {
    const sigset_t blocked = set_of(blocked_in_kernel());
    const timespec at_once{};
    siginfo_t information{};
    while (sigtimedwait(&blocked, &information, &at_once) > 0) {
        ucontext_t context{};
        fibre_signals().functions.dispatch(information.si_signo, &information, &context);
    }
}

} // namespace

SignalWait::SignalWait(RankSignals& signals, Kind kind, const sigset_t* mask,
                       const sigset_t* awaited)
    : signals_(signals),
      kind_(kind),
      has_mask_(mask != nullptr),
      former_(signals.blocked),
      pause_ns_(first_look_ns) {
    const Mask blocked =
        mask != nullptr ? mask_of(*mask) & ~(bit(SIGKILL) | bit(SIGSTOP)) : former_;
    const Mask its = awaited != nullptr ? mask_of(*awaited) : 0;
    if (mask != nullptr || awaited != nullptr) {
        watch_all(blocked | its);
    }
    const Held held(signals);
    signals.blocked = blocked;
    signals.awaited = its;
    signals.waits = true;
    signals.waits_for_any = kind == Kind::for_any;
    signals.blocked_before_wait = former_;
}

SignalWait::~SignalWait() {
    const int error = errno;
    {
        const Held held(signals_);
        signals_.blocked = former_;
        signals_.awaited = 0;
        signals_.waits = false;
    }
    act_on_pending(signals_);
    errno = error;
}

Handled SignalWait::act() {
    seen_ = signals_.arrived.load(std::memory_order_seq_cst);
    return act_on_pending(signals_, has_mask_);
}

bool SignalWait::is_interrupted() {
    return has_something_to_do(signals_, has_mask_ ? 0 : blocked_in_kernel());
}

bool SignalWait::take_awaited(siginfo_t& information) {
    const bool is_there = take_from_queue(signals_, signals_.awaited, information);
    if (is_there) {
        note_taken(information);
    }
    return is_there;
}

bool SignalWait::sleep(std::uint64_t end_ns) {
    const std::uint64_t now = monotonic_ns();
    std::uint64_t until = end_ns;
    if (kind_ == Kind::for_any) { // of children's ends the kernel may tell nobody
        signal_ended_children();
        until = std::min(until, now + pause_ns_);
        pause_ns_ = std::min(2 * pause_ns_, longest_look_ns);
    }
    if (now >= end_ns) {
        return false;
    }
    if (is_in_handler()) {
        take_from_kernel();
        if (signals_.arrived.load(std::memory_order_seq_cst) != seen_) {
            return true;
        }
        const std::uint64_t ns = std::min(until - now, longest_look_ns);
        const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(ns)};
        nanosleep(&time, nullptr);
    } else {
        warren_fibre_wait_told(signals_.arrived, seen_, until);
    }
    return true;
}

bool SignalWait::begin_call(sigset_t& former) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    {
        const Held held(signals_);
        signals_.calling = own_thread();
    }
    return !has_something_to_do(signals_,
                                has_mask_ ? 0 : mask_of(former) & ~fibre_signals().of_process);
}

void SignalWait::end_call(const sigset_t& former) {
    {
        const Held held(signals_);
        signals_.calling = 0;
    }
    pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

void prepare_fibre_signals(std::uint32_t ranks, const SignalFunctions& functions) {
    FibreSignals& own = fibre_signals();
    own.prepared = true;
    own.functions = functions;
    own.of_process = mask_of_thread();
    for (std::uint32_t rank = 0; rank < ranks && own.of_process != 0; ++rank) {
        if (RankSignals* signals = signals_of_rank(rank)) {
            signals->blocked = own.of_process;
        }
    }
}

bool hold_back(std::uint32_t rank, const siginfo_t& information, bool by_caller, bool* has_room) {
    RankSignals* signals = fibre_signals().prepared ? signals_of_rank(rank) : nullptr;
    if (signals == nullptr) {
        return false;
    }
    const Mask in_kernel = by_caller && signals_of_caller() == signals ? blocked_in_kernel() : 0;
    Kept kept;
    if (!keep(*signals, information, in_kernel, false, kept)) {
        return false;
    }
    if (has_room != nullptr) {
        *has_room = kept.has_room;
    }
    tell(*signals, information, kept);
    return true;
}

bool keep_for_fibre(std::uint32_t rank, const siginfo_t& information) {
    RankSignals& signals = *signals_of_rank(rank);
    Kept kept;
    keep(signals, information, 0, true, kept);
    tell(signals, information, kept);
    if (!kept.waits) {
        if (const pid_t thread = warren_fibre_interrupt(rank)) {
            pass_on(thread, Passed::to_look, information);
        }
    }
    if (!kept.has_room) {
        errno = EAGAIN;
    }
    return kept.has_room;
}

void act_in_interrupted_fibre() {
    const int error = errno;
    act_on_held_back(0);
    errno = error;
}

namespace {

// Signals that come one after the other would have the fibre act on each within the one before, and
// fill its stack: after some, those that are kept are left to the outer ones. A jump begins the
// count anew (leave_handler_with_mask).
class Acting {
  public:
    explicit Acting(RankSignals& signals) : signals_(signals) {
        const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        if (signals.nested == 0 || frame >= signals.acting) {
            signals.acting = frame;
            signals.nested = 0;
        }
        ++signals.nested;
    }
    ~Acting() { signals_.nested -= signals_.nested > 0 ? 1 : 0; }
    Acting(const Acting&) = delete;
    Acting& operator=(const Acting&) = delete;

    bool is_too_deep() const { return signals_.nested > most; }

  private:
    static constexpr std::uint32_t most = 16;
    RankSignals& signals_;
};

} // namespace

void act_on_held_back(int number) {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr || signals->waits ||
        signals->pending.load(std::memory_order_relaxed) == 0) {
        return;
    }
    if (warren_fibre_is_switching()) {
        warren_fibre_interrupt(rank_of_thread());
        return;
    }
    const Acting acting(*signals);
    if (acting.is_too_deep()) {
        return;
    }
    sigset_t set;
    sigemptyset(&set);
    if (number != 0) {
        sigaddset(&set, number);
    }
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    act_on_pending(*signals);
}

bool waits_for_signal(std::uint32_t rank, int number) {
    RankSignals* signals = signals_of_rank(rank);
    if (signals == nullptr) {
        return false;
    }
    const Held held(*signals);
    return signals->waits && signals->waits_for_any &&
           ((signals->awaited & bit(number)) != 0 || is_handler(actions().of(rank, number)));
}

sigset_t signals_blocked_by_caller() {
    sigset_t set;
    set_mask(SIG_BLOCK, nullptr, &set);
    return set;
}

bool blocks_signal(std::uint32_t rank, int number) {
    const RankSignals* signals = signals_of_rank(rank);
    return signals != nullptr && (signals->blocked & bit(number)) != 0;
}

std::span<const warren_image_binding> mask_bindings() {
    static const warren_image_binding bindings[] = {
        {"sigprocmask", reinterpret_cast<void*>(&set_mask_of_process)},
        {"pthread_sigmask", reinterpret_cast<void*>(&set_mask)},
        {"sighold", reinterpret_cast<void*>(&hold_signal)},
        {"sigrelse", reinterpret_cast<void*>(&release_signal)},
        {"sigpending", reinterpret_cast<void*>(&list_pending)},
        {"setcontext", reinterpret_cast<void*>(&set_context)},
        {"swapcontext", reinterpret_cast<void*>(&swap_context)},
    };
    return bindings;
}

} // namespace warren::launch
