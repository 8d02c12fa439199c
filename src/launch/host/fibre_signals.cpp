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

// All zeros at first: the pages of ranks without pending signals take no memory.
struct RankSignals {
    std::atomic<bool> locked;
    Mask blocked;
    Mask awaited; // by sigwait and its kin
    bool waits;   // so signals are its own fibre's to take
    Mask blocked_before_wait;
    std::uint32_t pending;
    siginfo_t queue[longest_queue]; // in the order in which they have come
};

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

// Null: the caller is no fibre, or in a child of fork, whose signals are the kernel's.
RankSignals* signals_of_caller() {
    const std::uint32_t rank = rank_of_thread();
    return rank < fibre_signals().ranks && warren_fibre_is_one() &&
                   getpid() == fibre_signals().process
               ? &fibre_signals().all[rank]
               : nullptr;
}

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

// Those that nobody can block, and what the processor raises.
bool is_always_the_kernels(int number) {
    return number == SIGKILL || number == SIGSTOP ||
           (is_crash_signal(number) && number != SIGPIPE && number != SIGABRT) ||
           (number >= __SIGRTMIN && number < SIGRTMIN);
}

// What a rank blocks or waits for has to come to the dispatcher.
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
        signals_.blocked_before_wait = before_;
    }

    RankSignals& signals_;
    const bool waits_;
    const Mask blocked_;
    const Mask awaited_;
    const Mask before_;
};

// Acts on what is pending and not blocked, in the rank's fibre. Whether a handler has run.
bool act_on_pending(RankSignals& signals) {
    const std::uint32_t rank = rank_of_thread();
    bool handled = false;
    siginfo_t information{};
    while (take(signals, ~signals.blocked & ~signals.awaited, information)) {
        handled |= is_handler(actions().of(rank, information.si_signo));
        InterruptedWait wait(signals);
        fibre_signals().functions.deliver(rank, information);
        wait.resume();
    }
    return handled;
}

// ---- What programs call

int set_mask(int how, const sigset_t* set, sigset_t* former) {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr ||
        (set != nullptr && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK)) {
        return pthread_sigmask(how, set, former);
    }
    const Mask before = signals->blocked;
    if (set != nullptr) {
        const Mask wanted = mask_of(*set) & ~(bit(SIGKILL) | bit(SIGSTOP));
        const Mask now = how == SIG_BLOCK     ? before | wanted
                         : how == SIG_UNBLOCK ? before & ~wanted
                                              : wanted;
        watch_all(now & ~before);
        {
            const Held held(*signals);
            signals->blocked = now;
        }
        if ((before & ~now) != 0) {
            const sigset_t of_process = set_of(before & ~now & fibre_signals().of_process);
            pthread_sigmask(SIG_UNBLOCK, &of_process, nullptr);
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
    Mask mask = 0;
    const Held held(*signals);
    for (std::uint32_t i = 0; i < signals->pending; ++i) {
        mask |= bit(signals->queue[i].si_signo);
    }
    *set = set_of(mask & signals->blocked);
    return 0;
}

// From here on the rank's signals come to its own fibre, which asks for them now and then: a signal
// handler can't wake a fibre.
class Wait {
  public:
    Wait(RankSignals& signals, Mask blocked, Mask awaited)
        : signals_(signals), former_(signals.blocked) {
        watch_all(blocked | awaited);
        const Held held(signals);
        signals.blocked = blocked;
        signals.awaited = awaited;
        signals.waits = true;
        signals.blocked_before_wait = former_;
    }
    ~Wait() {
        {
            const Held held(signals_);
            signals_.blocked = former_;
            signals_.awaited = 0;
            signals_.waits = false;
        }
        act_on_pending(signals_);
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    // Sleeps, but not beyond `end_ns`. False: it is that time.
    bool sleep(std::uint64_t end_ns) {
        constexpr std::uint64_t longest_ns = 2'000'000;
        signal_ended_children();
        const std::uint64_t now = monotonic_ns();
        if (now >= end_ns) {
            return false;
        }
        warren_fibre_sleep_until(std::min(now + pause_ns_, end_ns));
        pause_ns_ = std::min(2 * pause_ns_, longest_ns);
        return true;
    }

  private:
    static constexpr std::uint64_t first_pause_ns = 20'000;

    RankSignals& signals_;
    Mask former_;
    std::uint64_t pause_ns_ = first_pause_ns;
};

int suspend(RankSignals& signals, Mask blocked) {
    {
        Wait wait(signals, blocked, 0);
        while (!act_on_pending(signals)) {
            wait.sleep(UINT64_MAX);
        }
    }
    errno = EINTR;
    return -1;
}

int wait_for_handler() {
    RankSignals* signals = signals_of_caller();
    return signals == nullptr ? pause() : suspend(*signals, signals->blocked);
}

int wait_with_mask(const sigset_t* set) {
    RankSignals* signals = signals_of_caller();
    return signals == nullptr ? sigsuspend(set) : suspend(*signals, mask_of(*set));
}

// The number of a signal of the set; -1: EINTR, as a handler has run, or EAGAIN, as it is `end_ns`.
int await(RankSignals& signals, const sigset_t& set, siginfo_t& information, std::uint64_t end_ns) {
    const Mask awaited = mask_of(set);
    Wait wait(signals, signals.blocked, awaited);
    while (true) {
        if (take(signals, awaited, information)) {
            return information.si_signo;
        }
        if (act_on_pending(signals)) {
            errno = EINTR;
            return -1;
        }
        if (!wait.sleep(end_ns)) {
            errno = EAGAIN;
            return -1;
        }
    }
}

int wait_with_information(const sigset_t* set, siginfo_t* information) {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr) {
        return sigwaitinfo(set, information);
    }
    siginfo_t its{};
    const int number = await(*signals, *set, its, UINT64_MAX);
    if (number > 0 && information != nullptr) {
        *information = its;
    }
    return number;
}

int wait_until(const sigset_t* set, siginfo_t* information, const timespec* limit) {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr) {
        return sigtimedwait(set, information, limit);
    }
    constexpr long ns_of_s = 1'000'000'000;
    if (limit != nullptr &&
        (limit->tv_sec < 0 || limit->tv_nsec < 0 || limit->tv_nsec >= ns_of_s)) {
        errno = EINVAL;
        return -1;
    }
    const std::uint64_t end_ns =
        limit == nullptr ? UINT64_MAX
                         : monotonic_ns() + static_cast<std::uint64_t>(limit->tv_sec) * ns_of_s +
                               static_cast<std::uint64_t>(limit->tv_nsec);
    siginfo_t its{};
    const int number = await(*signals, *set, its, end_ns);
    if (number > 0 && information != nullptr) {
        *information = its;
    }
    return number;
}

int wait_for_any_of(const sigset_t* set, int* taken) {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr) {
        return sigwait(set, taken);
    }
    siginfo_t information{};
    int number = -1;
    do { // a handler ends no sigwait
        number = await(*signals, *set, information, UINT64_MAX);
    } while (number < 0);
    *taken = number;
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

// The child's signals are the kernel's.
void begin_child() {
    const std::uint32_t rank = rank_of_thread();
    if (rank < fibre_signals().ranks) {
        const sigset_t set = set_of(fibre_signals().all[rank].blocked);
        pthread_sigmask(SIG_SETMASK, &set, nullptr);
    }
}

} // namespace

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
    pthread_atfork(nullptr, nullptr, begin_child);
}

bool hold_back(std::uint32_t rank, const siginfo_t& information) {
    if (rank >= fibre_signals().ranks || getpid() != fibre_signals().process) {
        return false;
    }
    RankSignals& signals = fibre_signals().all[rank];
    const int number = information.si_signo;
    const Held held(signals);
    if ((signals.blocked & bit(number)) == 0 && !signals.waits) {
        return false;
    }
    const bool is_there = std::any_of(signals.queue, signals.queue + signals.pending,
                                      [&](const siginfo_t& one) { return one.si_signo == number; });
    if ((!is_there || number >= __SIGRTMIN) && signals.pending < longest_queue) {
        signals.queue[signals.pending++] = information;
    }
    return true;
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
    return signals.waits &&
           ((signals.awaited & bit(number)) != 0 || is_handler(actions().of(rank, number)));
}

sigset_t signals_blocked_by_caller() {
    const RankSignals* signals = signals_of_caller();
    return set_of(signals != nullptr ? signals->blocked : 0);
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
        {"pause", reinterpret_cast<void*>(&wait_for_handler)},
        {"sigsuspend", reinterpret_cast<void*>(&wait_with_mask)},
        {"sigwait", reinterpret_cast<void*>(&wait_for_any_of)},
        {"sigwaitinfo", reinterpret_cast<void*>(&wait_with_information)},
        {"sigtimedwait", reinterpret_cast<void*>(&wait_until)},
    };
    return bindings;
}

} // namespace warren::launch
