#include "launch/host/rank_signals.hpp"

#include <algorithm>
#include <cstdlib>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

namespace warren::launch {

namespace {

struct AllSignals {
    std::uint32_t ranks = 0;
    pid_t process = 0;
    RankSignals* all = nullptr;
};

AllSignals& all_signals() {
    static AllSignals& only = *new AllSignals; // outlives everything
    return only;
}

bool is_same(const siginfo_t& one, const siginfo_t& other) {
    return one.si_signo == other.si_signo &&
           (one.si_signo < __SIGRTMIN || (one.si_code == SI_TIMER && other.si_code == SI_TIMER &&
                                          one.si_timerid == other.si_timerid));
}

} // namespace

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

Mask mask_of_thread() {
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, nullptr, &set);
    return mask_of(set);
}

void prepare_rank_signals(std::uint32_t ranks) {
    AllSignals& own = all_signals();
    own.all = static_cast<RankSignals*>(std::calloc(ranks, sizeof(RankSignals)));
    own.ranks = own.all != nullptr ? ranks : 0;
    own.process = getpid();
}

RankSignals* signals_of_rank(std::uint32_t rank) {
    const AllSignals& own = all_signals();
    return rank < own.ranks && getpid() == own.process ? &own.all[rank] : nullptr;
}

Held::Held(RankSignals& signals) : signals_(signals) {
    while (signals_.locked.exchange(true, std::memory_order_acquire)) {
        sched_yield();
    }
}

void put_in_queue(RankSignals& signals, const siginfo_t& information) {
    siginfo_t* const end = signals.queue + signals.pending;
    const bool is_there = std::any_of(
        signals.queue, end, [&](const siginfo_t& one) { return is_same(one, information); });
    if (!is_there && signals.pending < longest_queue) {
        *end = information;
        ++signals.pending;
    }
}

bool take_from_queue(RankSignals& signals, Mask mask, siginfo_t& taken) {
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

void remove_from_queue(RankSignals& signals, int number) {
    const Held held(signals);
    siginfo_t* const end =
        std::remove_if(signals.queue, signals.queue + signals.pending,
                       [&](const siginfo_t& one) { return one.si_signo == number; });
    signals.pending = static_cast<std::uint32_t>(end - signals.queue);
}

Mask pending_in_queue(RankSignals& signals) {
    Mask mask = 0;
    const Held held(signals);
    for (std::uint32_t i = 0; i < signals.pending; ++i) {
        mask |= bit(signals.queue[i].si_signo);
    }
    return mask;
}

SignalWaiter* find_waiter(RankSignals& signals, int number) {
    SignalWaiter* one = signals.waiters;
    while (one != nullptr && (one->mask & bit(number)) == 0) {
        one = one->next;
    }
    return one;
}

} // namespace warren::launch
