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

namespace warren::fibre {

// State of another worker that a worker last saw when it looked for work, perhaps long ago.
struct Look {
    std::uint64_t switches = 0;
    std::uint64_t since = 0;
    // When it was first seen with more than one fibre ready, of looks in a row, or has failed to
    // be taken from; 0: not at the last.
    std::uint64_t many_since = 0;
    std::uint64_t ran_before = 0; // `ran` of who looks: a row ends when it has had something to do
};

struct alignas(64) Worker {
    ReadyQueue queue;
    // Changes under the queue's lock; who clears it counts the worker as awake.
    std::atomic<bool> sleeping{false};
    std::atomic<bool> patrols{false}; // of one that sleeps: it looks at the others soon, uncalled
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
    // By what runs here: since the clock was looked at.
    std::uint32_t unclocked = 0;
    std::atomic<bool> relieved{false}; // see principal
    Stretches stretches;               // since the last switch
    std::uint32_t number = 0;
    std::atomic<std::uint64_t> idled{0}; // ticks without a fibre
    std::atomic<int> processor{-1};      // -1: not bound
    std::atomic<int> thread{0};          // the kernel's number of it
    std::atomic<std::uint64_t> begin{0}; // ticks
    // For a spare worker: for whom it stands in, never another spare one, and whether that one is
    // back (`relieved`). It then hands on what comes to its queue.
    std::atomic<Worker*> principal{nullptr};
    // The monitor's: what it saw last.
    std::uint64_t seen_switches = 0;
    // How often any fibre has given way to nobody since others were looked at.
    std::uint32_t gave_way_in_vain = 0;
    std::vector<Look> looks; // at all workers
    std::uint64_t ran = 0;   // how many times it has had a fibre to run after none
    Worker* spare = nullptr; // that stands in for this one
    // Lists of the fibres that run here; there before the worker is started, and the same from then
    // on, also when starting it fails and is tried again: a releaser may be looking.
    std::unique_ptr<EventTable> event_table;
};

} // namespace warren::fibre
