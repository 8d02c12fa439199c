// Fibres that wait for events which many wait for; and what all that wait say of it.
#include "runtime/fibres/event_waiters.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "runtime/fibres/scheduler.hpp"

namespace warren::fibre {

void Scheduler::wait_for_event(const void* event, bool (*happened)(void*), void* condition,
                               std::atomic<std::uint32_t>& bell, std::uint32_t expected,
                               WaitNote* note) {
    const Inside inside;
    Fibre& self = *current();
    if (self.bell.load(std::memory_order_relaxed) == nullptr) [[unlikely]] {
        Bucket& bucket = bucket_of(&bell);
        const std::lock_guard guard(bucket.lock);
        self.bell.store(&bell, std::memory_order_relaxed);
        self.next_bell = std::exchange(bucket.bells, &self);
    }
    EventWaiters& event_waiters =
        self.worker.load(std::memory_order_relaxed)->event_table->of(event);
    self.event_waiters.store(&event_waiters, std::memory_order_relaxed);
    event_waiters.wanted.store(1, std::memory_order_relaxed);
    self.state.store(State::waits_for_event, std::memory_order_release); // invariant 3
    event_waiters.lock.lock();
    SpinLock::fence_after_lock(); // invariant 2; who interrupts the fibre looks at its state, too
    if (event_waiters.wanted.load(std::memory_order_relaxed) == 0) [[unlikely]] {
        // Who released those before this one took it back.
        event_waiters.wanted.store(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    if (happened(condition) || bell.load(std::memory_order_seq_cst) != expected ||
        Inside::is_interrupted()) {
        self.state.store(State::ready, std::memory_order_relaxed);
        event_waiters.lock.unlock();
        return;
    }
    if (event_waiters.first == nullptr) {
        event_waiters.event = event;
        event_waiters.mixed = false;
        event_waiters.first = &self;
    } else {
        event_waiters.mixed |= event_waiters.event != event;
        event_waiters.last->next = &self;
    }
    self.before = event_waiters.count != 0 ? event_waiters.last : nullptr;
    self.next = nullptr;
    event_waiters.last = &self;
    ++event_waiters.count;
    self.word.store(event, std::memory_order_relaxed);
    self.note.store(note, std::memory_order_relaxed);
    self.ticket.store(event_waiters.ticket.load(std::memory_order_relaxed),
                      std::memory_order_relaxed);
    event_waiters.lock.unlock();
    leave(self);
    self.state.store(State::ready, std::memory_order_relaxed);
}

// Under the list's lock. (By the ticket alone, which no other list has: which
// list is the fibre's changes meanwhile if it is another one.)
bool Scheduler::waits_for_event(const Fibre& fibre, const EventWaiters& event_waiters) {
    return fibre.ticket.load(std::memory_order_relaxed) ==
           event_waiters.ticket.load(std::memory_order_relaxed);
}

void Scheduler::take_out(EventWaiters& event_waiters, Fibre& fibre) {
    (fibre.before != nullptr ? fibre.before->next : event_waiters.first) = fibre.next;
    (fibre.next != nullptr ? fibre.next->before : event_waiters.last) = fibre.before;
    --event_waiters.count;
    fibre.ticket.store(0, std::memory_order_relaxed);
    fibre.state.store(State::ready, std::memory_order_relaxed);
    fibre.next = nullptr;
}

// Under the bucket's lock: takes the fibre of this bell out of its list of event waiters, if it
// has.
bool Scheduler::take_out_by_bell(const Bucket& bucket, const void* bell, Fibre*& taken) {
    SpinLock::fence_after_lock(); // invariant 2 of event waiters
    for (Fibre* fibre = bucket.bells; fibre != nullptr; fibre = fibre->next_bell) {
        if (fibre->bell.load(std::memory_order_relaxed) != bell) {
            continue;
        }
        // Another one by now, or the first: then it looks at its bell once more.
        EventWaiters* const event_waiters = fibre->event_waiters.load(std::memory_order_relaxed);
        if (event_waiters == nullptr) {
            return false;
        }
        const std::lock_guard guard(event_waiters->lock);
        if (waits_for_event(*fibre, *event_waiters)) {
            take_out(*event_waiters, *fibre);
            taken = fibre;
            return true;
        }
        return false;
    }
    return false;
}

void Scheduler::release(const void* event) {
    if (!enabled()) {
        return;
    }
    const Inside inside;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    // The own worker's last: the others begin meanwhile.
    const std::uint32_t count = started_.load(std::memory_order_acquire);
    const Fibre* const self = current();
    const std::uint32_t own =
        self != nullptr ? self->worker.load(std::memory_order_relaxed)->number : 0;
    for (std::uint32_t step = 1; step <= count; ++step) {
        release(event, *workers_[(own + step) % count]);
    }
}

void Scheduler::release(const void* event, Worker& worker) {
    EventWaiters& event_waiters = worker.event_table->of(event);
    if (event_waiters.wanted.load(std::memory_order_relaxed) == 0) {
        return;
    }
    event_waiters.lock.lock();
    Fibre* first = nullptr;
    Fibre* last = nullptr;
    std::uint32_t count = 0;
    if (!event_waiters.mixed) {
        if (event_waiters.first != nullptr && event_waiters.event == event) {
            first = std::exchange(event_waiters.first, nullptr);
            last = event_waiters.last;
            count = std::exchange(event_waiters.count, 0);
            event_waiters.ticket.store(
                EventTable::next(event_waiters.ticket.load(std::memory_order_relaxed)),
                std::memory_order_relaxed);
        }
    } else {
        for (Fibre* fibre = event_waiters.first; fibre != nullptr;) {
            Fibre* const next = fibre->next;
            if (fibre->word.load(std::memory_order_relaxed) == event) {
                take_out(event_waiters, *fibre);
                (first == nullptr ? first : last->next) = fibre;
                last = fibre;
                ++count;
            }
            fibre = next;
        }
    }
    if (event_waiters.first == nullptr) {
        event_waiters.wanted.store(0, std::memory_order_relaxed);
    }
    event_waiters.lock.unlock();
    if (count == 0) {
        return;
    }
    if (balancing_ == nullptr) {
        push_all(deputy_of(worker), {first, last, count});
    } else {
        push_home(worker, first);
    }
}

// A row of fibres that ran on this worker: those behind each other with the same home go there at
// once.
void Scheduler::push_home(Worker& worker, Fibre* first) {
    const auto home_worker_of = [&](const Fibre& fibre) {
        Worker* const home_worker = fibre.home_worker.load(std::memory_order_relaxed);
        return home_worker != nullptr ? home_worker : &worker;
    };
    while (first != nullptr) {
        Worker* const home_worker = home_worker_of(*first);
        Fibre* last = first;
        std::uint32_t count = 1;
        while (last->next != nullptr && home_worker_of(*last->next) == home_worker) {
            last = last->next;
            ++count;
        }
        Fibre* const next = std::exchange(last->next, nullptr);
        push_all(deputy_of(*home_worker), {std::exchange(first, next), last, count});
    }
}

// Under the lock that keeps it waiting.
void Scheduler::show(Fibre& fibre) {
    WaitNote* note = fibre.note.load(std::memory_order_relaxed);
    if (note != nullptr && !note->shown) {
        note->shown = true;
        note->show(note->wait);
    }
}

void Scheduler::show_waits() {
    const Inside inside;
    for (std::uint32_t number = 0; number < made_; ++number) {
        Fibre& fibre = fibres_[number];
        const State before = fibre.state.load(std::memory_order_acquire);
        if (before == State::waits_for_event) {
            EventWaiters* const event_waiters = fibre.event_waiters.load(std::memory_order_relaxed);
            const std::lock_guard guard(event_waiters->lock);
            if (waits_for_event(fibre, *event_waiters)) {
                show(fibre);
            }
            continue;
        }
        const void* const word = fibre.word.load(std::memory_order_relaxed);
        if (word == nullptr || before == State::ready) {
            continue;
        }
        Bucket& bucket = bucket_of(word);
        const std::lock_guard guard(bucket.lock);
        const State state = fibre.state.load(std::memory_order_relaxed);
        if (fibre.word.load(std::memory_order_relaxed) == word &&
            (state == State::parked || state == State::parked_till)) {
            show(fibre);
        }
    }
}

} // namespace warren::fibre
