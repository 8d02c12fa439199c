#include "launch/host/fibre_signals.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <threads.h>
#include <unistd.h>

#include "base/blocked_signals.hpp"
#include "base/futex.hpp"
#include "image/host_interface.hpp"
#include "launch/host/actions.hpp"
#include "launch/host/children.hpp"
#include "launch/host/crash.hpp"
#include "launch/host/passed_signals.hpp"
#include "launch/host/ranks.hpp"
#include "runtime/fibres/api.hpp"

namespace warren::launch {

namespace {

using Mask = std::uint64_t; // bit n - 1: signal n

constexpr Mask bit(int number) {
    return Mask{1} << (number - 1);
}

// Further instances of a real-time signal are lost, as beyond a process's RLIMIT_SIGPENDING.
constexpr std::size_t longest_queue = 64;

// How long a fibre sleeps before it looks whether a child has ended or, in a handler, whether a
// signal has come.
constexpr std::uint64_t first_look_ns = 20'000;
constexpr std::uint64_t longest_look_ns = 2'000'000;

} // namespace

// All zeros at first: the pages of ranks without pending signals take no memory.
struct RankSignals {
    std::atomic<bool> locked;
    Mask blocked;
    Mask awaited; // by sigwait and its kin
    bool waits;   // so signals are its own fibre's to take
    bool waits_for_any;
    Mask blocked_before_wait;
    pid_t calling; // the thread in which the fibre waits in a call of the kernel; 0: it doesn't
    std::atomic<std::uint32_t> arrived; // counts those that came while it waited
    std::atomic<std::uint32_t> pending; // changes while it is held
    siginfo_t queue[longest_queue];     // in the order in which they have come
};

namespace {

struct FibreSignals {
    std::uint32_t ranks = 0;
    pid_t process = 0;
    RankSignals* all = nullptr;
    Mask of_process = 0; // blocked in the kernel since the process began
    SignalFunctions functions{};
};

FibreSignals& fibre_signals() {
    static FibreSignals& only = *new FibreSignals; // outlives everything
    return only;
}

// Holds a rank's signals. No signal comes to the calling thread meanwhile, which would hold them
// too.
class Held {
  public:
    explicit Held(RankSignals& signals) : signals_(signals) {
        while (signals_.locked.exchange(true, std::memory_order_acquire)) {
            sched_yield();
        }
    }
    ~Held() { signals_.locked.store(false, std::memory_order_release); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

  private:
    RankSignals& signals_;
    const BlockedSignals blocked_; // restored after the lock is given back
};

Mask mask_of(const sigset_t& set) {
    Mask mask = 0;
    for (int number = 1; number < NSIG; ++number) {
        mask |= sigismember(&set, number) == 1 ? bit(number) : 0;
    }
    return mask;
}

sigset_t set_of(Mask mask) {
    sigset_t set;
    sigemptyset(&set);
    for (int number = 1; number < NSIG; ++number) {
        if ((mask & bit(number)) != 0) {
            sigaddset(&set, number);
        }
    }
    return set;
}

// The kernel's mask of the calling fibre, which is in a handler, or has left one by longjmp.
Mask blocked_in_kernel() {
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, nullptr, &set);
    return mask_of(set) & ~fibre_signals().of_process;
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

// The pending signal of the mask that has the lowest number, the first that has come of those.
bool take(RankSignals& signals, Mask mask, siginfo_t& taken) {
    if (signals.pending.load(std::memory_order_relaxed) == 0) {
        return false; // who waits looks again when one has arrived
    }
    const Held held(signals);
    siginfo_t* const end = signals.queue + signals.pending;
    siginfo_t* first = end;
    for (siginfo_t* one = signals.queue; one != end; ++one) {
        if ((mask & bit(one->si_signo)) != 0 && (first == end || one->si_signo < first->si_signo)) {
            first = one;
        }
    }
    if (first == end) {
        return false;
    }
    taken = *first;
    std::copy(first + 1, end, first);
    --signals.pending;
    return true;
}

// While a rank's fibre acts on a signal that has come during a wait, it does not wait: a handler
// may leave by siglongjmp and never come back to it.
class InterruptedWait {
  public:
    explicit InterruptedWait(RankSignals& signals)
        : signals_(signals),
          waits_(signals.waits),
          for_any_(signals.waits_for_any),
          blocked_(signals.blocked),
          awaited_(signals.awaited),
          before_(signals.blocked_before_wait) {
        if (waits_) {
            set(before_, 0, false);
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

// Acts on what is pending and not blocked, in the rank's fibre. `has_mask`: a wait's mask counts,
// also in a handler.
Handled act_on_pending(RankSignals& signals, bool has_mask = false) {
    const std::uint32_t rank = rank_of_thread();
    Handled handled = Handled::none;
    siginfo_t information{};
    while (signals.pending.load(std::memory_order_relaxed) != 0) {
        const Mask blocked = signals.blocked | (has_mask ? 0 : blocked_in_kernel());
        if (!take(signals, ~blocked & ~signals.awaited, information)) {
            break;
        }
        const int flags = actions().of(rank, information.si_signo).sa_flags;
        InterruptedWait wait(signals);
        if (fibre_signals().functions.deliver(rank, information)) {
            const Handled its = (flags & SA_RESTART) != 0 ? Handled::restart : Handled::interrupt;
            handled = std::max(handled, its);
        }
        wait.resume();
    }
    return handled;
}

// `in_kernel`: blocked besides.
bool has_something_to_do(RankSignals& signals, Mask in_kernel) {
    const Held held(signals);
    const Mask mask = ~(signals.blocked | in_kernel);
    return std::any_of(signals.queue, signals.queue + signals.pending,
                       [&](const siginfo_t& one) { return (mask & bit(one.si_signo)) != 0; });
}

// ---- What programs call

int set_mask(int how, const sigset_t* set, sigset_t* former) {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr ||
        (set != nullptr && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK)) {
        return pthread_sigmask(how, set, former);
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
        return sigpending(set);
    }
    signal_ended_children();
    const Mask in_kernel = blocked_in_kernel();
    Mask mask = 0;
    const Held held(*signals);
    for (std::uint32_t i = 0; i < signals->pending; ++i) {
        mask |= bit(signals->queue[i].si_signo);
    }
    *set = set_of(mask & (signals->blocked | in_kernel));
    return 0;
}

// A thread blocks what the fibre blocks that makes it.
template <typename Make>
int make_thread(Make make) {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr || signals->blocked == 0) {
        return make();
    }
    const sigset_t set = set_of(signals->blocked);
    sigset_t former;
    pthread_sigmask(SIG_BLOCK, &set, &former);
    const int result = make();
    pthread_sigmask(SIG_SETMASK, &former, nullptr);
    return result;
}

int make_posix_thread(pthread_t* made, const pthread_attr_t* attributes, void* (*start)(void*),
                      void* argument) {
    return make_thread(
        [&] { return warren_image_start_thread(made, attributes, start, argument); });
}

int make_c_thread(thrd_t* made, thrd_start_t start, void* argument) {
    return make_thread([&] { return warren_image_start_c_thread(made, start, argument); });
}

// `waits`: the fibre has to be told, also in this thread, which waits in the kernel.
bool put_in_queue(RankSignals& signals, const siginfo_t& information, Mask in_kernel, bool& waits,
                  pid_t& calling) {
    const int number = information.si_signo;
    const Held held(signals);
    // If the rank waits, another thread raises what ends a process, and is to go no further.
    waits = signals.waits && !is_crash_signal(number);
    if (((signals.blocked | in_kernel) & bit(number)) == 0 && !waits) {
        return false;
    }
    const bool is_there = std::any_of(signals.queue, signals.queue + signals.pending,
                                      [&](const siginfo_t& one) { return one.si_signo == number; });
    if ((!is_there || number >= __SIGRTMIN) && signals.pending < longest_queue) {
        signals.queue[signals.pending++] = information;
    }
    signals.arrived.fetch_add(1, std::memory_order_seq_cst);
    calling = waits ? signals.calling : 0;
    return true;
}

} // namespace

int set_signal_mask(int how, const sigset_t* set, sigset_t* former) {
    return set_mask(how, set, former);
}

RankSignals* signals_of_caller() {
    const std::uint32_t rank = rank_of_thread();
    return rank < fibre_signals().ranks && warren_fibre_is_one() &&
                   getpid() == fibre_signals().process
               ? &fibre_signals().all[rank]
               : nullptr;
}

bool watch_for_thread(const sigset_t& awaited) {
    const bool is_one = rank_of_thread() < fibre_signals().ranks && !warren_fibre_is_one() &&
                        getpid() == fibre_signals().process;
    if (is_one) {
        watch_all(mask_of(awaited));
    }
    return is_one;
}

bool take_for_thread(const sigset_t& awaited, siginfo_t& information) {
    return take(fibre_signals().all[rank_of_thread()], mask_of(awaited), information);
}

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

bool SignalWait::take_awaited(siginfo_t& information) {
    return take(signals_, signals_.awaited, information);
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
    own.all = static_cast<RankSignals*>(std::calloc(ranks, sizeof(RankSignals)));
    own.ranks = own.all != nullptr ? ranks : 0;
    own.process = getpid();
    own.functions = functions;
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, nullptr, &set);
    own.of_process = mask_of(set);
    for (std::uint32_t rank = 0; rank < own.ranks && own.of_process != 0; ++rank) {
        own.all[rank].blocked = own.of_process;
    }
}

bool hold_back(std::uint32_t rank, const siginfo_t& information, bool by_caller) {
    if (rank >= fibre_signals().ranks || getpid() != fibre_signals().process) {
        return false;
    }
    RankSignals& signals = fibre_signals().all[rank];
    const Mask in_kernel = by_caller && signals_of_caller() == &signals ? blocked_in_kernel() : 0;
    bool waits = false;
    pid_t calling = 0;
    if (!put_in_queue(signals, information, in_kernel, waits, calling)) {
        return false;
    }
    if (waits) {
        warren_fibre_tell(signals.arrived);
    }
    if (calling != 0 && calling != own_thread()) {
        pass_on(calling, Passed::to_wake, information);
    }
    return true;
}

void act_on_held_back(int number) {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr || signals->waits ||
        signals->pending.load(std::memory_order_relaxed) == 0) {
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

void discard_signal(std::uint32_t rank, int number) {
    if (rank < fibre_signals().ranks && getpid() == fibre_signals().process) {
        RankSignals& signals = fibre_signals().all[rank];
        const Held held(signals);
        siginfo_t* const end =
            std::remove_if(signals.queue, signals.queue + signals.pending,
                           [&](const siginfo_t& one) { return one.si_signo == number; });
        signals.pending = static_cast<std::uint32_t>(end - signals.queue);
    }
}

bool waits_for_signal(std::uint32_t rank, int number) {
    if (rank >= fibre_signals().ranks) {
        return false;
    }
    RankSignals& signals = fibre_signals().all[rank];
    const Held held(signals);
    return signals.waits && signals.waits_for_any &&
           ((signals.awaited & bit(number)) != 0 || is_handler(actions().of(rank, number)));
}

sigset_t signals_blocked_by_caller() {
    sigset_t set;
    set_mask(SIG_BLOCK, nullptr, &set);
    return set;
}

bool blocks_signal(std::uint32_t rank, int number) {
    return rank < fibre_signals().ranks && (fibre_signals().all[rank].blocked & bit(number)) != 0;
}

std::span<const warren_image_binding> fibre_signal_bindings() {
    static const warren_image_binding bindings[] = {
        {"pthread_create", reinterpret_cast<void*>(&make_posix_thread)},
        {"thrd_create", reinterpret_cast<void*>(&make_c_thread)},
        {"sigprocmask", reinterpret_cast<void*>(&set_mask_of_process)},
        {"pthread_sigmask", reinterpret_cast<void*>(&set_mask)},
        {"sighold", reinterpret_cast<void*>(&hold_signal)},
        {"sigrelse", reinterpret_cast<void*>(&release_signal)},
        {"sigpending", reinterpret_cast<void*>(&list_pending)},
    };
    return bindings;
}

} // namespace warren::launch
