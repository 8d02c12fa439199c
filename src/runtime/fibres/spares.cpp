// Fibres that block their workers in system calls, and the workers that stand in meanwhile.
//
// Invariants
//  1. Only the monitor starts, relieves and calls back spare workers. One that has been started and
//     isn't relieved has a principal, which is no spare one; that one's chain of `spare` leads to
//     it. A relieved one is in no chain, and nobody stands in for it.
//  2. All workers there can be, and their queues, are there from the beginning, the event waiters
//     of one before started_ counts it, and the same for good. So who has read started_ may look at
//     all workers below it, also when starting the last one fails and started_ goes back: then
//     nothing has run there, and nothing is or comes into its queue or its event waiters.
//  3. A fibre that waits for an event where it runs is seen by each releaser (event_waiters.hpp,
//     invariant 2): started_ has counted its worker before the worker's thread was made, so before
//     its fence.
//  4. What is in a relieved worker's queue is handed on to its principal by that worker when what
//     it runs leaves it, or gives way; else by the monitor, when it looks. What becomes ready for
//     it from then on comes to its deputy, the principal. It is stood in by again only when it
//     sleeps, with nothing to hand on.
//  5. What is in a blocked worker's queue is taken, half of it at a time, by who stands in for it
//     when that one has nothing else; and when the monitor looks it gives that one all of it: those
//     that it runs may give way to each other for ever, and only to each other. What becomes ready
//     for it later comes to its deputy, who stands in, at once, until it is back.
//  6. Deputies lead to a worker without one: a blocked one's is who stands in for it, that one's
//     whoever stands in for it in turn; a relieved one's is its principal, to which none leads
//     back, because who is in a chain has no principal for its deputy.
//  7. A worker that is being started is awake, and so is one more while the monitor has fibres in
//     its hands. If nobody else is awake afterwards, who slept last has not looked whether all
//     fibres wait for each other: a worker is called to do it.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <utility>

#include "runtime/fibres/scheduler.hpp"

namespace warren::fibre {

namespace {

// How often the monitor looks while a worker is awake, and else; and shows what fibres wait for.
constexpr std::uint64_t monitor_ns = 5'000'000;
constexpr std::uint64_t quiet_monitor_ns = 100'000'000;
constexpr std::uint64_t show_every_ns = 100'000'000;

} // namespace

// A spare worker whose principal is back gives it what has come since.
void Scheduler::hand_on(Worker& spare) {
    Fibre* handed = spare.handed.exchange(nullptr, std::memory_order_acquire);
    for (Fibre* fibre = handed != nullptr ? handed : take(spare); fibre != nullptr;
         fibre = take(spare)) {
        while (fibre->on_worker.load(std::memory_order_acquire) != 0) {
            spin_pause(); // it is being left, by this worker a moment ago
        }
        fibre->worker.store(spare.principal.load(std::memory_order_relaxed),
                            std::memory_order_relaxed);
        push(*fibre);
    }
}

void* Scheduler::run_monitor(void*) {
    Scheduler& all = *scheduler();
    pthread_setname_np(pthread_self(), "monitor");
    const Inside inside;
    std::uint64_t shown_ns = 0;
    while (true) {
        const timespec pause = time_of(
            all.awake_.load(std::memory_order_relaxed) != 0 ? monitor_ns : quiet_monitor_ns);
        nanosleep(&pause, nullptr);
        all.see_to_due(); // all workers may be blocked, and nobody wait for them till then
        const std::uint32_t count = all.started_.load(std::memory_order_relaxed);
        for (std::uint32_t number = 0; number < count; ++number) {
            all.look_after(*all.workers_[number]);
        }
        const std::uint64_t now = monotonic_ns();
        if (all.balancing_ != nullptr) {
            all.balancing_->tick(now);
        }
        if (now - shown_ns > show_every_ns) {
            shown_ns = now;
            all.show_waits();
            all.write_loads();
        }
    }
}

namespace {

// Whether a thread of this process sleeps in the kernel.
bool sleeps(int thread) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    char text[256];
    const ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    close(file);
    if (got <= 0) {
        return false;
    }
    text[got] = '\0';
    const char* name_end = std::strrchr(text, ')');
    return name_end != nullptr && name_end[1] == ' ' && (name_end[2] == 'S' || name_end[2] == 'D');
}

} // namespace

// All that is in one queue goes to another.
void Scheduler::hand_over(Worker& from, Worker& to) {
    awake_.fetch_add(1, std::memory_order_seq_cst); // invariant 7
    const auto is_asleep = [&] { return sleeps(from.thread.load(std::memory_order_relaxed)); };
    if (const ReadyQueue::Row row = from.queue.take_all(is_asleep); row.count != 0) {
        push_all(to, row);
    }
    if (awake_.fetch_sub(1, std::memory_order_seq_cst) == 1) {
        call(to);
    }
}

void Scheduler::look_after(Worker& worker) {
    worker.stretches.time_next();
    const std::uint64_t switches = worker.switches.load(std::memory_order_relaxed);
    const bool has_switched = std::exchange(worker.seen_switches, switches) != switches;
    if (worker.relieved.load(std::memory_order_relaxed)) {
        // (It may have taken itself for one that is back, just as it was relieved.)
        worker.deputy.store(&represented(worker), std::memory_order_release);
        if (worker.queue.count() != 0) {
            hand_over(worker, deputy_of(worker)); // what runs there may compute for long
        }
        return;
    }
    if (has_switched) {
        Worker* spare = std::exchange(worker.spare, nullptr);
        worker.deputy.store(nullptr, std::memory_order_release);
        while (spare != nullptr) { // and who stands in for it
            spare->relieved.store(true, std::memory_order_release);
            spare->deputy.store(&represented(*spare), std::memory_order_release);
            call(*spare);
            spare = std::exchange(spare->spare, nullptr);
        }
        return;
    }
    if (worker.queue.count() == 0) {
        return; // nobody waits for it
    }
    // Who stands in may be blocked in its turn.
    Worker* last = &worker;
    while (last->spare != nullptr) {
        last = last->spare;
    }
    const Fibre* blocks = last->running.load(std::memory_order_relaxed);
    if (blocks == nullptr || !sleeps(last->thread.load(std::memory_order_relaxed))) {
        if (last != &worker) {
            hand_over(worker, *last);
        }
    } else if (stand_in(*last) && options_.blocked != nullptr) {
        options_.blocked(blocks->number);
    }
}

// Has one that is relieved stand in again, unless it still runs something or has something to hand
// on to whom it stood in for before.
bool Scheduler::engage(Worker& former, Worker& worker) {
    {
        const std::lock_guard guard(former.queue.lock());
        if (!former.sleeping.load(std::memory_order_relaxed) || former.queue.count() != 0) {
            return false;
        }
        former.principal.store(&represented(worker), std::memory_order_relaxed);
        former.processor.store(worker.processor, std::memory_order_relaxed);
        former.deputy.store(nullptr, std::memory_order_relaxed);
        former.relieved.store(false, std::memory_order_release);
    }
    bind(former.thread.load(std::memory_order_relaxed), worker.processor);
    worker.spare = &former;
    worker.deputy.store(&former, std::memory_order_release);
    call(former);
    return true;
}

// Has a spare worker stand in. False: there is none left.
bool Scheduler::stand_in(Worker& worker) {
    for (std::uint32_t number = 0; number < started_.load(std::memory_order_relaxed); ++number) {
        Worker& former = *workers_[number];
        if (&former != &worker && former.relieved.load(std::memory_order_relaxed) &&
            engage(former, worker)) {
            return true;
        }
    }
    const std::uint32_t number = started_.load(std::memory_order_relaxed);
    if (number == workers_.size()) {
        return false;
    }
    Worker& spare = *workers_[number];
    spare.principal.store(&represented(worker), std::memory_order_relaxed);
    spare.processor.store(worker.processor, std::memory_order_relaxed);
    if (spare.event_table == nullptr) { // else it has been tried before
        spare.event_table = std::make_unique<EventTable>(number);
    }
    awake_.fetch_add(1, std::memory_order_seq_cst);
    started_.store(number + 1, std::memory_order_release);
    if (start_worker(spare) != 0) {
        started_.store(number, std::memory_order_relaxed);
        if (awake_.fetch_sub(1, std::memory_order_seq_cst) == 1) {
            call(represented(worker)); // invariant 7
        }
        return false;
    }
    worker.spare = &spare;
    worker.deputy.store(&spare, std::memory_order_release);
    return true;
}

// Without locks: the worker finds by itself that it sleeps no more, and that something is due.
void Scheduler::call_one_that_sleeps() {
    const std::uint32_t count = started_.load(std::memory_order_acquire);
    for (std::uint32_t number = 0; number < count; ++number) {
        Worker& worker = *workers_[number];
        if (worker.sleeping.load(std::memory_order_seq_cst)) {
            worker.bell.fetch_add(1, std::memory_order_seq_cst);
            kernel_wake(worker.bell, 1);
            return;
        }
    }
}

// Wakes a worker if it sleeps.
bool Scheduler::call(Worker& worker) {
    bool wakes = false;
    {
        const std::lock_guard guard(worker.queue.lock());
        wakes = worker.sleeping.exchange(false, std::memory_order_relaxed);
        if (wakes) {
            awake_.fetch_add(1, std::memory_order_seq_cst);
            worker.bell.fetch_add(1, std::memory_order_relaxed);
        }
    }
    if (wakes) {
        kernel_wake(worker.bell, 1);
    }
    return wakes;
}

} // namespace warren::fibre
