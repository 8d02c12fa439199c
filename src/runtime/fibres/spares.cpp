// Fibres that block their workers in system calls, and the workers that stand in meanwhile.
//
// The principal of a spare worker is the worker that it stands in for.
//
// Invariants
//  1. Only the monitor starts, relieves and calls back spare workers. A spare worker that is
//     started and not relieved has a principal, which is no spare worker; following `spare` from
//     the principal leads to it. A relieved spare worker is in no such chain, and nobody stands in
//     for it.
//  2. All workers that there can be, and their queues, exist from the beginning. A worker's event
//     waiters exist before started_ counts the worker, and never change. A thread that has read
//     started_ may therefore look at all workers below it. If starting the last worker fails and
//     started_ goes back, nothing has run there, and its queue and event waiters stay empty.
//  3. Each releaser sees a fibre that waits for an event where it runs (event_waiters.hpp,
//     invariant 2): started_ counted its worker before the worker's thread was made, so before the
//     thread's fence.
//  4. A relieved worker hands the fibres of its queue on to its principal when the fibre that it
//     runs leaves it or yields; otherwise the monitor does so when it looks. Fibres that become
//     ready for it later go to its deputy, the principal. The worker can stand in again only when
//     it sleeps with an empty queue.
//  5. The spare worker of a blocked worker takes half of that worker's queue at a time, when it has
//     nothing else to run. When the monitor looks, it gives the spare worker the whole queue,
//     because fibres that yield to each other for ever would keep it busy. Fibres that become ready
//     for the blocked worker later go to its deputy, the spare worker, until the blocked worker is
//     back.
//  6. Following deputies ends at a worker without one. A blocked worker's deputy is the spare
//     worker that stands in for it, whose deputy is the next spare worker if it is blocked, too. A
//     relieved worker's deputy is its principal, and no chain of deputies leads from there back to
//     it, because a worker in a chain never has its principal as deputy.
//  7. A worker that is being started counts as awake, and so does one more worker while the monitor
//     holds fibres. If nobody else is awake afterwards, the worker that slept last has not tested
//     whether all fibres wait for each other; the monitor then wakes a worker to do it.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <utility>

#include "runtime/fibres/scheduler.hpp"
#include "runtime/fibres/tuning.hpp"

namespace warren::fibre {

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
        if (all.timers_.are_unwatched()) {
            all.call_one_that_sleeps(); // the worker that watched them runs a fibre, maybe for long
        }
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
