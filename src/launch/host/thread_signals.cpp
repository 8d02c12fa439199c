#include "launch/host/thread_signals.hpp"

#include <atomic>
#include <cerrno>
#include <memory>
#include <pthread.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "image/host_interface.hpp"
#include "launch/host/actions.hpp"
#include "launch/host/children.hpp"
#include "launch/host/dispatch.hpp"
#include "launch/host/passed_signals.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/thread_status.hpp"
#include "runtime/fibres/api.hpp"

namespace warren::launch {

namespace {

struct FirstThread {
    std::atomic<pid_t> number{0}; // 0: a fibre, or not begun
    std::atomic<warren_image*> image{nullptr};
};

struct ThreadSignals {
    bool fibres = false;
    void (*watch)(int number) = nullptr;
    std::unique_ptr<FirstThread[]> first;
    std::atomic<bool> has_kept{false}; // a signal may be in a queue
};

ThreadSignals& thread_signals() {
    static ThreadSignals& only = *new ThreadSignals; // outlives everything
    return only;
}

// Whether the thread has the signal neither blocked, but for a wait for it, nor ended.
bool takes(pid_t thread, int number) {
    constexpr std::uint64_t all = ~0ULL;
    return (signals_of_thread(thread, "\nSigBlk:", all) & bit(number)) == 0;
}

// Looks again, as threads block signals for moments, in which a lock of the image may be held, too.
pid_t find_other_thread(std::uint32_t rank, int number) {
    constexpr int looks = 4;
    constexpr timespec pause{.tv_sec = 0, .tv_nsec = 50'000};
    constexpr auto is_other = [](pid_t thread, int first) { return thread != first; };
    warren_image* image = thread_signals().first[rank].image.load(std::memory_order_acquire);
    const pid_t first = first_thread(rank);
    for (int look = 0; look < looks && image != nullptr; ++look) {
        if (const pid_t thread = warren_image_find_thread_of(image, takes, number)) {
            return thread;
        }
        if (warren_image_find_thread_of(image, is_other, first) == 0) {
            break;
        }
        nanosleep(&pause, nullptr);
    }
    return 0;
}

// A waiter of sigwait looks into the queue when it is told to; others get the signal itself.
bool give_to_waiter(SignalWaiter& waiter, RankSignals& signals, const siginfo_t& information) {
    if (!waiter.takes) {
        return pass_on(waiter.thread, Passed::to_rank, information);
    }
    put_in_queue(signals, information);
    waiter.told += pass_on(waiter.thread, Passed::to_wake, information) ? 1 : 0;
    return true;
}

void add_waiter(RankSignals& signals, SignalWaiter& waiter) {
    thread_signals().has_kept.store(true, std::memory_order_seq_cst);
    const Held held(signals);
    waiter.next = signals.waiters;
    signals.waiters = &waiter;
}

void remove_waiter(RankSignals& signals, SignalWaiter& waiter) {
    const Held held(signals);
    SignalWaiter** place = &signals.waiters;
    while (*place != &waiter) {
        place = &(*place)->next;
    }
    *place = waiter.next;
}

// A wait of sigwait and its kin.
class Taking {
  public:
    Taking(RankSignals& signals, Mask mask) : signals_(signals) {
        waiter_.thread = own_thread();
        waiter_.mask = mask;
        waiter_.takes = true;
        add_waiter(signals, waiter_);
    }
    ~Taking() {
        const int error = errno;
        remove_waiter(signals_, waiter_);
        take_back();
        errno = error;
    }
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;

    void hear() { ++heard_; }

  private:
    // Takes what has been sent to this thread since, only to have it look, or as it waited.
    void take_back() {
        const sigset_t set = set_of(waiter_.mask);
        constexpr timespec at_once{};
        siginfo_t information{};
        while (heard_ < waiter_.told && sigtimedwait(&set, &information, &at_once) > 0) {
            if (take_passed(information) == Passed::to_wake) {
                ++heard_;
            } else {
                const Held held(signals_);
                put_in_queue(signals_, information);
            }
        }
    }

    RankSignals& signals_;
    SignalWaiter waiter_{};
    std::uint32_t heard_ = 0;
};

} // namespace

pid_t first_thread(std::uint32_t rank) {
    return thread_signals().first[rank].number.load(std::memory_order_acquire);
}

bool offer_to_threads(std::uint32_t rank, RankSignals& signals, const siginfo_t& information) {
    if (SignalWaiter* waiter = find_waiter(signals, information.si_signo)) {
        return give_to_waiter(*waiter, signals, information);
    }
    const pid_t other = find_other_thread(rank, information.si_signo);
    return other != 0 && pass_on(other, Passed::to_rank, information);
}

bool post_to_rank(std::uint32_t rank, const siginfo_t& information) {
    RankSignals* signals = signals_of_rank(rank);
    if (signals == nullptr) {
        return true;
    }
    const int number = information.si_signo;
    const pid_t own = own_thread();
    const bool own_takes = rank_of_thread() == rank && own != first_thread(rank) &&
                           (mask_of_thread() & bit(number)) == 0;
    thread_signals().has_kept.store(true, std::memory_order_seq_cst); // before it looks at masks
    const Held held(*signals);
    if (SignalWaiter* waiter = find_waiter(*signals, number)) {
        return give_to_waiter(*waiter, *signals, information);
    }
    const pid_t first = first_thread(rank);
    const bool first_takes =
        first != 0 && (signals->first_mask.load(std::memory_order_seq_cst) & bit(number)) == 0;
    const pid_t receiver = first_takes ? first : own_takes ? own : find_other_thread(rank, number);
    if (receiver != 0) {
        return pass_on(receiver, Passed::to_rank, information);
    }
    put_in_queue(*signals, information);
    return true;
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
        if (!take_from_queue(signals, let_through, information)) {
            return;
        }
        pass_on(own_thread(), Passed::to_rank, information);
    }
}

void prepare_thread_signals(std::uint32_t ranks, bool fibres, void (*watch)(int number)) {
    thread_signals().fibres = fibres;
    thread_signals().watch = watch;
    thread_signals().first = std::make_unique<FirstThread[]>(ranks);
}

void note_signal_thread(std::uint32_t rank, warren_image* image, const sigset_t& blocked) {
    if (RankSignals* signals = signals_of_rank(rank)) {
        signals->first_mask.store(mask_of(blocked), std::memory_order_seq_cst);
    }
    FirstThread& first = thread_signals().first[rank];
    first.image.store(image, std::memory_order_release);
    first.number.store(thread_signals().fibres ? 0 : own_thread(), std::memory_order_release);
}

RankSignals* signals_of_thread_caller() {
    return thread_signals().fibres && warren_fibre_is_one() ? nullptr
                                                            : signals_of_rank(rank_of_thread());
}

Mask noted_mask(std::uint32_t rank) {
    RankSignals* signals = signals_of_rank(rank);
    return signals != nullptr ? signals->first_mask.load(std::memory_order_relaxed) : 0;
}

void restore_noted_mask(std::uint32_t rank, Mask mask) {
    RankSignals* signals = signals_of_rank(rank);
    if (signals != nullptr && first_thread(rank) == own_thread() &&
        signals->first_mask.exchange(mask, std::memory_order_seq_cst) != mask) {
        take_pending(*signals, ~mask); // comes when the handler has returned
    }
}

int set_mask_of_thread(int how, const sigset_t* set, sigset_t* former) {
    RankSignals* signals = set != nullptr ? signals_of_thread_caller() : nullptr;
    if (signals != nullptr && how != SIG_UNBLOCK && sigismember(set, SIGCHLD) == 1) {
        thread_signals().watch(SIGCHLD); // of which rank's child it tells
    }
    const int error = pthread_sigmask(how, set, former);
    if (signals != nullptr && error == 0) {
        const Mask now = mask_of_thread();
        if (first_thread(rank_of_thread()) == own_thread()) {
            signals->first_mask.store(now, std::memory_order_seq_cst);
        }
        take_pending(*signals, ~now);
    }
    return error;
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
    *set = set_of(mask | (pending_in_queue(*signals) & mask_of_thread()));
    return 0;
}

LetThrough::LetThrough(const sigset_t* mask)
    : signals_(mask != nullptr ? signals_of_thread_caller() : nullptr) {
    if (signals_ != nullptr) {
        waiter_.thread = own_thread();
        waiter_.mask = ~mask_of(*mask);
        add_waiter(*signals_, waiter_);
        take_pending(*signals_, waiter_.mask & mask_of_thread());
    }
}

LetThrough::~LetThrough() {
    if (signals_ != nullptr) {
        const int error = errno;
        remove_waiter(*signals_, waiter_);
        errno = error;
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
        if (take_from_queue(signals, mask, information)) {
            return information.si_signo;
        }
        const std::uint64_t now = end_ns != UINT64_MAX ? monotonic_ns() : 0;
        const std::uint64_t left = end_ns > now ? end_ns - now : 0;
        constexpr std::uint64_t ns_of_s = 1'000'000'000;
        const timespec limit{.tv_sec = static_cast<time_t>(left / ns_of_s),
                             .tv_nsec = static_cast<long>(left % ns_of_s)};
        const int number =
            sigtimedwait(&set, &information, end_ns != UINT64_MAX ? &limit : nullptr);
        if (number < 0) {
            if (errno == EINTR && handlers_of_thread() == handlers) {
                continue; // another rank's
            }
            return -1;
        }
        const Passed passed = take_passed(information);
        if (passed == Passed::to_wake) {
            taking.hear();
        } else if (passed != Passed::none || is_for_caller(information)) {
            return number;
        }
    }
}

} // namespace warren::launch
