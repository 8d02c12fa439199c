#include "launch/host/thread_signals.hpp"

#include <atomic>
#include <cerrno>
#include <memory>
#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "image/host_interface.hpp"
#include "launch/host/actions.hpp"
#include "launch/host/children.hpp"
#include "launch/host/dispatch.hpp"
#include "launch/host/passed_signals.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/signal_owners.hpp"
#include "launch/host/thread_status.hpp"
#include "runtime/fibres/api.hpp"

namespace warren::launch {

namespace {

struct ThreadSignals {
    bool fibres = false;
    void (*watch)(int number) = nullptr;
    std::unique_ptr<std::atomic<pid_t>[]> first; // threads; 0: a fibre, or not begun
    std::atomic<bool> has_kept{false};           // a signal may be in a queue
};

// Others see this of the calling thread; it is in these waits, of which the innermost comes first.
thread_local SignalThread own_signals;
thread_local SignalWaiter* own_waits = nullptr;

ThreadSignals& thread_signals() {
    static ThreadSignals& only = *new ThreadSignals; // outlives everything
    return only;
}

// A thread that lets the signal through, as far as its program is concerned: it may block signals
// for a moment, after which the signal comes. Others than the calling one come first. Null: there
// is none. The caller holds the signals.
SignalThread* find_thread(RankSignals& signals, int number) {
    SignalThread* own = nullptr;
    for (SignalThread* one = signals.threads; one != nullptr; one = one->next) {
        if ((one->mask.load(std::memory_order_seq_cst) & bit(number)) != 0) {
            continue;
        }
        if (one != &own_signals) {
            return one;
        }
        own = one;
    }
    return own;
}

// The signal comes to the thread for its rank. False, and errno. The caller holds the signals.
bool pass_to(SignalThread& thread, const siginfo_t& information) {
    const bool passed = pass_on(thread.number, Passed::to_rank, information);
    if (passed) {
        thread.passed.fetch_add(1, std::memory_order_relaxed);
    }
    return passed;
}

void add_thread(RankSignals& signals, Mask mask) {
    own_signals.number = own_thread();
    own_signals.mask.store(mask, std::memory_order_seq_cst);
    own_signals.next = nullptr;
    const Held held(signals);
    SignalThread** place = &signals.threads;
    while (*place != nullptr && *place != &own_signals) {
        place = &(*place)->next;
    }
    *place = &own_signals;
}

// A waiter of sigwait looks into the queue when it is told to; others get the signal itself.
bool give_to_waiter(SignalWaiter& waiter, RankSignals& signals, const siginfo_t& information) {
    if (!waiter.takes) {
        return pass_to(*waiter.thread, information);
    }
    if (!put_in_queue(signals, information)) {
        return false;
    }
    waiter.told += pass_on(waiter.thread->number, Passed::to_wake, information) ? 1 : 0;
    return true;
}

// The calling thread lets these through no more: those that have been sent to it for the rank and
// haven't come are for other threads. The kernel does so with those of a process.
void give_back(RankSignals& signals, Mask mask) {
    if (!thread_signals().has_kept.load(std::memory_order_seq_cst)) {
        return;
    }
    const BlockedSignals blocked;
    while (true) {
        Mask pending = 0;
        {
            const Held held(signals); // whoever has looked at this thread's mask has ended
            const std::uint32_t passed = own_signals.passed.load(std::memory_order_relaxed);
            if (own_signals.taken == passed) {
                return;
            }
            pending = signals_of_thread(own_signals.number, "\nSigPnd:", 0);
            if (pending == 0) {
                own_signals.taken = passed; // the kernel has merged some
            }
        }
        const sigset_t set = set_of(pending & mask);
        constexpr timespec at_once{};
        siginfo_t information{};
        if ((pending & mask) == 0 || sigtimedwait(&set, &information, &at_once) <= 0) {
            return;
        }
        siginfo_t its = information;
        const Passed why = take_passed(its);
        if (why == Passed::to_rank) {
            ++own_signals.taken;
            send_to_rank(rank_of_thread(), its);
        } else if (why != Passed::to_wake) { // for this thread alone
            syscall(SYS_rt_tgsigqueueinfo, getpid(), own_signals.number, its.si_signo,
                    &information);
            mask &= ~bit(its.si_signo);
        }
    }
}

void add_waiter(RankSignals& signals, SignalWaiter& waiter) {
    thread_signals().has_kept.store(true, std::memory_order_seq_cst);
    waiter.thread = &own_signals;
    const Held held(signals);
    waiter.outer = own_waits;
    own_waits = &waiter;
    waiter.next = signals.waiters;
    signals.waiters = &waiter;
}

// The calling thread takes back what has been sent to it to have it look into the queue, or as it
// waited in sigwait.
void take_back(RankSignals& signals, SignalWaiter& waiter) {
    const sigset_t set = set_of(waiter.mask);
    constexpr timespec at_once{};
    siginfo_t information{};
    while (waiter.takes && waiter.heard < waiter.told &&
           sigtimedwait(&set, &information, &at_once) > 0) {
        const Passed why = take_passed(information);
        if (why == Passed::to_wake) {
            ++waiter.heard;
            continue;
        }
        own_signals.taken += why == Passed::to_rank ? 1 : 0;
        const Held held(signals);
        put_in_queue(signals, information);
    }
}

// The waiter is the calling thread's. False: it has been removed already.
bool remove_waiter(RankSignals& signals, SignalWaiter& waiter) {
    const Held held(signals);
    SignalWaiter** place = &own_waits;
    while (*place != nullptr && *place != &waiter) {
        place = &(*place)->outer;
    }
    if (*place == nullptr) {
        return false;
    }
    *place = waiter.outer;
    place = &signals.waiters;
    while (*place != &waiter) {
        place = &(*place)->next;
    }
    *place = waiter.next;
    return true;
}

void end_wait(RankSignals& signals, SignalWaiter& waiter) {
    const int error = errno;
    if (remove_waiter(signals, waiter)) {
        take_back(signals, waiter);
        give_back(signals, own_signals.mask.load(std::memory_order_relaxed));
    }
    errno = error;
}

// A wait of sigwait and its kin.
class Taking {
  public:
    Taking(RankSignals& signals, Mask mask) : signals_(signals) {
        waiter_.mask = mask;
        waiter_.takes = true;
        add_waiter(signals, waiter_);
    }
    ~Taking() { end_wait(signals_, waiter_); }
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;

    void hear() { ++waiter_.heard; }

  private:
    RankSignals& signals_;
    SignalWaiter waiter_{};
};

// False: the calling thread is none that takes signals.
bool remove_thread(RankSignals& signals) {
    const Held held(signals);
    SignalThread** place = &signals.threads;
    while (*place != nullptr && *place != &own_signals) {
        place = &(*place)->next;
    }
    if (*place == nullptr) {
        return false;
    }
    *place = own_signals.next;
    return true;
}

// A kernel thread of the rank's program begins.
void note_beginning(Mask mask) {
    if (RankSignals* signals = signals_of_thread_caller()) {
        add_thread(*signals, mask);
    }
}

// It ends: what has been sent to it for the rank, and hasn't come, is for another thread.
void note_end() {
    RankSignals* signals = signals_of_thread_caller();
    if (signals == nullptr) {
        return;
    }
    if (remove_thread(*signals)) {
        give_back(*signals, ~Mask{0});
    }
}

} // namespace

pid_t first_thread(std::uint32_t rank) {
    return thread_signals().first[rank].load(std::memory_order_acquire);
}

std::uint32_t rank_of_kernel_thread(pid_t number) {
    for (std::uint32_t rank = 0; RankSignals* signals = signals_of_rank(rank); ++rank) {
        const Held held(*signals);
        for (const SignalThread* one = signals->threads; one != nullptr; one = one->next) {
            if (one->number == number) {
                return rank;
            }
        }
    }
    return no_rank;
}

void note_come() {
    ++own_signals.taken;
}

bool offer_to_threads(RankSignals& signals, const siginfo_t& information) {
    thread_signals().has_kept.store(true, std::memory_order_seq_cst); // before it looks at masks
    if (SignalWaiter* waiter = find_waiter(signals, information.si_signo)) {
        return give_to_waiter(*waiter, signals, information);
    }
    SignalThread* thread = find_thread(signals, information.si_signo);
    return thread != nullptr && pass_to(*thread, information);
}

bool post_to_rank(std::uint32_t rank, const siginfo_t& information) {
    RankSignals* signals = signals_of_rank(rank);
    if (signals == nullptr) {
        return true;
    }
    const int number = information.si_signo;
    const bool own_takes = rank_of_thread() == rank && own_thread() != first_thread(rank) &&
                           (mask_of_thread() & bit(number)) == 0;
    thread_signals().has_kept.store(true, std::memory_order_seq_cst); // before it looks at masks
    const Held held(*signals);
    if (SignalWaiter* waiter = find_waiter(*signals, number)) {
        return give_to_waiter(*waiter, *signals, information);
    }
    SignalThread* receiver = find_thread(*signals, number);
    if (own_takes && (receiver == nullptr || receiver->number != first_thread(rank))) {
        receiver = &own_signals;
    }
    return receiver != nullptr ? pass_to(*receiver, information)
                               : put_in_queue(*signals, information);
}

void take_pending(RankSignals& signals, Mask let_through) {
    if (!thread_signals().has_kept.load(std::memory_order_seq_cst)) {
        return;
    }
    siginfo_t information{};
    while (true) {
        {
            const Held held(signals); // whoever has looked at this thread's mask has ended
            if ((signals.pending.load(std::memory_order_relaxed)) == 0) {
                return;
            }
            // A fibre that waits is about to act on what it has not blocked.
            let_through &= thread_signals().fibres ? signals.blocked & ~signals.awaited : ~Mask{0};
        }
        if (!take_from_queue(signals, let_through, information, Taker::other_thread)) {
            return;
        }
        const Held held(signals);
        if (!pass_to(own_signals, information)) { // the user has too many pending
            put_in_queue(signals, information);
            return;
        }
    }
}

void prepare_thread_signals(std::uint32_t ranks, bool fibres, void (*watch)(int number)) {
    thread_signals().fibres = fibres;
    thread_signals().watch = watch;
    thread_signals().first = std::make_unique<std::atomic<pid_t>[]>(ranks);
    warren_image_watch_threads(note_beginning, note_end);
}

void note_signal_thread(std::uint32_t rank, const sigset_t& blocked) {
    RankSignals* signals = signals_of_rank(rank);
    if (signals != nullptr && !thread_signals().fibres) {
        thread_signals().first[rank].store(own_thread(), std::memory_order_release);
        add_thread(*signals, mask_of(blocked));
    }
}

void end_signal_thread(std::uint32_t rank) {
    RankSignals* signals = signals_of_rank(rank);
    if (signals != nullptr) {
        thread_signals().first[rank].store(0, std::memory_order_release);
        remove_thread(*signals);
    }
}

RankSignals* signals_of_thread_caller() {
    return thread_signals().fibres && warren_fibre_is_one() ? nullptr
                                                            : signals_of_rank(rank_of_thread());
}

Mask noted_mask() {
    return own_signals.mask.load(std::memory_order_relaxed);
}

void note_mask(Mask mask) {
    RankSignals* signals = signals_of_thread_caller();
    const Mask before = own_signals.mask.exchange(mask, std::memory_order_seq_cst);
    if (signals != nullptr && (before & ~mask) != 0) {
        take_pending(*signals, ~mask); // comes when the handler has returned
    }
}

int set_mask_of_thread(int how, const sigset_t* set, sigset_t* former) {
    RankSignals* signals = set != nullptr ? signals_of_thread_caller() : nullptr;
    if (signals == nullptr || (how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK)) {
        return pthread_sigmask(how, set, former);
    }
    if (how != SIG_UNBLOCK && sigismember(set, SIGCHLD) == 1) {
        thread_signals().watch(SIGCHLD); // of which rank's child it tells
    }
    const Mask in_kernel = mask_of_thread();
    const Mask wanted = mask_of(*set);
    const Mask now = how == SIG_BLOCK     ? in_kernel | wanted
                     : how == SIG_UNBLOCK ? in_kernel & ~wanted
                                          : wanted;
    if ((now & ~in_kernel) != 0) {
        const sigset_t more = set_of(now & ~in_kernel);
        pthread_sigmask(SIG_BLOCK, &more, nullptr);
    }
    const Mask before = own_signals.mask.exchange(now, std::memory_order_seq_cst);
    if ((now & ~before) != 0) {
        give_back(*signals, now & ~before);
    }
    // They come together, when the kernel lets them through; but it would merge one with the same
    // that is pending for the thread alone.
    if (signals->pending.load(std::memory_order_relaxed) != 0) {
        take_pending(*signals, ~now & ~signals_of_thread(own_signals.number, "\nSigPnd:", 0));
    }
    const sigset_t all = set_of(now);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    take_pending(*signals, ~now);
    if (former != nullptr) {
        *former = set_of(in_kernel);
    }
    return 0;
}

int list_pending_of_thread(sigset_t* set) {
    const int result = sigpending(set);
    RankSignals* signals = signals_of_thread_caller();
    if (signals == nullptr || result != 0) {
        return result;
    }
    signal_ended_children();
    Mask mask = mask_of(*set);
    if ((signals_of_thread(own_thread(), "\nSigPnd:", 0) & bit(SIGCHLD)) == 0) {
        mask &= ~bit(SIGCHLD); // maybe another rank's child's
    }
    *set = set_of(mask | (pending_in_queue(*signals, Taker::other_thread) & mask_of_thread()));
    return 0;
}

// The C library gives the kernel the context's mask.
int set_context(const ucontext_t* context) {
    if (signals_of_thread_caller() != nullptr) {
        note_mask(mask_of(context->uc_sigmask));
    }
    return setcontext(context);
}

int swap_context(ucontext_t* from, const ucontext_t* to) {
    if (signals_of_thread_caller() == nullptr) {
        return swapcontext(from, to);
    }
    const Mask mask = noted_mask();
    note_mask(mask_of(to->uc_sigmask));
    const int result = swapcontext(from, to);
    if (result != 0) {
        note_mask(mask);
    }
    return result;
}

LetThrough::LetThrough(const sigset_t* mask)
    : signals_(mask != nullptr ? signals_of_thread_caller() : nullptr) {
    if (signals_ != nullptr) {
        waiter_.mask = ~mask_of(*mask);
        add_waiter(*signals_, waiter_);
        take_pending(*signals_, waiter_.mask & mask_of_thread());
    }
}

LetThrough::~LetThrough() {
    if (signals_ != nullptr) {
        end_wait(*signals_, waiter_);
    }
}

Mask mask_of_wait(Mask interrupted) {
    if (own_waits == nullptr || own_waits->takes || own_waits->entered) {
        return interrupted;
    }
    own_waits->entered = true; // the first handler ends the wait
    return ~own_waits->mask;
}

void leave_waits() {
    while (own_waits != nullptr) {
        RankSignals* signals = signals_of_thread_caller();
        if (signals == nullptr) { // in a child of fork
            own_waits = nullptr;
            return;
        }
        end_wait(*signals, *own_waits);
    }
}

int await_in_thread(RankSignals& signals, const sigset_t& set, siginfo_t& information,
                    std::uint64_t end_ns) {
    const Mask mask = mask_of(set);
    if ((mask & bit(SIGCHLD)) != 0) {
        signal_ended_children();
    }
    const std::uint32_t handlers = handlers_of_thread();
    Taking taking(signals, mask);
    while (true) {
        constexpr timespec at_once{};
        int number = sigtimedwait(&set, &information, &at_once); // the thread's own come first
        if (number < 0 && take_from_queue(signals, mask, information, Taker::other_thread)) {
            note_taken(information);
            return information.si_signo;
        }
        const std::uint64_t now = end_ns != UINT64_MAX ? monotonic_ns() : 0;
        const std::uint64_t left = end_ns > now ? end_ns - now : 0;
        constexpr std::uint64_t ns_of_s = 1'000'000'000;
        const timespec limit{.tv_sec = static_cast<time_t>(left / ns_of_s),
                             .tv_nsec = static_cast<long>(left % ns_of_s)};
        if (number < 0) {
            number = sigtimedwait(&set, &information, end_ns != UINT64_MAX ? &limit : nullptr);
        }
        if (number < 0) {
            if (errno == EINTR && handlers_of_thread() == handlers) {
                continue; // another rank's
            }
            return -1;
        }
        const Passed passed = take_passed(information);
        own_signals.taken += passed == Passed::to_rank ? 1 : 0;
        if (passed == Passed::to_wake) {
            taking.hear();
        } else if (passed != Passed::none || is_for_caller(information)) {
            note_taken(information);
            return number;
        }
    }
}

} // namespace warren::launch
