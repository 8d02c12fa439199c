#include "mpi/rma/lock.hpp"

#include <cstdio>

#include "mpi/rma/wait_reason.hpp"

namespace warren::rma {

Error WindowLock::take_slowly(bool exclusive) {
    LockWaiter& own = waiter(static_cast<std::uint32_t>(communicator_.rank()) + 1);
    if (own.busy != 0) {
        poll(exclusive);
        return {};
    }
    char holder[sizeof node::Activity::communicator_name];
    if (take_or_queue(exclusive, own, holder)) {
        return {};
    }
    int ended = -1;
    engine_.wait_until(
        // Pairs with the release of who hands the lock on.
        [&] {
            return own.granted.load(std::memory_order_acquire) != 0 ||
                   (ended = ended_holder()) >= 0;
        },
        wait_reason(engine_, communicator_, target_, holder), BroughtBy::others);
    own.busy = 0;
    if (own.granted.load(std::memory_order_acquire) == 0 && leave_queue(own)) {
        return fail(MPI_ERR_PROC_ABORTED,
                    "rank %d has ended, and held the lock of rank %d, or others of the window",
                    ended, target_);
    }
    return {};
}

bool WindowLock::take_or_queue(bool exclusive, LockWaiter& own,
                               char (&holder)[sizeof node::Activity::communicator_name]) {
    const auto self = static_cast<std::uint32_t>(communicator_.rank()) + 1;
    const SharedLock lock(lock_.queue_mutex, own_rank(), !engine_.rank().oversubscribed());
    std::uint64_t word = lock_.word.load(std::memory_order_relaxed);
    while (true) {
        const bool free = word == 0 || (!exclusive && word < exclusively);
        const std::uint64_t taken = exclusive ? exclusively : word + 1;
        if (lock_.word.compare_exchange_weak(word, free ? taken : word | queued,
                                             std::memory_order_acquire)) {
            if (free) {
                if (exclusive) {
                    name_owner(communicator_.rank());
                }
                return true;
            }
            break;
        }
    }
    own.busy = 1;
    own.next = 0;
    own.exclusive = exclusive ? 1 : 0;
    own.granted.store(0, std::memory_order_relaxed);
    if (lock_.first == 0) {
        lock_.first = self;
    } else {
        waiter(lock_.last).next = self;
    }
    lock_.last = self;
    describe_holder(word, holder);
    return false;
}

bool WindowLock::leave_queue(LockWaiter& own) {
    const auto self = static_cast<std::uint32_t>(communicator_.rank()) + 1;
    std::uint32_t granted = 0;
    {
        const SharedLock lock(lock_.queue_mutex, own_rank(), !engine_.rank().oversubscribed());
        std::uint32_t before = 0;
        std::uint32_t at = lock_.first;
        while (at != 0 && at != self) {
            before = at;
            at = waiter(at).next;
        }
        if (at == 0) {
            // Who has taken it out is about to say that it is granted.
            while (own.granted.load(std::memory_order_acquire) == 0) {
                spin_pause();
            }
            return false;
        }
        (before == 0 ? lock_.first : waiter(before).next) = own.next;
        if (lock_.last == self) {
            lock_.last = before;
        }
        granted = hand_on();
    }
    tell_granted(granted);
    return true;
}

int WindowLock::ended_holder() const {
    if (engine_.rank().header().ended_ranks.load(std::memory_order_relaxed) == 0) {
        return -1;
    }
    const std::uint64_t held = lock_.word.load(std::memory_order_relaxed) & ~queued;
    if (held >= exclusively) {
        const int owner = static_cast<int>(lock_.owner.load(std::memory_order_relaxed)) - 1;
        return owner >= 0 && has_ended(engine_, communicator_, owner) ? owner : -1;
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
                                 char (&text)[sizeof node::Activity::communicator_name]) const {
    const std::uint64_t held = word & ~queued;
    const std::uint32_t owner = lock_.owner.load(std::memory_order_relaxed);
    if (held >= exclusively && owner != 0) {
        std::snprintf(text, sizeof text, "a window, held by rank %u", owner - 1);
    } else if (held >= exclusively) {
        std::snprintf(text, sizeof text, "a window, held exclusively");
    } else {
        std::snprintf(text, sizeof text, "a window, %u hold it shared",
                      static_cast<unsigned>(held));
    }
}

void WindowLock::poll(bool exclusive) {
    RankLock& lock = engine_.rank().lock;
    while (!try_take(exclusive)) {
        lock.unlock();
        give_way();
        lock.lock();
    }
}

std::uint32_t WindowLock::hand_on() {
    std::uint64_t word = lock_.word.load(std::memory_order_relaxed);
    if ((word & queued) == 0) {
        return 0; // others may change the word at any time
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
            word += next.exclusive != 0 ? exclusively : 1;
            if (next.exclusive != 0) {
                name_owner(static_cast<int>(head) - 1);
            }
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
    return first_granted;
}

void WindowLock::give_back_slowly(bool exclusive) {
    std::uint32_t granted = 0;
    {
        const SharedLock lock(lock_.queue_mutex, own_rank(), !engine_.rank().oversubscribed());
        // Acquire: what the holders before this one have stored is there for the next one.
        lock_.word.fetch_sub(exclusive ? exclusively : 1, std::memory_order_acq_rel);
        granted = hand_on();
    }
    tell_granted(granted);
}

void WindowLock::tell_granted(std::uint32_t granted) {
    while (granted != 0) {
        LockWaiter& its = waiter(granted);
        const std::uint32_t next = its.next; // it may queue again once it has the lock
        its.granted.store(1, std::memory_order_release);
        engine_.rank().ring(communicator_.world_rank(static_cast<int>(granted) - 1));
        granted = next;
    }
}

} // namespace warren::rma
