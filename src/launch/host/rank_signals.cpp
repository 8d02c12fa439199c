#include "launch/host/rank_signals.hpp"

#include <cerrno>
#include <cstdlib>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "launch/host/signal_owners.hpp"

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

bool put_in_queue(RankSignals& signals, const siginfo_t& information) {
    if (!signals.queue.put(information)) {
        errno = EAGAIN;
        return false;
    }
    signals.pending = signals.queue.size();
    return true;
}

bool take_from_queue(RankSignals& signals, Mask mask, siginfo_t& taken, Taker taker) {
    if (signals.pending.load(std::memory_order_relaxed) == 0) {
        return false; // who waits looks again when one has arrived
    }
    const Held held(signals);
    const bool is_there = signals.queue.take(mask, taken, taker);
    signals.pending = signals.queue.size();
    return is_there;
}

void remove_from_queue(RankSignals& signals, int number) {
    siginfo_t removed{};
    while (take_from_queue(signals, bit(number), removed)) {
        note_taken(removed);
    }
}

Mask pending_in_queue(RankSignals& signals, Taker taker) {
    const Held held(signals);
    return signals.queue.numbers_for(taker);
}

SignalWaiter* find_waiter(RankSignals& signals, int number) {
    SignalWaiter* one = signals.waiters;
    while (one != nullptr && (one->mask & bit(number)) == 0) {
        one = one->next;
    }
    return one;
}

} // namespace warren::launch
