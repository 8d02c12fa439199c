// Fibres that block their workers in system calls, and the workers that stand in meanwhile.
//
// Invariants
//  1. Only the monitor starts, relieves and calls back spare workers. A spare one that isn't
//     relieved has a principal, which is none itself; that one's chain of `spare` leads to it.
//  2. All workers there can be, and their queues, are there from the beginning, the gatherings of
//     one before started_ counts it, and the same for good. So who has read started_ may look at
//     all workers below it, also when starting the last one fails and started_ goes back: then
//     nothing has run there, and nothing is or comes into its queue or its gatherings.
//  3. A fibre that gathers where it runs is seen by each releaser (gathering.hpp, invariant 2):
//     started_ has counted its worker before the worker's thread was made, so before its fence.
//  4. What is in a relieved worker's queue is handed on by that worker when what it runs leaves it,
//     or taken by the principal, which the monitor calls for it; what still gathers there comes to
//     its queue when it is released.
//  5. A worker that is being started is awake. If that fails, and nobody else is awake by then, who
//     slept last has not looked whether all fibres wait for each other: it is called to do it.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <utility>

#include "fibre/scheduler.hpp"

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
    std::uint64_t shown_ns = 0;
    while (true) {
        const timespec pause = time_of(
            all.awake_.load(std::memory_order_relaxed) != 0 ? monitor_ns : quiet_monitor_ns);
        nanosleep(&pause, nullptr);
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

void Scheduler::look_after(Worker& worker) {
    if (worker.relieved.load(std::memory_order_relaxed) &&
        worker.count.load(std::memory_order_relaxed) != 0) {
        call(represented(worker)); // what runs there may compute for long
    }
    const std::uint64_t switches = worker.switches.load(std::memory_order_relaxed);
    if (std::exchange(worker.seen_switches, switches) != switches) {
        Worker* spare = std::exchange(worker.spare, nullptr);
        while (spare != nullptr) { // and who stands in for it
            spare->relieved.store(true, std::memory_order_release);
            call(*spare);
            spare = std::exchange(spare->spare, nullptr);
        }
        return;
    }
    if (worker.count.load(std::memory_order_relaxed) == 0) {
        return; // nobody waits for it
    }
    // Who stands in may be blocked in its turn.
    Worker* last = &worker;
    while (last->spare != nullptr) {
        last = last->spare;
    }
    const Fibre* blocks = last->running.load(std::memory_order_relaxed);
    if (blocks != nullptr && sleeps(last->thread.load(std::memory_order_relaxed)) &&
        stand_in(*last) && options_.blocked != nullptr) {
        options_.blocked(blocks->number);
    }
}

// Has a spare worker stand in. False: there is none left.
bool Scheduler::stand_in(Worker& worker) {
    for (std::uint32_t number = 0; number < started_.load(std::memory_order_relaxed); ++number) {
        Worker& former = *workers_[number];
        // (What it was relieved of has long been handed on, or will be taken by others.)
        if (former.relieved.load(std::memory_order_relaxed) && &former != &worker &&
            former.running.load(std::memory_order_relaxed) == nullptr) {
            former.principal.store(&represented(worker), std::memory_order_relaxed);
            former.processor.store(worker.processor, std::memory_order_relaxed);
            bind(former.thread.load(std::memory_order_relaxed), worker.processor);
            worker.spare = &former;
            former.relieved.store(false, std::memory_order_release);
            call(former);
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
    if (spare.gatherings == nullptr) { // else it has been tried before
        spare.gatherings = std::make_unique<Gatherings>(number);
    }
    awake_.fetch_add(1, std::memory_order_seq_cst);
    started_.store(number + 1, std::memory_order_release);
    if (start_worker(spare) != 0) {
        started_.store(number, std::memory_order_relaxed);
        if (awake_.fetch_sub(1, std::memory_order_seq_cst) == 1) {
            call(represented(worker)); // invariant 5
        }
        return false;
    }
    worker.spare = &spare;
    return true;
}

// Wakes a worker if it sleeps.
bool Scheduler::call(Worker& worker) {
    worker.lock.lock();
    const bool wakes = worker.sleeping.exchange(false, std::memory_order_relaxed);
    if (wakes) {
        awake_.fetch_add(1, std::memory_order_seq_cst);
        worker.bell.fetch_add(1, std::memory_order_relaxed);
    }
    worker.lock.unlock();
    if (wakes) {
        kernel_wake(worker.bell, 1);
    }
    return wakes;
}

} // namespace warren::fibre
