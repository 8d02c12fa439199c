// Scheduler: runs the fibres of a process, a kernel thread (worker) per processor.
//
// Each worker has a queue of ready fibres, first come, first served. A fibre that waits is parked
// on the word that it waits for, in one of many buckets by the word's address; who wakes it puts it
// in the queue of the worker that it ran on. A fibre leaves its worker straight for the next in the
// queue, without a detour. A worker without fibres looks for a while, takes some from a worker that
// has more than it gets done, the nearest first, and then sleeps. Nothing interrupts a fibre that
// computes: others in its worker's queue are taken by idle workers, soon, because workers that
// sleep while others are awake look again every few milliseconds; and by workers whose fibres give
// way again and again to nobody: what one of those looks for may be another's to do.
//
// A fibre that sleeps in a system call keeps its worker. A monitor, a kernel thread that looks
// every few milliseconds, sees it, and starts a spare worker on the same processor, which takes
// over what waits in that worker's queue until it is back (spares.cpp has the invariants).
//
// Waits are those of base/futex.hpp; kernel threads may take part in them.
//
// Invariants (those of a fibre are in fibre.hpp)
//  1. A word is compared with what its waiter expects under the bucket's lock, and who wakes has
//     changed it before it takes that lock: no wake is lost. (Of one that waits for an event, its
//     bell is compared under the list's lock: event_waiters.hpp, invariant 2.)
//  2. awake_ counts the workers that are not sleeping (spares.cpp, invariant 7). Who puts a fibre
//     into the queue of one that sleeps, counts it again before it lets go of the queue's lock. So
//     when it becomes 0 no fibre is ready or runs; if all are parked without a time limit, or
//     waits_for_event, and no other threads are there that could wake one, nothing will ever happen
//     again: stuck() is told.
//  3. Locks: a bucket's before that of the timers, or of a list of event waiters; a list's before
//     no other; a queue's alone (ready_queue.hpp; what runs on a worker gets at its own queue
//     without, unless others have put something there).
// Thread rule: one scheduler per process; prepare and make from one thread, before start; all else
// from any thread, if nothing else is said. A child of fork has no fibres: what forked is a thread
// there.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/balance/load_table.hpp"
#include "runtime/fibres/balancing.hpp"
#include "runtime/fibres/fibre.hpp"
#include "runtime/fibres/object_waits.hpp"
#include "runtime/fibres/timers.hpp"
#include "runtime/fibres/worker.hpp"

namespace warren::fibre {

// Lives while the calling thread, or fibre, may hold locks of this room, or is a worker that looks
// for work: a handler of a signal that comes meanwhile may take none (ObjectWaits::tell_safely).
class Inside {
  public:
    Inside() : before_(std::exchange(is_inside, true)) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~Inside() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        is_inside = before_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

    static bool has_caller() { return is_inside; }

  private:
    // A fibre's own, as all its thread-local variables.
    [[gnu::tls_model("initial-exec")]] static constinit inline thread_local bool is_inside = false;

    const bool before_;
};

struct SchedulerOptions {
    std::vector<int> processors; // one worker on each; -1: not bound
    std::uint32_t fibres = 0;    // that there will be at most
    // All fibres wait for each other; called once, by a worker. May be null.
    void (*stuck)() = nullptr;
    void (*begin_worker)() = nullptr; // in each worker, first
    // A fibre blocks its worker in a system call, and a spare worker takes over. May be null.
    void (*blocked)(std::uint32_t fibre) = nullptr;
    balance::LoadTable loads = {}; // to be written to; empty: none
    bool steals = true;            // idle workers take fibres from others
    BalancingOptions balancing = {};
};

class Scheduler {
  public:
    explicit Scheduler(const SchedulerOptions& options);
    ~Scheduler() = delete; // lives as long as the process

    // Makes a fibre that will run function(argument) on this stack. Returns an errno.
    int make(void* stack, std::size_t bytes, void (*function)(void*), void* argument);
    // Starts the workers. Returns an errno.
    int start();

    // The fibre that the calling thread is; null: it is none.
    static Fibre* current();

    void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* timeout,
              WaitNote* note);
    // Waits for what an object wait is told by, until a time of the monotonic clock, or rather
    // until its look at that time says so.
    void wait_looking(std::atomic<std::uint32_t>& told, std::uint64_t time_ns, ObjectWait& object);
    void wake(std::atomic<std::uint32_t>& word, int count);
    // Wakes a sleeping worker, if there is one, so that it handles timers that are due. May be
    // called in signal handlers.
    void call_one_that_sleeps();
    // Whether the calling thread may wait for an event: it is a fibre.
    bool may_wait_for_event() const;
    // Parks the calling fibre until an event is released, unless it has happened, or its `bell`,
    // always the same, doesn't say what it expects, or is woken by. For events that many wait for.
    void wait_for_event(const void* event, bool (*happened)(void*), void* condition,
                        std::atomic<std::uint32_t>& bell, std::uint32_t expected, WaitNote* note);
    // All fibres that wait for the event go on. It has happened.
    void release(const void* event);
    // Lets the fibres of the calling one's worker that are ready run first.
    void give_way();
    // As above, for a fibre that has looked for something a few times in vain, which took about so
    // many ticks. What it has run since it went on doesn't count as its load if that is little
    // more: then it has done nothing else.
    void found_nothing(std::uint64_t looks_ticks);
    // Parks the calling fibre until then (monotonic clock).
    void sleep_until(std::uint64_t time_ns);
    // The calling fibre has ended.
    [[noreturn]] void end();

    // Waits of fibres for objects of the program.
    ObjectWaits& object_waits() { return object_waits_; }

    // Has those that wait say what for (WaitNote).
    void show_waits();

    // Writes all loads, or, when the calling fibre is about to end, that and the workers', to the
    // table.
    void write_loads();
    void write_last_load();

    // The calling fibre, if it is one, is at a point where it may go on elsewhere; or enters a
    // collective operation of all ranks.
    void at_point();
    void at_collective();
    // For balancing: where a fibre begins; makes a worker its home; for how many ticks a worker has
    // been without a fibre.
    std::uint32_t first_worker(std::uint32_t fibre) const {
        return static_cast<std::uint32_t>(std::uint64_t{fibre} * options_.processors.size() /
                                          options_.fibres);
    }
    void set_home(std::uint32_t fibre, std::uint32_t worker) {
        fibres_[fibre].home_worker.store(workers_[worker].get(), std::memory_order_relaxed);
    }
    std::uint64_t idled(std::uint32_t worker, std::uint64_t now) const;
    double ns_per_tick() const;
    // The fibre that a worker runs, and what that has run in ticks till `now`, with the stretch
    // that it is in; null: there is none, or another by now.
    const Fibre* running(std::uint32_t worker, std::uint64_t now, std::uint64_t& ran) const;
    // Ticks that the calling fibre has run up to now: from one call to the next it never falls,
    // as it would with what is yet to be accounted for (stretches.hpp) added.
    static std::uint64_t run_so_far(Fibre& self);
    std::uint32_t workers() const { return started_.load(std::memory_order_acquire); } // spare too

    const SchedulerOptions& options() const { return options_; }
    const Fibre& fibre(std::uint32_t number) const { return fibres_[number]; }
    // Also of one that has yet to be started.
    const Worker& worker(std::uint32_t number) const { return *workers_[number]; }
    bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  private:
    struct alignas(64) Bucket {
        SpinLock lock;
        Fibre* first = nullptr;
        Fibre** end = &first;
        Fibre* bells = nullptr; // those of all fibres that have ever waited for an event
    };

    Bucket& bucket_of(const void* word) {
        const auto address = reinterpret_cast<std::uintptr_t>(word);
        // The high bits of a product with an odd constant (the golden ratio's) depend on all of it.
        return buckets_[(address >> 2) * 0x9e3779b97f4a7c15U >> bucket_shift_];
    }

    void park(Fibre& self, std::atomic<std::uint32_t>& word, std::uint32_t expected,
              std::uint64_t time_ns, WaitNote* note, ObjectWait* object);
    static Fibre* take(Worker& worker);
    static void put_behind(Worker& worker, Fibre& fibre);
    static void expect(const Fibre& fibre);
    void push(Fibre& fibre);
    void push_all(Worker& worker, const ReadyQueue::Row& row);
    void push_home(Worker& worker, Fibre* first);
    bool call(Worker& worker);
    void call_helper(Worker& from);
    void call_helper_for_many(Worker& worker);
    void see_to_due_now_and_then(Worker& worker);
    void see_to_due_at_last(Worker& worker);
    void leave(Fibre& self);
    static bool is_away(const Fibre& self);
    void go_home(Fibre& self);
    bool is_others_turn(Fibre& self);
    void help_others(Fibre& self);
    void switch_to(Fibre& self, Fibre& next);
    static void resume(Worker& worker, Fibre& next);
    static void begin(Worker& worker, Fibre& next);
    static void go_idle(Fibre& self, Fibre* next);
    static void resumed(Fibre* self, void* fibre);
    static void account(Worker& worker, Fibre* before);
    static void account_amid(Worker& worker, Fibre* before);

    void write_load(const Fibre& fibre, std::uint64_t ran_ticks, balance::Phase phase,
                    double scale);
    void write_worker(const Worker& worker, std::uint64_t now, double scale);

    static void* run_worker(void* worker);
    [[noreturn]] void work(Worker& worker);
    Fibre* find(Worker& worker);
    Fibre* look_for_a_while(Worker& worker);
    Fibre* steal(Worker& worker);
    void sleep(Worker& worker);
    void hand_on(Worker& spare);
    static void* run_monitor(void*);
    void look_after(Worker& worker);
    void hand_over(Worker& from, Worker& to);
    static Worker& represented(Worker& worker);
    static Worker& deputy_of(Worker& worker);
    bool may_take(Worker& worker, Worker& from) const;
    bool gives_homes() const;
    bool stand_in(Worker& worker);
    bool engage(Worker& former, Worker& worker);
    int start_worker(Worker& worker);
    static void take_off(Bucket& bucket, Fibre** link);
    static bool waits_for_event(const Fibre& fibre, const EventWaiters& event_waiters);
    static void take_out(EventWaiters& event_waiters, Fibre& fibre);
    static bool take_out_by_bell(const Bucket& bucket, const void* bell, Fibre*& taken);
    void release(const void* event, Worker& worker);
    static void show(Fibre& fibre);
    // Whether it is worth it to see to timers and tellings.
    bool may_be_due() const { return timers_.earliest() != UINT64_MAX || object_waits_.are_due(); }
    void see_to_due();
    void expire_timers();
    bool look_for_deadlock();
    // The kernel threads of this process.
    static std::size_t count_threads();
    static void bind(int thread, int processor);

    SchedulerOptions options_;
    std::unique_ptr<Fibre[]> fibres_;
    std::uint32_t made_ = 0;
    std::size_t other_threads_; // of the process, which were there before: they wake nobody
    std::vector<std::unique_ptr<Worker>> workers_; // those behind started_ are spare
    std::atomic<std::uint32_t> started_{0};
    std::unique_ptr<Bucket[]> buckets_;
    unsigned bucket_shift_ = 0;
    Timers timers_;
    ObjectWaits object_waits_;
    std::unique_ptr<Balancing> balancing_; // null: none
    std::uint64_t begin_ns_ = 0;           // of the workers, by both clocks
    std::uint64_t begin_ticks_ = 0;
    std::atomic<bool> enabled_{true};
    std::atomic<bool> told_stuck_{false};
    alignas(64) std::atomic<std::uint32_t> awake_{0};
    alignas(64) std::atomic<std::uint32_t> kernel_sleepers_{0};
};

// The process's scheduler, or null.
Scheduler* scheduler();

} // namespace warren::fibre
