#include "mpi/rma/lock.hpp"

#include <cstdio>

#include "mpi/rma/wait_reason.hpp"

namespace warren::rma {

void WindowLock::take_slowly(bool exclusive) {
    const auto self = static_cast<std::uint32_t>(communicator_.rank()) + 1;
    LockWaiter& own = waiter(self);
    if (own.busy != 0) {
        poll(exclusive);
        return;
    }
    lock_.queue_mutex.lock(own_rank(), !engine_.rank().oversubscribed());
    std::uint64_t word = lock_.word.load(std::memory_order_relaxed);
    while (true) {
        const bool free = word == 0 || (!exclusive && word < exclusively);
        const std::uint64_t taken = exclusive ? exclusively : word + 1;
        if (lock_.word.compare_exchange_weak(word, free ? taken : word | queued,
                                             std::memory_order_acquire)) {
            if (free) {
                lock_.queue_mutex.unlock();
                if (exclusive) {
                    name_owner(communicator_.rank());
                }
                return;
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
    char holder[sizeof node::Activity::communicator_name];
    describe_holder(word, holder);
    lock_.queue_mutex.unlock();
    engine_.wait_until(
        // Pairs with the release of who hands the lock on.
        [&own] { return own.granted.load(std::memory_order_acquire) != 0; },
        wait_reason(engine_, communicator_, target_, holder), BroughtBy::others);
    own.busy = 0;
}

void WindowLock::describe_holder(std::uint64_t word,
                                 char (&text)[sizeof node::Activity::communicator_name]) const {
    const std::uint64_t held = word & ~queued;
    if (held >= exclusively) {
        std::snprintf(text, sizeof text, "a window, held by rank %u",
                      lock_.owner.load(std::memory_order_relaxed) - 1);
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
    const std::uint32_t first = lock_.first;
    if (first == 0) {
        return 0; // others may change the word at any time
    }
    std::uint64_t word = lock_.word.load(std::memory_order_relaxed);
    std::uint32_t last_granted = 0;
    while (lock_.first != 0) {
        const LockWaiter& next = waiter(lock_.first);
        const std::uint64_t held = word & ~queued;
        if (next.exclusive != 0 ? held != 0 : held >= exclusively) {
            break;
        }
        word += next.exclusive != 0 ? exclusively : 1;
        if (next.exclusive != 0) {
            name_owner(static_cast<int>(lock_.first) - 1);
        }
        last_granted = lock_.first;
        lock_.first = next.next;
    }
    if (lock_.first == 0) {
        word &= ~queued;
    }
    lock_.word.store(word, std::memory_order_release);
    if (last_granted == 0) {
        return 0;
    }
    waiter(last_granted).next = 0;
    return first;
}

void WindowLock::give_back_slowly(bool exclusive) {
    lock_.queue_mutex.lock(own_rank(), !engine_.rank().oversubscribed());
    // Acquire: what the holders before this one have stored is there for the next one.
    lock_.word.fetch_sub(exclusive ? exclusively : 1, std::memory_order_acq_rel);
    std::uint32_t granted = hand_on();
    lock_.queue_mutex.unlock();
    while (granted != 0) {
        LockWaiter& its = waiter(granted);
        const std::uint32_t next = its.next; // it may queue again once it has the lock
        its.granted.store(1, std::memory_order_release);
        engine_.rank().ring(communicator_.world_rank(static_cast<int>(granted) - 1));
        granted = next;
    }
}

} // namespace warren::rma
