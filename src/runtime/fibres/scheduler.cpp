#include "runtime/fibres/scheduler.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <pthread.h>
#include <sched.h>
#include <utility>

#include "runtime/fibres/debug.hpp"
#include "runtime/fibres/donor.hpp"
#include "runtime/fibres/tuning.hpp"

namespace warren::fibre {

namespace {

[[gnu::tls_model("initial-exec")]] thread_local Fibre* current_fibre = nullptr;
// The same, unless the fibre has to stay in its kernel thread (Scheduler::stay).
[[gnu::tls_model("initial-exec")]] thread_local Fibre* free_fibre = nullptr;
Scheduler* only_scheduler = nullptr;

struct Body {
    void (*function)(void*);
    void* argument;
    Fibre* fibre;
};

// Where a fibre's current_fibre is from its thread pointer.
const std::ptrdiff_t current_fibre_offset =
    reinterpret_cast<std::byte*>(&current_fibre) - thread_pointer();

Worker& worker_of(const Fibre& fibre) {
    return *fibre.worker.load(std::memory_order_relaxed);
}

} // namespace

Scheduler* scheduler() {
    return only_scheduler;
}

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(options),
      fibres_(std::make_unique<Fibre[]>(options.fibres)),
      other_threads_(count_threads()),
      object_waits_(options.fibres) {
    const std::uint64_t buckets =
        std::bit_ceil(std::max<std::uint64_t>(2 * std::uint64_t{options.fibres}, 16));
    buckets_ = std::make_unique<Bucket[]>(buckets);
    bucket_shift_ = 64 - static_cast<unsigned>(std::countr_zero(buckets));
    for (const int processor : options.processors) {
        Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
        worker.number = static_cast<std::uint32_t>(workers_.size() - 1);
        worker.processor = processor;
        worker.event_table = std::make_unique<EventTable>(worker.number);
    }
    started_ = static_cast<std::uint32_t>(workers_.size());
    const std::size_t spares = std::min<std::size_t>(options.fibres, spare_limit);
    for (std::size_t spare = 0; spare < spares; ++spare) {
        workers_.push_back(std::make_unique<Worker>());
        workers_.back()->number = static_cast<std::uint32_t>(workers_.size() - 1);
    }
    if (options_.balancing.balancer != nullptr) {
        balancing_ = std::make_unique<Balancing>(*this, options_.balancing);
    }
    warren_fibre_debug.count = options.fibres;
    warren_fibre_debug.fibres = fibres_.get();
    only_scheduler = this;
    pthread_atfork(nullptr, nullptr, [] {
        only_scheduler->enabled_.store(false, std::memory_order_relaxed);
        current_fibre = nullptr;
        free_fibre = nullptr;
    });
}

int Scheduler::make(void* stack, std::size_t bytes, void (*function)(void*), void* argument) {
    if (!has_switch) {
        return ENOTSUP;
    }
    if (made_ == options_.fibres) {
        return EAGAIN;
    }
    Fibre& fibre = fibres_[made_];
    fibre.number = made_;
    // Neighbours, which talk most, are on one worker.
    fibre.worker.store(workers_[first_worker(made_)].get(), std::memory_order_relaxed);
    auto body = std::make_unique<Body>(Body{function, argument, &fibre});
    const int error = donate(
        fibre, stack, bytes, [](Fibre& made) { only_scheduler->push(made); },
        [](void* given) {
            const std::unique_ptr<Body> owned(static_cast<Body*>(given));
            const Body copy = *owned;
            current_fibre = copy.fibre;
            free_fibre = copy.fibre;
            copy.fibre->is_interrupted.store(&Inside::interrupted, std::memory_order_release);
            copy.function(copy.argument);
            only_scheduler->end();
        },
        body.get());
    if (error == 0) {
        static_cast<void>(body.release());
        ++made_;
    }
    return error;
}

Fibre* Scheduler::current() {
    return current_fibre;
}

void Scheduler::stay() {
    free_fibre = nullptr;
}

inline Fibre* Scheduler::free_one() {
    return free_fibre != nullptr ? free_fibre : look_whether_free();
}

Fibre* Scheduler::look_whether_free() {
    if (current_fibre != nullptr &&
        (only_scheduler->options_.stays == nullptr || !only_scheduler->options_.stays())) {
        free_fibre = current_fibre;
    }
    return free_fibre;
}

bool Scheduler::may_wait_for_event() const {
    return free_one() != nullptr && enabled();
}

// --- Queues

// Each of many fibres has left the caches by the time that it is its turn again: has the processor
// fetch what a switch to the one behind the next needs, and where that is of the one behind it.
[[gnu::always_inline]] inline void Scheduler::expect(const Fibre& fibre) {
    fetch_soon(fibre.context);
    __builtin_prefetch(fibre.context.thread_pointer + current_fibre_offset);
    __builtin_prefetch(fibre.next);
}

Fibre* Scheduler::take(Worker& worker) {
    // (Null: what comes now finds the worker before it sleeps.)
    return worker.queue.take(expect);
}

Worker& Scheduler::deputy_of(Worker& worker) {
    Worker* one = &worker;
    while (Worker* const deputy = one->deputy.load(std::memory_order_acquire))
        [[unlikely]] {
            one = deputy;
        }
    return *one;
}

// A fibre that is nowhere becomes ready, at home or on the worker that it ran on.
void Scheduler::push(Fibre& fibre) {
    Worker* const home_worker = fibre.home_worker.load(std::memory_order_relaxed);
    fibre.next = nullptr;
    push_all(deputy_of(home_worker != nullptr ? *home_worker : worker_of(fibre)),
             {&fibre, &fibre, 1});
}

// As above, for a row of fibres.
void Scheduler::push_all(Worker& worker, const ReadyQueue::Row& row) {
    if (const Fibre* const self = current_fibre; self != nullptr && &worker_of(*self) == &worker) {
        worker.queue.put(row);
        call_helper_for_many(worker);
        return;
    }
    bool wakes = false;
    bool all_slept = false;
    worker.queue.bring(row, [&] {
        wakes = worker.sleeping.load(std::memory_order_relaxed);
        if (wakes) {
            worker.sleeping.store(false, std::memory_order_relaxed);
            all_slept = awake_.fetch_add(1, std::memory_order_seq_cst) == 0;
            worker.bell.fetch_add(1, std::memory_order_relaxed);
        }
    });
    if (!wakes) {
        call_helper_for_many(worker);
        return;
    }
    kernel_wake(worker.bell, 1);
    if (all_slept) {
        call_helper(worker); // who looks for what stands behind this fibre, should it compute
    }
}

// There may be more than one fibre for a worker.
[[gnu::always_inline]] inline void Scheduler::call_helper_for_many(Worker& worker) {
    if (worker.queue.count() > 1 && awake_.load(std::memory_order_relaxed) <
                                        started_.load(std::memory_order_relaxed)) [[unlikely]] {
        call_helper(worker);
    }
}

// Wakes a worker that sleeps, and may take from this one. Where fibres have homes others have time,
// if they look by themselves now and then.
void Scheduler::call_helper(Worker& from) {
    const std::uint32_t count = started_.load(std::memory_order_acquire);
    const bool has_homes = gives_homes();
    for (std::uint32_t number = 0; number < count; ++number) {
        Worker* worker = workers_[number].get();
        if (worker->sleeping.load(std::memory_order_acquire) && // with it, what `patrols` is
            !worker->relieved.load(std::memory_order_relaxed) && may_take(*worker, from) &&
            !(has_homes && worker->patrols.load(std::memory_order_relaxed) &&
              &represented(*worker) != &represented(from)) &&
            call(*worker)) {
            return;
        }
    }
}

// --- Switching

// First thing in a context that is resumed: who ran here before has left its own. Acquire pairs
// with begin's release: what the resumer knew, `self` knows. (Null: a worker's idle context.)
[[gnu::always_inline]] inline void Scheduler::resumed(Fibre* self, void* fibre) {
    if (self != nullptr) {
        static_cast<void>(self->on_worker.load(std::memory_order_acquire));
    }
    if (fibre != nullptr) {
        static_cast<Fibre*>(fibre)->on_worker.store(0, std::memory_order_release);
    }
}

// The time since the worker's last switch was this fibre's; null: the idle context's, or that of
// one that has only waited.
void Scheduler::account(Worker& worker, Fibre* before) {
    balance::add(
        before != nullptr ? before->ran : worker.idled,
        worker.stretches.end_at(ticks(), before != nullptr ? &before->usual_ticks : nullptr));
    balance::add(worker.switches, 1);
}

// As above, while the fibre goes on. (Others see by `switches` that the worker isn't blocked, and
// that what they have read of it may not go together.)
void Scheduler::account_amid(Worker& worker, Fibre* before) {
    account(worker, before);
    balance::add(worker.unswitched, 1);
}

std::uint64_t Scheduler::run_so_far(Fibre& self) {
    Worker& worker = worker_of(self);
    account_amid(worker, &self);
    worker.stretches.time_all(); // what is counted from here on is to be compared
    return self.ran.load(std::memory_order_relaxed);
}

[[gnu::always_inline]] inline void Scheduler::begin(Worker& worker, Fibre& next) {
    next.worker.store(&worker, std::memory_order_relaxed);
    next.on_worker.store(1, std::memory_order_release);
    worker.running.store(&next, std::memory_order_relaxed);
}

[[gnu::always_inline]] inline void Scheduler::switch_to(Fibre& self, Fibre& next) {
    Worker& worker = worker_of(self);
    balance::add(self.ran, worker.stretches.end(self.usual_ticks, ticks));
    balance::add(worker.switches, 1);
    begin(worker, next);
    resumed(&self, switch_context(&self.context, &next.context, &self));
}

void Scheduler::resume(Worker& worker, Fibre& next) {
    ++worker.ran;
    account(worker, nullptr);
    begin(worker, next);
    void* before = switch_context(&worker.idle, &next.context, nullptr);
    // Pairs with go_idle's release.
    static_cast<void>(worker.handed.load(std::memory_order_acquire));
    resumed(nullptr, before);
}

void Scheduler::see_to_due() {
    if (object_waits_.are_due()) {
        object_waits_.tell_due();
    }
    if (timers_.earliest() != UINT64_MAX) {
        expire_timers();
    }
}

// At the clock it looks now and then: the others may have so much to do that nobody is ever idle.
[[gnu::always_inline]] inline void Scheduler::see_to_due_now_and_then(Worker& worker) {
    if (++worker.unclocked >= switches_per_clock || object_waits_.are_due()) [[unlikely]] {
        see_to_due_at_last(worker);
    }
}

void Scheduler::see_to_due_at_last(Worker& worker) {
    if (worker.unclocked >= switches_per_clock) {
        worker.unclocked = 0;
        see_to_due();
    } else {
        object_waits_.tell_due();
    }
}

// The calling fibre, which is parked or has ended, gives its worker to another one. (Who woke it
// may have put it into a queue already.)
void Scheduler::leave(Fibre& self) {
    Worker& worker = worker_of(self);
    see_to_due_now_and_then(worker);
    if (worker.relieved.load(std::memory_order_relaxed)) {
        go_idle(self, nullptr);
        return;
    }
    Fibre* next = take(worker);
    if (next == &self) {
        return;
    }
    if (next != nullptr && next->on_worker.load(std::memory_order_acquire) == 0) {
        switch_to(self, *next);
        return;
    }
    go_idle(self, next);
}

// Back to the worker's own context, which is to resume `next` (null: what it finds).
void Scheduler::go_idle(Fibre& self, Fibre* next) {
    Worker& worker = worker_of(self);
    account(worker, &self);
    worker.running.store(nullptr, std::memory_order_relaxed);
    worker.handed.store(next, std::memory_order_release);
    resumed(&self, switch_context(&self.context, &worker.idle, &self));
}

// Whether it has a home, which is neither its worker nor whom that one stands in for.
bool Scheduler::is_away(const Fibre& self) {
    const Worker* const home_worker = self.home_worker.load(std::memory_order_relaxed);
    const Worker& worker = worker_of(self);
    return home_worker != nullptr && home_worker != &worker &&
           home_worker != worker.principal.load(std::memory_order_relaxed);
}

void Scheduler::go_home(Fibre& self) {
    push(self);
    leave(self);
}

void Scheduler::give_way() {
    Fibre* const self = free_one();
    if (self == nullptr) [[unlikely]] {
        sched_yield();
        return;
    }
    const Inside inside;
    Worker& worker = worker_of(*self);
    if (is_away(*self)) [[unlikely]] {
        go_home(*self);
        return;
    }
    if (worker.queue.count() == 0) [[unlikely]] {
        if (!is_others_turn(*self)) {
            return;
        }
    } else {
        see_to_due_now_and_then(worker);
    }
    if (worker.relieved.load(std::memory_order_relaxed)) [[unlikely]] {
        put_behind(worker, *self);
        go_idle(*self, nullptr);
        return;
    }
    Fibre* const next = worker.queue.take_turns(*self, expect);
    if (next == nullptr) [[unlikely]] {
        return;
    }
    if (next->on_worker.load(std::memory_order_acquire) != 0) [[unlikely]] {
        go_idle(*self, next);
        return;
    }
    switch_to(*self, *next);
}

// For a fibre that would give way when nobody is ready here: whether somebody is after all.
bool Scheduler::is_others_turn(Fibre& self) {
    Worker& worker = worker_of(self);
    if (++worker.gave_way_in_vain >= turns_per_look) {
        worker.gave_way_in_vain = 0;
        help_others(self);
        return false;
    }
    if (!may_be_due()) {
        return false;
    }
    see_to_due(); // it may never be anybody's turn otherwise
    return true;
}

void Scheduler::put_behind(Worker& worker, Fibre& fibre) {
    fibre.next = nullptr;
    worker.queue.put({&fibre, &fibre, 1});
}

// Gives way to a fibre that another worker doesn't get to; or goes to whom its worker stood in for.
void Scheduler::help_others(Fibre& self) {
    Worker& worker = worker_of(self);
    account_amid(worker, &self); // who polls isn't blocked: who stands in for it is relieved
    if (worker.relieved.load(std::memory_order_relaxed)) {
        put_behind(worker, self);
        go_idle(self, nullptr);
        return;
    }
    Fibre* next = steal(worker);
    if (next == nullptr) {
        return;
    }
    put_behind(worker, self);
    if (next->on_worker.load(std::memory_order_acquire) == 0) {
        switch_to(self, *next);
        return;
    }
    go_idle(self, next);
}

bool Scheduler::found_nothing(std::uint64_t looks_ticks) {
    if (Fibre* self = free_one()) {
        Worker& worker = worker_of(*self);
        const std::uint64_t now = ticks();
        const bool polls =
            worker.stretches.unaccounted(now) < std::min(calls_per_looks * looks_ticks, poll_ticks);
        account_amid(worker, polls ? nullptr : self);
        worker.stretches.time_all();
        if (!polls) {
            worker.vain_turns.ran();
        } else if (give_processor_away(worker, now)) {
            return true;
        }
    }
    give_way();
    return false;
}

// All fibres of the worker may be polling. True: the one that runs should rather sleep.
bool Scheduler::give_processor_away(Worker& worker, std::uint64_t now) {
    const ProcessorCalls& calls = options_.processor_calls;
    const VainTurns::Then then = worker.vain_turns.after(now, calls.switches);
    if (then == VainTurns::Then::yield) {
        const std::uint64_t begin = ticks();
        calls.yield();
        worker.vain_turns.yielded(begin, ticks());
    }
    return then == VainTurns::Then::sleep;
}

void Scheduler::at_point() {
    const Inside inside;
    Fibre* self = free_one();
    if (self != nullptr && balancing_ != nullptr) {
        balancing_->point(*self);
        if (is_away(*self)) {
            go_home(*self);
        }
    }
}

void Scheduler::at_collective() {
    const Inside inside;
    if (Fibre* self = free_one(); self != nullptr && balancing_ != nullptr) {
        balancing_->collective(*self);
        if (is_away(*self)) {
            go_home(*self);
        }
    }
}

void Scheduler::end() {
    const Inside inside;
    Fibre& self = *current_fibre;
    // As write_load does, in the other order: whoever is the later of both, the table says it.
    self.state.store(State::ended, std::memory_order_seq_cst);
    if (options_.loads) {
        options_.loads.ranks[self.number].state.store(balance::RunState::ended,
                                                      std::memory_order_seq_cst);
    }
    if (balancing_ != nullptr) {
        balancing_->ended(self);
    }
    leave(self);
    __builtin_unreachable();
}

// --- Waiting

void Scheduler::wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                     const timespec* timeout, WaitNote* note) {
    Fibre* self = free_one();
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
    if (Fibre* self = free_one()) {
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
    const Inside inside;
    Bucket& bucket = bucket_of(&word);
    self.word.store(&word, std::memory_order_relaxed);
    bucket.lock.lock();
    SpinLock::fence_after_lock(); // who interrupts the fibre looks at its word afterwards
    if (word.load(std::memory_order_seq_cst) != expected || Inside::is_interrupted()) {
        bucket.lock.unlock();
        return;
    }
    const std::uint64_t park = self.parks.load(std::memory_order_relaxed) + 1;
    self.parks.store(park, std::memory_order_relaxed);
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
        const Inside inside;
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

bool Scheduler::sleep_until(std::uint64_t time_ns) {
    if (free_one() == nullptr) {
        return false;
    }
    Fibre& self = *current_fibre;
    for (std::uint64_t now = monotonic_ns(); now < time_ns; now = monotonic_ns()) {
        const timespec left_time = time_of(time_ns - now);
        wait(self.nap, 0, &left_time, nullptr);
    }
    return true;
}

} // namespace warren::fibre
