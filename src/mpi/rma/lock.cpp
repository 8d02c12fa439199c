#include "mpi/rma/lock.hpp"

#include <cstdio>

#include "base/invariant.hpp"
#include "mpi/rma/wait_reason.hpp"

namespace warren::rma {

class WindowLock::Granted {
  public:
    explicit Granted(const WindowLock& lock) : lock_(lock) {}
    void add(int rank) {
        if (count_ == limit) {
            ring();
        }
        ranks_[count_++] = rank;
    }
    void ring() {
        Rank& rank = lock_.engine_.rank();
        for (int i = 0; i < count_; ++i) {
            const std::uint32_t endpoint = lock_.communicator_.endpoint(ranks_[i]);
            rank.ring(endpoint < rank.size ? endpoint
                                           : lock_.communicator_.endpoint(lock_.target_));
        }
        count_ = 0;
    }

  private:
    // More are rung under the mutex, which takes longer, not more.
    static constexpr int limit = 32;

    const WindowLock& lock_;
    int count_ = 0;
    int ranks_[limit];
};

Error WindowLock::take_slowly(bool exclusive) {
    LockWaiter& own = waiter(own_link());
    if (own.busy != 0) {
        return poll(exclusive);
    }
    char holder[sizeof node::Activity::communicator_name];
    switch (take_or_queue(exclusive, own, holder)) {
    case Outcome::taken:
        return {};
    case Outcome::lost:
        return ended_error(ended_holder());
    case Outcome::queued:
        break;
    }
    engine_.rank().counts.window_lock_waits.add(1);
    int ended = -1;
    // Pairs with the release of who hands the lock on.
    const auto state = [&] { return own.state.load(std::memory_order_acquire); };
    const auto granted = [&] { return state() == WaiterState::granted; };
    const WaitReason reason = wait_reason(engine_, communicator_, target_, holder);
    engine_.wait_until(
        [&] { return state() != WaiterState::queued || (ended = ended_holder()) >= 0; }, reason,
        BroughtBy::others);
    // The next one's wait begins anew: it polls before it sleeps.
    engine_.wait_until([&] { return granted() || (ended = ended_holder()) >= 0; }, reason,
                       BroughtBy::others);
    own.busy = 0;
    return granted() || !leave_queue(own) ? Error() : ended_error(ended);
}

bool WindowLock::take_for_user(bool exclusive, bool& waits, Error& error) {
    LockWaiter& its = waiter(own_link());
    if (!waits) {
        if (try_take(exclusive)) {
            return true;
        }
        char holder[sizeof node::Activity::communicator_name];
        const Outcome outcome = take_or_queue(exclusive, its, holder);
        if (outcome == Outcome::lost) {
            error = ended_error(ended_holder());
        }
        waits = outcome == Outcome::queued;
        return !waits;
    }
    // Pairs with the release of who hands the lock on.
    if (its.state.load(std::memory_order_acquire) != WaiterState::granted) {
        const int ended = ended_holder();
        if (ended < 0) {
            return false;
        }
        if (leave_queue(its)) {
            error = ended_error(ended);
        }
    }
    its.busy = 0;
    return true;
}

Error WindowLock::ended_error(int ended) const {
    return fail(MPI_ERR_PROC_ABORTED,
                "rank %d has ended, and held the lock of rank %d, or others of the window", ended,
                target_);
}

WindowLock::Outcome
WindowLock::take_or_queue(bool exclusive, LockWaiter& own,
                          char (&holder)[sizeof node::Activity::communicator_name]) {
    const SharedLock lock(lock_.queue_mutex, mutex_user());
    if (is_lost(lock)) {
        return Outcome::lost;
    }
    std::uint64_t word = lock_.word.load(std::memory_order_relaxed);
    while (true) {
        const bool free = word == 0 || (!exclusive && word < exclusively);
        const std::uint64_t taken = exclusive ? own_hold() : word + 1;
        if (lock_.word.compare_exchange_weak(word, free ? taken : word | queued,
                                             std::memory_order_acquire)) {
            if (free) {
                return Outcome::taken;
            }
            break;
        }
    }
    own.busy = 1;
    own.next = 0;
    own.exclusive = exclusive ? 1 : 0;
    own.state.store(WaiterState::queued, std::memory_order_relaxed);
    if (lock_.first == 0) {
        own.state.store(WaiterState::next, std::memory_order_relaxed);
        lock_.first = own_link();
    } else {
        waiter(lock_.last).next = own_link();
    }
    lock_.last = own_link();
    describe_holder(word, holder);
    return Outcome::queued;
}

bool WindowLock::is_lost(const SharedLock& lock) {
    if (lock.taken_over_from() != SharedMutex::nobody) {
        const int ended = rank_of_node(lock.taken_over_from());
        lock_.lost_by.store(static_cast<std::uint32_t>(ended) + 1, std::memory_order_relaxed);
        lock_.word.fetch_or(lost, std::memory_order_release);
    }
    return (lock_.word.load(std::memory_order_relaxed) & lost) != 0;
}

int WindowLock::rank_of_node(int index) const {
    for (int rank = 0; index >= 0 && rank < communicator_.size(); ++rank) {
        if (communicator_.endpoint(rank) == static_cast<std::uint32_t>(index)) {
            return rank;
        }
    }
    return -1;
}

bool WindowLock::leave_queue(LockWaiter& own) {
    Granted granted(*this);
    bool left = true;
    {
        const SharedLock lock(lock_.queue_mutex, mutex_user());
        if (is_lost(lock)) {
            return own.state.load(std::memory_order_relaxed) != WaiterState::granted;
        }
        std::uint32_t before = 0;
        std::uint32_t at = lock_.first;
        while (at != 0 && at != own_link()) {
            before = at;
            at = waiter(at).next;
        }
        left = at != 0;
        if (left) {
            (before == 0 ? lock_.first : waiter(before).next) = own.next;
            if (lock_.last == at) {
                lock_.last = before;
            }
            hand_on(granted);
        }
        WARREN_INVARIANT(left || own.state.load(std::memory_order_relaxed) == WaiterState::granted,
                         "lock 2: who takes a rank off the queue grants it the lock");
    }
    granted.ring();
    return left;
}

int WindowLock::ended_holder() const {
    const node::Segment& segment = engine_.rank().segment;
    if (segment.header().ended_ranks.load(std::memory_order_relaxed) == 0) {
        return -1;
    }
    const std::uint64_t word = lock_.word.load(std::memory_order_acquire);
    if ((word & lost) != 0) {
        return static_cast<int>(lock_.lost_by.load(std::memory_order_relaxed)) - 1;
    }
    if (const int owner = rank_of_node(lock_.queue_mutex.ended_owner(segment)); owner >= 0) {
        return owner;
    }
    const auto held = static_cast<std::uint32_t>(word);
    if ((word & exclusively) != 0) {
        const int owner = static_cast<int>(held) - 1;
        return has_ended(engine_, communicator_, owner) ? owner : -1;
    }
    for (int rank = 0; held != 0 && rank < communicator_.size(); ++rank) {
        if (control_.rank(rank).shared_locks.load(std::memory_order_relaxed) != 0 &&
            has_ended(engine_, communicator_, rank)) {
            return rank;
        }
    }
    return -1;
}

void WindowLock::describe_holder(std::uint64_t word,
                                 char (&text)[sizeof node::Activity::communicator_name]) {
    const auto held = static_cast<std::uint32_t>(word);
    if ((word & exclusively) != 0) {
        std::snprintf(text, sizeof text, "a window, held by rank %u", held - 1);
    } else {
        std::snprintf(text, sizeof text, "a window, %u hold it shared", held);
    }
}

Error WindowLock::poll(bool exclusive) {
    RankLock& lock = engine_.rank().lock;
    while (!try_take(exclusive)) {
        if (const int ended = ended_holder(); ended >= 0) {
            return ended_error(ended);
        }
        engine_.progress(); // a holder on another node gives it back by a request
        lock.unlock();
        give_way();
        lock.lock();
    }
    return {};
}

void WindowLock::hand_on(Granted& granted) {
    std::uint64_t word = lock_.word.load(std::memory_order_relaxed);
    if ((word & queued) == 0) {
        return; // others may change the word at any time
    }
    std::uint32_t first_granted = 0;
    std::uint32_t last_granted = 0;
    while (lock_.first != 0) {
        const std::uint32_t head = lock_.first;
        LockWaiter& next = waiter(head);
        const std::uint64_t held = word & ~queued;
        if (!has_ended(engine_, communicator_, static_cast<int>(head) - 1)) {
            if (next.exclusive != 0 ? held != 0 : held >= exclusively) {
                break;
            }
            word += next.exclusive != 0 ? hold_of(head) : 1;
            (last_granted == 0 ? first_granted : waiter(last_granted).next) = head;
            last_granted = head;
        }
        lock_.first = next.next;
    }
    if (lock_.first == 0) {
        word &= ~queued;
    }
    lock_.word.store(word, std::memory_order_release);
    if (last_granted != 0) {
        waiter(last_granted).next = 0;
    }
    while (first_granted != 0) {
        LockWaiter& its = waiter(first_granted);
        const std::uint32_t next = its.next; // it may queue for another lock once it has this one
        its.state.store(WaiterState::granted, std::memory_order_release);
        granted.add(static_cast<int>(first_granted) - 1);
        first_granted = next;
    }
    alert_next(granted);
}

void WindowLock::alert_next(Granted& granted) {
    const WaitPolicy& waits = engine_.rank().waits;
    if (lock_.first == 0 || !waits.shares_processor || waits.functions != nullptr) {
        return; // who has a processor polls; fibres wake up at once
    }
    const int next = static_cast<int>(lock_.first) - 1;
    std::atomic<WaiterState>& state = waiter(lock_.first).state;
    if (state.load(std::memory_order_relaxed) == WaiterState::queued &&
        !control_.rank(next).is_remote()) {
        state.store(WaiterState::next, std::memory_order_relaxed);
        granted.add(next);
    }
}

void WindowLock::give_back_slowly(bool exclusive) {
    Granted granted(*this);
    {
        const SharedLock lock(lock_.queue_mutex, mutex_user());
        // Acquire: what the holders before this one have stored is there for the next one. And it
        // completes this rank's stores, as the short way does.
        lock_.word.fetch_sub(exclusive ? own_hold() : 1, std::memory_order_seq_cst);
        if (!is_lost(lock)) {
            hand_on(granted);
        }
    }
    granted.ring();
}

} // namespace warren::rma
