// Workers: how they start, and what those do that have no fibre to run.
#include <algorithm>
#include <dirent.h>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "runtime/fibres/donor.hpp"
#include "runtime/fibres/scheduler.hpp"
#include "runtime/fibres/tuning.hpp"

namespace warren::fibre {

ProcessorCalls ProcessorCalls::of_kernel() {
    return {.switches =
                [] {
                    rusage usage = {};
                    getrusage(RUSAGE_THREAD, &usage);
                    return usage.ru_nivcsw;
                },
            .yield = [] { sched_yield(); }};
}

int Scheduler::start() {
    awake_.store(started_, std::memory_order_relaxed);
    begin_ns_ = monotonic_ns();
    begin_ticks_ = ticks();
    if (balancing_ != nullptr) {
        balancing_->begin();
    }
    for (std::uint32_t number = 0; number < started_; ++number) {
        if (const int error = start_worker(*workers_[number])) {
            return error;
        }
    }
    pthread_t monitor;
    const int error = pthread_create(&monitor, nullptr, run_monitor, nullptr);
    if (error == 0) {
        pthread_detach(monitor);
    }
    return error;
}

int Scheduler::start_worker(Worker& worker) {
    const std::uint64_t now = ticks();
    worker.stretches.begin(now);
    worker.begin.store(now, std::memory_order_release); // who sees it, sees its event waiters
    pthread_t thread;
    const int error = pthread_create(&thread, nullptr, run_worker, &worker);
    if (error == 0) {
        pthread_detach(thread);
    }
    return error;
}

// The kernel threads of this process.
std::size_t Scheduler::count_threads() {
    DIR* folder = opendir("/proc/self/task");
    if (folder == nullptr) {
        return SIZE_MAX; // there may be any
    }
    std::size_t count = 0;
    while (const dirent* entry = readdir(folder)) {
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    return count;
}

// If the kernel refuses, the thread stays where it may run now.
void Scheduler::bind(int thread, int processor) {
    if (processor >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(static_cast<std::size_t>(processor), &set);
        sched_setaffinity(thread, sizeof set, &set);
    }
}

void* Scheduler::run_worker(void* given) {
    Worker& worker = *static_cast<Worker*>(given);
    const std::string name = "worker " + std::to_string(worker.number);
    pthread_setname_np(pthread_self(), name.c_str());
    bind(0, worker.processor);
    worker.idle.thread_pointer = thread_pointer();
    // A child of fork runs in the worker's kernel thread, but its C library takes the calling
    // fibre's for the only one, and uses the worker's memory again.
    forget_restartable_sequences();
    worker.thread.store(static_cast<int>(syscall(SYS_gettid)), std::memory_order_relaxed);
    if (scheduler()->options_.begin_worker != nullptr) {
        scheduler()->options_.begin_worker();
    }
    const Inside inside;
    scheduler()->work(worker);
}

void Scheduler::work(Worker& worker) {
    worker.looks.resize(workers_.size());
    bool has_watched = false; // the timers, while it slept
    while (true) {
        if (worker.relieved.load(std::memory_order_acquire)) {
            see_to_due(); // it sleeps no longer than till then
            hand_on(worker);
            has_watched |= sleep(worker);
            continue;
        }
        if (worker.deputy.load(std::memory_order_relaxed) != nullptr) {
            worker.deputy.store(nullptr, std::memory_order_relaxed); // it is back
        }
        Fibre* next = worker.handed.exchange(nullptr, std::memory_order_acquire);
        if (next == nullptr) {
            next = find(worker);
        }
        if (next == nullptr) {
            next = look_for_a_while(worker);
        }
        if (next == nullptr) {
            has_watched |= sleep(worker);
            continue;
        }
        if (std::exchange(has_watched, false) && timers_.are_unwatched()) {
            call_one_that_sleeps(); // the fibre may run for long
        }
        for (std::uint32_t turn = 0; next->on_worker.load(std::memory_order_acquire) != 0; ++turn) {
            if (turn < looks_before_sleep) {
                spin_pause();
            } else {
                sched_yield(); // who leaves it has lost the processor
            }
        }
        resume(worker, *next);
    }
}

Fibre* Scheduler::find(Worker& worker) {
    see_to_due();
    Fibre* next = take(worker);
    return next != nullptr ? next : steal(worker);
}

Fibre* Scheduler::look_for_a_while(Worker& worker) {
    for (std::uint32_t turn = 0;
         turn < looks_before_sleep && awake_.load(std::memory_order_relaxed) > 1; ++turn) {
        for (std::uint32_t pause = 0; pause < turns_of_a_look; ++pause) {
            spin_pause();
            if (worker.queue.count() != 0) {
                return take(worker);
            }
        }
        if (object_waits_.are_due()) {
            object_waits_.tell_due();
        }
        if (Fibre* next = steal(worker)) {
            return next;
        }
    }
    return nullptr;
}

// The worker that a spare worker stands in for; for any other worker, itself.
Worker& Scheduler::represented(Worker& worker) {
    Worker* const principal = worker.principal.load(std::memory_order_relaxed);
    return principal != nullptr ? *principal : worker;
}

// Without stealing, workers take only from workers that stand in for the same worker.
bool Scheduler::may_take(Worker& worker, Worker& from) const {
    return options_.steals || &represented(worker) == &represented(from);
}

bool Scheduler::gives_homes() const {
    return balancing_ != nullptr && balancing_->gives_homes();
}

// Takes half of what a worker has ready, the nearest worker's first.
Fibre* Scheduler::steal(Worker& worker) {
    const std::size_t count = started_.load(std::memory_order_acquire);
    const bool gives_homes = this->gives_homes();
    for (std::size_t step = 1; step < count; ++step) {
        // 1, -1, 2, -2, …: processors that are near have numbers that are.
        const std::size_t distance = (step + 1) / 2;
        const std::size_t index =
            (worker.number + (step % 2 == 1 ? distance : count - distance)) % count;
        Worker& other = *workers_[index];
        if (!may_take(worker, other)) {
            continue;
        }
        const std::uint32_t ready = other.queue.count();
        Look& look = worker.looks[index];
        if (ready <= 1 || look.ran_before != worker.ran) {
            look.ran_before = worker.ran;
            look.many_since = 0;
        }
        if (ready == 0) {
            continue;
        }
        const std::uint64_t switches = other.switches.load(std::memory_order_relaxed);
        const std::uint64_t now = ticks();
        if (look.switches != switches) {
            look.switches = switches;
            look.since = now;
        }
        if (ready > 1 && look.many_since == 0) {
            look.many_since = now;
        }
        const bool has_homes = gives_homes && &represented(worker) != &represented(other);
        std::uint64_t since = ready > 1 ? look.many_since : look.since;
        if (has_homes) {
            since = std::min(since, look.since);
        }
        const std::uint64_t patience = has_homes   ? patience_with_homes_ticks
                                       : ready > 1 ? patience_of_many_ticks
                                                   : patience_ticks;
        if (now - since < patience) {
            continue;
        }
        ReadyQueue::Row row = other.queue.take_half();
        if (row.count == 0) {
            // Not again at once: the attempt may have interrupted every processor, and the thread
            // that uses the list may have lost its processor.
            look.since = now;
            look.many_since = ready > 1 ? now : 0;
            continue;
        }
        look.many_since = 0;
        Fibre* const taken = row.first;
        row.first = std::exchange(taken->next, nullptr);
        if (--row.count != 0) {
            worker.queue.put(row);
        }
        return taken;
    }
    return nullptr;
}

bool Scheduler::sleep(Worker& worker) {
    std::uint32_t seen = 0;
    {
        const std::lock_guard guard(worker.queue.lock());
        if (worker.queue.count() != 0) {
            return false;
        }
        worker.patrols.store(false, std::memory_order_relaxed);
        worker.sleeping.store(true, std::memory_order_release);
        seen = worker.bell.load(std::memory_order_relaxed);
    }
    const bool others = awake_.fetch_sub(1, std::memory_order_seq_cst) != 1;
    const std::uint64_t now = monotonic_ns();
    // Who is called from a handler of a signal has been sleeping by then, or sees here what is due.
    const bool is_due = object_waits_.are_due();
    bool looks_again = false;
    if (!others && !is_due) {
        looks_again = look_for_deadlock();
    }
    const std::uint64_t watched = is_due ? UINT64_MAX : timers_.watch();
    std::uint64_t until = is_due ? now : watched;
    const bool helps =
        options_.steals || worker.principal.load(std::memory_order_relaxed) != nullptr;
    if (others && helps && !worker.relieved.load(std::memory_order_relaxed)) {
        worker.patrols.store(true, std::memory_order_relaxed);
        until = std::min(until, now + patrol_ns);
    } else if (looks_again) {
        until = std::min(until, now + deadlock_ns);
    }
    const timespec limit = time_of(until > now ? until - now : 0);
    kernel_wait(worker.bell, seen, until == UINT64_MAX ? nullptr : &limit);
    timers_.end_watch(watched);
    {
        const std::lock_guard guard(worker.queue.lock());
        if (worker.sleeping.exchange(false, std::memory_order_relaxed)) {
            awake_.fetch_add(1, std::memory_order_seq_cst);
        }
    }
    return watched != UINT64_MAX;
}

void Scheduler::expire_timers() {
    const std::uint64_t now = monotonic_ns();
    Timers::Entry entry{};
    while (timers_.earliest() <= now && timers_.take(now, entry)) {
        Fibre& fibre = *entry.fibre;
        Bucket& bucket = bucket_of(fibre.word.load(std::memory_order_relaxed));
        bool expired = false;
        bucket.lock.lock();
        // It may have been woken, and wait elsewhere: then it is not here, or in a later park.
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

// Nothing is ready and no worker awake. Threads that are no workers, signals, and time limits, may
// change that; else it stays so. True: it is to be looked at again, because there are such threads
// (also donors that have yet to end), or timers that will signal.
bool Scheduler::look_for_deadlock() {
    show_waits();
    bool waits_in_call = false;
    for (std::uint32_t number = 0; number < made_; ++number) {
        const Fibre& fibre = fibres_[number];
        switch (fibre.state.load(std::memory_order_relaxed)) {
        case State::ended:
            break;
        case State::parked:
        case State::waits_for_event:
            waits_in_call |= fibre.note.load(std::memory_order_relaxed) != nullptr;
            break;
        default:
            return false;
        }
    }
    if (!waits_in_call || options_.stuck == nullptr) {
        return false;
    }
    if (count_threads() > started_ + 1 + other_threads_ ||
        (options_.expects_signals != nullptr && options_.expects_signals())) {
        return true;
    }
    if (awake_.load(std::memory_order_seq_cst) == 0 &&
        !told_stuck_.exchange(true, std::memory_order_relaxed)) {
        options_.stuck();
    }
    return false;
}

} // namespace warren::fibre
