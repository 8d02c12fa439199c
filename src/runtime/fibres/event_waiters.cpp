// Fibres that wait for events which many wait for; and what all that wait say of it.
#include "runtime/fibres/event_waiters.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "runtime/fibres/scheduler.hpp"

namespace warren::fibre {

bool Scheduler::may_gather() const {
    return current() != nullptr && enabled();
}

void Scheduler::gather(const void* event, bool (*happened)(void*), void* condition,
                       std::atomic<std::uint32_t>& bell, std::uint32_t expected, WaitNote* note) {
    const Inside inside;
    Fibre& self = *current();
    if (self.bell.load(std::memory_order_relaxed) == nullptr) [[unlikely]] {
        Bucket& bucket = bucket_of(&bell);
        const std::lock_guard guard(bucket.lock);
        self.bell.store(&bell, std::memory_order_relaxed);
        self.next_bell = std::exchange(bucket.bells, &self);
    }
    Gathering& gathering = self.worker.load(std::memory_order_relaxed)->gatherings->of(event);
    self.gathering.store(&gathering, std::memory_order_relaxed);
    gathering.wanted.store(1, std::memory_order_relaxed);
    gathering.lock.lock();
    SpinLock::fence_after_lock(); // invariant 2
    if (gathering.wanted.load(std::memory_order_relaxed) == 0) [[unlikely]] {
        // Who released those before this one took it back.
        gathering.wanted.store(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    if (happened(condition) || bell.load(std::memory_order_seq_cst) != expected) {
        gathering.lock.unlock();
        return;
    }
    if (gathering.first == nullptr) {
        gathering.event = event;
        gathering.mixed = false;
        gathering.first = &self;
    } else {
        gathering.mixed |= gathering.event != event;
        gathering.last->next = &self;
    }
    self.before = gathering.count != 0 ? gathering.last : nullptr;
    self.next = nullptr;
    gathering.last = &self;
    ++gathering.count;
    self.word.store(event, std::memory_order_relaxed);
    self.note.store(note, std::memory_order_relaxed);
    self.ticket.store(gathering.ticket.load(std::memory_order_relaxed), std::memory_order_relaxed);
    self.state.store(State::gathered, std::memory_order_release); // invariant 3
    gathering.lock.unlock();
    leave(self);
    self.state.store(State::ready, std::memory_order_relaxed);
}

// Under the gathering's lock. (By the ticket alone, which no other gathering has: which gathering
// is the fibre's changes meanwhile if it is another one.)
bool Scheduler::gathers(const Fibre& fibre, const Gathering& gathering) {
    return fibre.ticket.load(std::memory_order_relaxed) ==
           gathering.ticket.load(std::memory_order_relaxed);
}

void Scheduler::take_out(Gathering& gathering, Fibre& fibre) {
    (fibre.before != nullptr ? fibre.before->next : gathering.first) = fibre.next;
    (fibre.next != nullptr ? fibre.next->before : gathering.last) = fibre.before;
    --gathering.count;
    fibre.ticket.store(0, std::memory_order_relaxed);
    fibre.state.store(State::ready, std::memory_order_relaxed);
    fibre.next = nullptr;
}

// Under the bucket's lock: takes the fibre of this bell out of where it has gathered, if it has.
bool Scheduler::take_out_by_bell(const Bucket& bucket, const void* bell, Fibre*& taken) {
    SpinLock::fence_after_lock(); // invariant 2 of gatherings
    for (Fibre* fibre = bucket.bells; fibre != nullptr; fibre = fibre->next_bell) {
        if (fibre->bell.load(std::memory_order_relaxed) != bell) {
            continue;
        }
        // Another one by now, or the first: then it looks at its bell once more.
        Gathering* const gathering = fibre->gathering.load(std::memory_order_relaxed);
        if (gathering == nullptr) {
            return false;
        }
        const std::lock_guard guard(gathering->lock);
        if (gathers(*fibre, *gathering)) {
            take_out(*gathering, *fibre);
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
    Gathering& gathering = worker.gatherings->of(event);
    if (gathering.wanted.load(std::memory_order_relaxed) == 0) {
        return;
    }
    gathering.lock.lock();
    Fibre* first = nullptr;
    Fibre* last = nullptr;
    std::uint32_t count = 0;
    if (!gathering.mixed) {
        if (gathering.first != nullptr && gathering.event == event) {
            first = std::exchange(gathering.first, nullptr);
            last = gathering.last;
            count = std::exchange(gathering.count, 0);
            gathering.ticket.store(
                Gatherings::next(gathering.ticket.load(std::memory_order_relaxed)),
                std::memory_order_relaxed);
        }
    } else {
        for (Fibre* fibre = gathering.first; fibre != nullptr;) {
            Fibre* const next = fibre->next;
            if (fibre->word.load(std::memory_order_relaxed) == event) {
                take_out(gathering, *fibre);
                (first == nullptr ? first : last->next) = fibre;
                last = fibre;
                ++count;
            }
            fibre = next;
        }
    }
    if (gathering.first == nullptr) {
        gathering.wanted.store(0, std::memory_order_relaxed);
    }
    gathering.lock.unlock();
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
    const auto home_of = [&](const Fibre& fibre) {
        Worker* const home = fibre.home.load(std::memory_order_relaxed);
        return home != nullptr ? home : &worker;
    };
    while (first != nullptr) {
        Worker* const home = home_of(*first);
        Fibre* last = first;
        std::uint32_t count = 1;
        while (last->next != nullptr && home_of(*last->next) == home) {
            last = last->next;
            ++count;
        }
        Fibre* const next = std::exchange(last->next, nullptr);
        push_all(deputy_of(*home), {std::exchange(first, next), last, count});
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
        if (before == State::gathered) {
            Gathering* const gathering = fibre.gathering.load(std::memory_order_relaxed);
            const std::lock_guard guard(gathering->lock);
            if (gathers(fibre, *gathering)) {
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
