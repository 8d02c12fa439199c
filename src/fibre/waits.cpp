// Fibres that wait for words, or for a time.
#include <climits>
#include <mutex>
#include <utility>

#include "fibre/scheduler.hpp"

namespace warren::fibre {

void Scheduler::wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                     const timespec* timeout, WaitNote* note) {
    Fibre* self = current();
    if (self == nullptr) {
        // Counted before the kernel looks at the word, which a waker has changed before it looks at
        // the count.
        kernel_sleepers_.fetch_add(1, std::memory_order_seq_cst);
        kernel_wait(word, expected, timeout);
        kernel_sleepers_.fetch_sub(1, std::memory_order_relaxed);
        return;
    }
    const std::uint64_t time_ns =
        timeout == nullptr
            ? 0
            : monotonic_ns() + static_cast<std::uint64_t>(timeout->tv_sec) * 1'000'000'000 +
                  static_cast<std::uint64_t>(timeout->tv_nsec);
    park(*self, word, expected, time_ns, note, nullptr);
}

void Scheduler::wait_looking(std::atomic<std::uint32_t>& told, std::uint64_t time_ns,
                             ObjectWait& object) {
    if (Fibre* self = current()) {
        park(*self, told, 0, time_ns, nullptr, &object);
        return;
    }
    const std::uint64_t now_ns = monotonic_ns();
    const timespec left = time_of(time_ns > now_ns ? time_ns - now_ns : 0);
    wait(told, 0, &left, nullptr);
}

// Time 0: no limit.
void Scheduler::park(Fibre& self, std::atomic<std::uint32_t>& word, std::uint32_t expected,
                     std::uint64_t time_ns, WaitNote* note, ObjectWait* object) {
    const Section section;
    Bucket& bucket = bucket_of(&word);
    bucket.lock.lock();
    if (word.load(std::memory_order_seq_cst) != expected) {
        bucket.lock.unlock();
        return;
    }
    const std::uint64_t park = self.parks.load(std::memory_order_relaxed) + 1;
    self.parks.store(park, std::memory_order_relaxed);
    self.word.store(&word, std::memory_order_relaxed);
    self.note.store(note, std::memory_order_relaxed);
    self.object = object;
    self.state.store(time_ns == 0 ? State::parked : State::parked_till, std::memory_order_relaxed);
    self.next = nullptr;
    *bucket.end = &self;
    bucket.end = &self.next;
    if (time_ns != 0) {
        timers_.add({time_ns, &self, park});
    }
    bucket.lock.unlock();
    leave(self);
}

// The fibre at `link` waits no more.
void Scheduler::take_off(Bucket& bucket, Fibre** link) {
    Fibre& fibre = **link;
    *link = fibre.next;
    if (bucket.end == &fibre.next) {
        bucket.end = link;
    }
    fibre.state.store(State::ready, std::memory_order_relaxed);
}

void Scheduler::wake(std::atomic<std::uint32_t>& word, int count) {
    if (enabled()) {
        const Section section;
        Fibre* woken = nullptr;
        Fibre** woken_end = &woken;
        Bucket& bucket = bucket_of(&word);
        bucket.lock.lock();
        for (Fibre** link = &bucket.first; *link != nullptr && count > 0;) {
            Fibre* fibre = *link;
            if (fibre->word.load(std::memory_order_relaxed) != &word) {
                link = &fibre->next;
                continue;
            }
            take_off(bucket, link);
            fibre->next = nullptr;
            *woken_end = fibre;
            woken_end = &fibre->next;
            --count;
        }
        if (count > 0 && bucket.bells != nullptr && take_out_by_bell(bucket, &word, *woken_end)) {
            --count;
        }
        bucket.lock.unlock();
        while (woken != nullptr) {
            push(*std::exchange(woken, woken->next));
        }
    }
    if (count > 0 && (!enabled() || kernel_sleepers_.load(std::memory_order_seq_cst) != 0)) {
        kernel_wake(word, count);
    }
}

void Scheduler::sleep_until(std::uint64_t time_ns) {
    Fibre& self = *here.own;
    for (std::uint64_t now = monotonic_ns(); now < time_ns; now = monotonic_ns()) {
        const timespec left_time = time_of(time_ns - now);
        wait(self.nap, 0, &left_time, nullptr);
    }
}

void Scheduler::expire_timers() {
    const std::uint64_t now = monotonic_ns();
    Timers::Entry entry{};
    while (timers_.earliest() <= now && timers_.take(now, entry)) {
        Fibre& fibre = *entry.fibre;
        Bucket& bucket = bucket_of(fibre.word.load(std::memory_order_relaxed));
        bool expired = false;
        bucket.lock.lock();
        // It may have been woken, and wait for something else: then it is not here, or in a later
        // park.
        for (Fibre** link = &bucket.first; *link != nullptr; link = &(*link)->next) {
            if (*link == &fibre && fibre.parks.load(std::memory_order_relaxed) == entry.park) {
                const std::uint64_t later = fibre.object != nullptr ? fibre.object->look(now) : 0;
                if (later == 0) {
                    take_off(bucket, link);
                    expired = true;
                } else {
                    timers_.add({later, &fibre, entry.park});
                }
                break;
            }
        }
        bucket.lock.unlock();
        if (expired) {
            push(fibre);
        }
    }
}

} // namespace warren::fibre
