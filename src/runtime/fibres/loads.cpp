// The scheduler's report of its fibres' loads to other processes.
#include <algorithm>

#include "runtime/fibres/scheduler.hpp"

namespace warren::fibre {

namespace {

using balance::RunState;
constexpr auto relaxed = std::memory_order_relaxed;

RunState state_of(const Fibre& fibre) {
    switch (fibre.state.load(std::memory_order_acquire)) {
    case State::ready:
        return RunState::ready;
    case State::parked:
        return RunState::waits;
    case State::waits_for_event:
        return still_waits_for_event(fibre) ? RunState::waits : RunState::ready;
    case State::parked_till:
        return fibre.note.load(relaxed) != nullptr ? RunState::waits : RunState::sleeps;
    case State::ended:
        return RunState::ended;
    }
    return RunState::unknown;
}

std::uint64_t scaled(std::uint64_t ticks, double scale) {
    return static_cast<std::uint64_t>(static_cast<double>(ticks) * scale);
}

} // namespace

// The processor's clock against the system's, since the workers began.
double Scheduler::ns_per_tick() const {
    const std::uint64_t ticks_since = ticks() - begin_ticks_;
    return ticks_since == 0
               ? 0.0
               : static_cast<double>(monotonic_ns() - begin_ns_) / static_cast<double>(ticks_since);
}

std::uint64_t Scheduler::ran_ns(const Fibre& fibre) const {
    Fibre* self = current();
    return scaled(self == &fibre ? run_so_far(*self) : fibre.ran.load(relaxed), ns_per_tick());
}

void Scheduler::write_load(const Fibre& fibre, std::uint64_t ran_ticks, RunState state,
                           double scale) {
    balance::RankLoad& load = options_.loads.ranks[fibre.number];
    load.ran_ns.store(scaled(ran_ticks, scale), relaxed);
    if (const Worker* worker = fibre.worker.load(relaxed)) {
        load.worker.store(worker->number, relaxed);
    }
    load.state.store(state, std::memory_order_seq_cst);
    if (fibre.state.load(std::memory_order_seq_cst) == State::ended) { // meanwhile
        load.state.store(RunState::ended, relaxed);
    }
}

std::uint64_t Scheduler::idled(std::uint32_t number, std::uint64_t now) const {
    const Worker& worker = *workers_[number];
    const std::uint64_t more = worker.stretches.unaccounted(now);
    const bool idles = worker.running.load(relaxed) == nullptr;
    return worker.idled.load(relaxed) + (idles ? more : 0);
}

void Scheduler::write_worker(const Worker& worker, std::uint64_t now, double scale) {
    if (worker.number >= balance::workers_kept) {
        return;
    }
    balance::WorkerLoad& load = options_.loads.workers[worker.number];
    const std::uint64_t idle = idled(worker.number, now);
    const std::uint64_t lived = now - worker.begin.load(relaxed);
    load.busy_ns.store(scaled(lived - std::min(lived, idle), scale), relaxed);
    const std::uint64_t switches = worker.switches.load(relaxed);
    load.switches.store(switches - std::min(switches, worker.unswitched.load(relaxed)), relaxed);
    load.processor.store(worker.processor.load(relaxed), relaxed);
    load.thread.store(worker.thread.load(relaxed), relaxed);
    load.stands_in.store(worker.principal.load(relaxed) != nullptr, relaxed);
}

// The running fibre has run since the last switch, if there has been none while we look.
const Fibre* Scheduler::running(std::uint32_t number, std::uint64_t now, std::uint64_t& ran) const {
    const Worker& worker = *workers_[number];
    const std::uint64_t switches = worker.switches.load(std::memory_order_acquire);
    const std::uint64_t more = worker.stretches.unaccounted(now);
    const Fibre* fibre = worker.running.load(std::memory_order_acquire);
    if (fibre == nullptr) {
        return nullptr;
    }
    ran = fibre->ran.load(std::memory_order_acquire) + more;
    return switches == worker.switches.load(relaxed) && fibre->state.load(relaxed) == State::ready
               ? fibre
               : nullptr;
}

void Scheduler::write_loads() {
    if (!options_.loads) {
        return;
    }
    const double scale = ns_per_tick();
    for (std::uint32_t number = 0; number < made_; ++number) {
        const Fibre& fibre = fibres_[number];
        if (const RunState state = state_of(fibre);
            state != RunState::ended) { // which it has written
            write_load(fibre, fibre.ran.load(relaxed), state, scale);
        }
    }
    const std::uint32_t count = started_.load(std::memory_order_acquire);
    for (std::uint32_t number = 0; number < count; ++number) {
        const Worker& worker = *workers_[number];
        const std::uint64_t now = ticks();
        std::uint64_t ran = 0;
        if (const Fibre* fibre = running(number, now, ran)) {
            write_load(*fibre, ran, RunState::runs, scale);
        }
        write_worker(worker, now, scale);
    }
    options_.loads.job->workers.store(std::min(count, balance::workers_kept), relaxed);
    options_.loads.job->begin_ns.store(begin_ns_, relaxed);
    options_.loads.job->written_ns.store(monotonic_ns(), std::memory_order_release);
}

void Scheduler::write_last_load() {
    const Fibre* fibre = current();
    if (!options_.loads || fibre == nullptr) {
        return;
    }
    const double scale = ns_per_tick();
    const std::uint64_t now = ticks();
    const Worker& worker = *fibre->worker.load(relaxed);
    write_load(*fibre, fibre->ran.load(relaxed) + worker.stretches.unaccounted(now),
               RunState::ended, scale);
    const std::uint32_t count = started_.load(std::memory_order_acquire);
    for (std::uint32_t number = 0; number < count; ++number) {
        write_worker(*workers_[number], now, scale);
    }
    options_.loads.job->workers.store(std::min(count, balance::workers_kept), relaxed);
    options_.loads.job->begin_ns.store(begin_ns_, relaxed);
    options_.loads.job->written_ns.store(monotonic_ns(), std::memory_order_release);
}

} // namespace warren::fibre
