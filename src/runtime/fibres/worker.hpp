// Worker: a kernel thread that runs fibres.
//
// Thread rule: each field says whose it is.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/fibres/event_waiters.hpp"
#include "runtime/fibres/fibre.hpp"
#include "runtime/fibres/ready_queue.hpp"
#include "runtime/fibres/stretches.hpp"
#include "runtime/fibres/vain_turns.hpp"

namespace warren::fibre {

// State of another worker that a worker last saw when it looked for work, perhaps long ago.
struct Look {
    std::uint64_t switches = 0;
    std::uint64_t since = 0;
    // Since when each look has seen more than one ready fibre, or when taking from it failed last;
    // 0: the last look saw at most one.
    std::uint64_t many_since = 0;
    std::uint64_t ran_before = 0; // the looking worker's `ran`: if it has changed, the series ends
};

struct alignas(64) Worker {
    ReadyQueue queue;
    // Changes under the queue's lock; the thread that clears it counts the worker as awake.
    std::atomic<bool> sleeping{false};
    // It sleeps, but will soon wake by itself to look at the others.
    std::atomic<bool> patrols{false};
    // The worker whose queue gets the fibres that are woken for this worker; null: this worker's
    // own. A blocked worker's deputy is the spare worker that stands in for it. A relieved spare
    // worker's deputy is the worker that it stood in for. A waker that read this before it changed
    // still puts the fibre here (spares.cpp, invariants 4 and 5).
    std::atomic<Worker*> deputy{nullptr};
    alignas(64) std::atomic<std::uint32_t> bell{0};
    // Its own
    alignas(64) Context idle;
    std::atomic<Fibre*> handed{nullptr}; // to be resumed by the idle context
    std::atomic<std::uint64_t> switches{0};
    std::atomic<std::uint64_t> unswitched{0}; // of them, those that only counted what was run
    std::atomic<Fibre*> running{nullptr};
    // Switches since the clock was read last. By the fibre that runs here.
    std::uint32_t unclocked = 0;
    std::atomic<bool> relieved{false}; // see principal
    Stretches stretches;               // since the last switch
    VainTurns vain_turns;
    std::uint32_t number = 0;
    std::atomic<std::uint64_t> idled{0}; // ticks without a fibre
    std::atomic<int> processor{-1};      // -1: not bound
    std::atomic<int> thread{0};          // the kernel's number of it
    std::atomic<std::uint64_t> begin{0}; // ticks
    // For a spare worker: the worker that it stands in for, never another spare worker. `relieved`
    // says that this worker is back; the spare worker then hands on the fibres of its queue.
    std::atomic<Worker*> principal{nullptr};
    // The monitor's: what it saw last.
    std::uint64_t seen_switches = 0;
    // How often fibres have yielded to nobody since the worker last looked at others.
    std::uint32_t gave_way_in_vain = 0;
    std::vector<Look> looks; // at all workers
    std::uint64_t ran = 0;   // how many times it has got a fibre after having none
    Worker* spare = nullptr; // stands in for this worker
    // The event waiters that run here. Made before the worker is started and never replaced, even
    // if starting fails and is tried again, because a releaser may be looking at them.
    std::unique_ptr<EventTable> event_table;
};

} // namespace warren::fibre
