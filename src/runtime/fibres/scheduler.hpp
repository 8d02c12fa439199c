// Scheduler: runs the fibres of a process on workers, one kernel thread per processor.
//
// Each worker has a queue of ready fibres, first come, first served. A fibre that waits is parked
// in one of many buckets, chosen by the address of the word that the fibre waits for. The waker
// puts the fibre into the queue of the worker that the fibre ran on last. A fibre that leaves its
// worker switches straight to the next fibre of the queue.
//
// A worker without fibres polls for a while, then takes fibres from a worker that has more than it
// can run, the nearest first, and then sleeps. Nothing interrupts a fibre that computes. Idle
// workers soon take the other fibres of its queue, because a sleeping worker looks at the others
// every few milliseconds. A worker whose fibres yield again and again with nobody else to run also
// looks at the other queues: a fibre there may do what its own fibres poll for.
//
// A fibre that sleeps in a system call blocks its worker. The monitor, a kernel thread that looks
// every few milliseconds, sees that and starts a spare worker on the same processor. The spare
// worker runs the fibres of that queue until the blocked worker is back (spares.cpp has the
// invariants).
//
// Waits are those of base/futex.hpp; kernel threads may take part in them.
//
// Invariants (those of a fibre are in fibre.hpp)
//  1. A waiter compares the word with the expected value under the bucket's lock. A waker changes
//     the word before it takes that lock. So no wake is lost. (For a fibre that waits for an event,
//     its bell is compared under the lock of the list of event waiters: event_waiters.hpp,
//     invariant 2.)
//  2. awake_ counts the workers that do not sleep (spares.cpp, invariant 7). A thread that puts a
//     fibre into a sleeping worker's queue counts that worker as awake before it releases the
//     queue's lock. So when awake_ becomes 0, no fibre is ready or runs. If all fibres are parked
//     without a time limit or wait for an event, and no other thread exists that could wake one,
//     nothing can happen any more: stuck() is called.
//  3. Order of locks: a bucket's lock before that of the timers or of a list of event waiters; no
//     lock is taken while a list's lock is held; a queue's lock is taken alone. (A worker reaches
//     its own list of ready fibres without a lock: ready_queue.hpp.)
// Thread rule: one scheduler per process. One thread prepares it and makes fibres, before start().
// Any thread may call everything else, unless said otherwise. A child of fork has no fibres: the
// fibre that forked is an ordinary thread there.
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

// Marks a stretch of code in which the calling thread or fibre may hold locks of this room, or is a
// worker that looks for work. A signal handler that interrupts it must not take these locks
// (ObjectWaits::tell_safely). At its end an interrupted fibre acts (Scheduler::interrupt).
class Inside {
  public:
    Inside() : before_(std::exchange(is_inside, true)) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~Inside() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        is_inside = before_;
        if (is_interrupted() && !before_ && !postponed) [[unlikely]] {
            act();
        }
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

    static bool has_caller() { return is_inside; }
    static bool is_interrupted() { return interrupted.load(std::memory_order_relaxed); }
    // While others refer to the stack of the fibre (ObjectWait) it doesn't act: it may leave this
    // stack by a jump.
    static bool is_postponed() { return postponed; }
    static bool postpone(bool now) { return std::exchange(postponed, now); }
    static void act();
    // Handlers of signals that have run in the fibre, and those of them without SA_RESTART.
    struct Handlers {
        std::uint32_t all;
        std::uint32_t interrupting;
    };
    static Handlers handlers() { return has_handled; }
    static void note_handler(bool restarts) {
        ++has_handled.all;
        has_handled.interrupting += restarts ? 0 : 1;
    }

  private:
    friend class Scheduler;

    // A fibre's own, as all its thread-local variables.
    [[gnu::tls_model("initial-exec")]] static constinit inline thread_local bool is_inside = false;
    // Written by others too (Fibre::is_interrupted).
    [[gnu::tls_model("initial-exec")]] static constinit inline thread_local std::atomic<bool>
        interrupted{false};
    [[gnu::tls_model("initial-exec")]] static constinit inline thread_local bool postponed = false;
    [[gnu::tls_model("initial-exec")]] static constinit inline thread_local Handlers has_handled{};

    const bool before_;
};

// The scheduler asks this of the kernel for workers whose fibres poll in vain (VainTurns).
struct ProcessorCalls {
    // How often the kernel has taken the processor from the calling thread.
    long (*switches)();
    void (*yield)();

    static ProcessorCalls of_kernel();
};

struct SchedulerOptions {
    std::vector<int> processors; // one worker on each; -1: not bound
    std::uint32_t fibres = 0;    // that there will be at most
    // All fibres wait for each other; called once, by a worker. May be null.
    void (*stuck)() = nullptr;
    // Whether a signal will come, which may resume one of them. Null: none.
    bool (*expects_signals)() = nullptr;
    void (*begin_worker)() = nullptr; // in each worker, first
    // In a fibre that has been interrupted. May be null.
    void (*interrupted)() = nullptr;
    // Whether a fibre that stays (Scheduler::stay) still has to. Null: no longer.
    bool (*stays)() = nullptr;
    // A fibre blocks its worker in a system call, and a spare worker takes over. May be null.
    void (*blocked)(std::uint32_t fibre) = nullptr;
    balance::LoadTable loads = {}; // to be written to; empty: none
    bool steals = true;            // idle workers take fibres from others
    BalancingOptions balancing = {};
    ProcessorCalls processor_calls = ProcessorCalls::of_kernel();
};

class Scheduler {
  public:
    explicit Scheduler(const SchedulerOptions& options);
    ~Scheduler() = delete; // lives as long as the process

    // Makes a fibre that will run function(argument) on this stack. Returns an errno; ENOTSUP where
    // the processor has no switch.
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
    // Whether the calling thread may wait for an event: it is a fibre that needn't stay.
    bool may_wait_for_event() const;
    // Parks the calling fibre until release(event), or until `bell` is woken. Returns at once if
    // the event has happened or `bell` doesn't hold `expected`. A fibre always passes the same
    // bell. For events that many fibres wait for.
    void wait_for_event(const void* event, bool (*happened)(void*), void* condition,
                        std::atomic<std::uint32_t>& bell, std::uint32_t expected, WaitNote* note);
    // Makes all fibres that wait for the event ready. The event must have happened.
    void release(const void* event);
    // Lets the ready fibres of the calling fibre's worker run first.
    void give_way();
    // Like give_way(), for a fibre that has polled in vain; the polls took about `looks_ticks`. A
    // fibre that has run little longer than that since it was resumed has only polled, so the time
    // does not count as its load. True: it has not given way, but should wait for a short time,
    // because other programs want the worker's processor (VainTurns).
    bool found_nothing(std::uint64_t looks_ticks);
    // Parks the calling fibre until then (monotonic clock). False: it stays in its thread, and has
    // to sleep there.
    bool sleep_until(std::uint64_t time_ns);
    // The calling fibre stays in its kernel thread, and waits there as a thread does, until
    // SchedulerOptions::stays says otherwise. In signal handlers, too.
    static void stay();
    // Has the fibre call interrupted() as soon as it runs and is not Inside: one that waits returns
    // from its wait early. A fibre that has not run yet takes no notice. May be called in signal
    // handlers. Returns the kernel's number of another thread that runs the fibre, which may
    // compute for long; 0: none.
    int interrupt(std::uint32_t fibre);
    // The kernel's number of the thread that runs the fibre; 0: none.
    int thread_of(std::uint32_t fibre) const;
    // Fibres that have been interrupted while they waited wait no more.
    void resume_interrupted();
    // The calling fibre has ended.
    [[noreturn]] void end();

    // Waits of fibres for objects of the program.
    ObjectWaits& object_waits() { return object_waits_; }

    // Makes waiting fibres record what they wait for (WaitNote).
    void show_waits();

    // Write to the load table: all loads; or, for a fibre that is about to end, its own load and
    // those of the workers.
    void write_loads();
    void write_last_load();

    // For balancing; without effect if the calling thread is no fibre: the fibre is at a point
    // where it may move to another worker; the fibre enters a collective operation of all ranks.
    void at_point();
    void at_collective();
    // For balancing: the worker on which a fibre starts; makes a worker a fibre's home worker; the
    // ticks for which a worker has had no fibre.
    std::uint32_t first_worker(std::uint32_t fibre) const {
        return static_cast<std::uint32_t>(std::uint64_t{fibre} * options_.processors.size() /
                                          options_.fibres);
    }
    void set_home(std::uint32_t fibre, std::uint32_t worker) {
        fibres_[fibre].home_worker.store(workers_[worker].get(), std::memory_order_relaxed);
    }
    std::uint64_t idled(std::uint32_t worker, std::uint64_t now) const;
    double ns_per_tick() const;
    // The fibre that a worker runs. `ran`: the ticks that this fibre has run until `now`, with its
    // present stretch. Null: the worker runs none, or has switched to another meanwhile.
    const Fibre* running(std::uint32_t worker, std::uint64_t now, std::uint64_t& ran) const;
    // Ticks that the calling fibre has run, without those that are not yet accounted for
    // (stretches.hpp), so that the value never falls from one call to the next.
    static std::uint64_t run_so_far(Fibre& self);
    // For how long a fibre has run: of the calling one up to now, of others up to their last
    // switch.
    std::uint64_t ran_ns(const Fibre& fibre) const;
    std::uint32_t workers() const { return started_.load(std::memory_order_acquire); } // spare too

    const SchedulerOptions& options() const { return options_; }
    const Fibre& fibre(std::uint32_t number) const { return fibres_[number]; }
    // Also for a worker that has not been started.
    const Worker& worker(std::uint32_t number) const { return *workers_[number]; }
    bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  private:
    struct alignas(64) Bucket {
        SpinLock lock;
        Fibre* first = nullptr;
        Fibre** end = &first;
        Fibre* bells = nullptr; // of all fibres that have ever waited for an event
    };

    Bucket& bucket_of(const void* word) {
        const auto address = reinterpret_cast<std::uintptr_t>(word);
        // The high bits of a product with an odd constant (the golden ratio's) depend on all of it.
        return buckets_[(address >> 2) * 0x9e3779b97f4a7c15U >> bucket_shift_];
    }

    void park(Fibre& self, std::atomic<std::uint32_t>& word, std::uint32_t expected,
              std::uint64_t time_ns, WaitNote* note, ObjectWait* object);
    // The calling fibre, if it may switch; null: it is none, or stays.
    static Fibre* free_one();
    static Fibre* look_whether_free();
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
    bool give_processor_away(Worker& worker, std::uint64_t now);
    void switch_to(Fibre& self, Fibre& next);
    static void resume(Worker& worker, Fibre& next);
    static void begin(Worker& worker, Fibre& next);
    static void go_idle(Fibre& self, Fibre* next);
    static void resumed(Fibre* self, void* fibre);
    static void account(Worker& worker, Fibre* before);
    static void account_amid(Worker& worker, Fibre* before);

    void write_load(const Fibre& fibre, std::uint64_t ran_ticks, balance::RunState state,
                    double scale);
    void write_worker(const Worker& worker, std::uint64_t now, double scale);

    static void* run_worker(void* worker);
    [[noreturn]] void work(Worker& worker);
    Fibre* find(Worker& worker);
    Fibre* look_for_a_while(Worker& worker);
    Fibre* steal(Worker& worker);
    // Whether the worker has watched the timers meanwhile.
    bool sleep(Worker& worker);
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
    bool take_out_of_wait(Fibre& fibre);
    void release(const void* event, Worker& worker);
    static void show(Fibre& fibre);
    // Whether timers or objects may be due, so that see_to_due() may have something to do.
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
    std::atomic<Fibre*> to_resume_{nullptr}; // interrupted fibres, the last first
    alignas(64) std::atomic<std::uint32_t> awake_{0};
    alignas(64) std::atomic<std::uint32_t> kernel_sleepers_{0};
};

// The process's scheduler, or null.
Scheduler* scheduler();

} // namespace warren::fibre
