#include "mpi/rank/thread_waits.hpp"

#include <algorithm>
#include <iterator>

#include "base/futex.hpp"
#include "mpi/rank/wait_policy.hpp"

namespace warren {

void ThreadWaits::poll() {
    poller_ = Poller::awake;
    look_ = true; // what was brought while nobody polled
    polling_ = pthread_self();
}

void ThreadWaits::sleep(Waiter& self, RankLock& lock, bool shares_processor) {
    self.next = nullptr;
    self.state.store(Waiter::polls, std::memory_order_relaxed);
    *end_ = &self;
    end_ = &self.next;
    ++waiting_;
    ++notes_;
    most_ = std::max(most_, waiting_ + 1);
    by_others_ += self.brought_by == BroughtBy::others;
    const bool gives_way = shares_processor || outnumber_processors();
    const std::uint32_t turns = gives_way ? wait_policy::yields : wait_policy::spins_alone;
    lock.unlock();
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
        if (self.state.load(std::memory_order_acquire) == Waiter::woken) {
            break;
        }
        if (gives_way) {
            give_way();
        } else {
            spin_pause();
        }
    }
    std::uint32_t seen = Waiter::polls;
    if (self.state.compare_exchange_strong(seen, Waiter::asleep, std::memory_order_acquire)) {
        while (self.state.load(std::memory_order_acquire) == Waiter::asleep) {
            futex_wait(self.state, Waiter::asleep);
        }
    }
    lock.lock();
}

bool ThreadWaits::wake_some(RankLock& lock, bool shares_processor) {
    look_ = false;
    Wakes wakes;
    for (Waiter** link = &first_; *link != nullptr;) {
        if ((*link)->is_done((*link)->condition)) {
            take_off(link, wakes);
        } else {
            link = &(*link)->next;
        }
    }
    if (wakes.count == 0) {
        return false;
    }
    // Not under the lock: whoever wakes wants it, perhaps on this thread's processor.
    const bool gives_way = shares_processor || outnumber_processors();
    lock.unlock();
    wakes.send();
    if (gives_way) {
        give_way(); // to those who go on now
    }
    lock.lock();
    return true;
}

void ThreadWaits::hand_over(RankLock& lock) {
    Wakes wakes;
    take_off(&first_, wakes);
    lock.unlock();
    wakes.send();
    lock.lock();
}

void ThreadWaits::take_off(Waiter** link, Wakes& wakes) {
    Waiter& waiter = **link;
    *link = waiter.next;
    if (waiter.next == nullptr) {
        end_ = link;
    }
    --waiting_;
    by_others_ -= waiter.brought_by == BroughtBy::others;
    ++wakes.count;
    if (waiter.state.exchange(Waiter::woken, std::memory_order_release) == Waiter::asleep) {
        wakes.add(waiter.state);
    }
}

void ThreadWaits::Wakes::add(std::atomic<std::uint32_t>& word) {
    if (asleep == std::size(words)) {
        send();
    }
    words[asleep++] = &word;
}

void ThreadWaits::Wakes::send() {
    for (; asleep > 0; --asleep) {
        // Its thread may be awake already and the word gone: then nobody is woken.
        futex_wake(*words[asleep - 1], 1);
    }
}

} // namespace warren
