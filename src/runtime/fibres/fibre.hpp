// Fibre: a rank as a user-level thread.
//
// A fibre is made from an ordinary thread (donor.hpp), so it has all that the C library gives a
// thread: its stack, its thread-local variables, its place in the list of threads.
//
// Invariants
//  1. A fibre is in one place: it runs on one worker, or is in one worker's queue (ready), or in
//     one bucket (parked), or in one list of event waiters (waits_for_event), or it has ended. The
//     thread that takes it from a queue, a bucket or a list, under its lock (a worker takes from
//     its own queue without: ready_queue.hpp), is the only one to put it elsewhere.
//  2. `on_worker` is 1 from before a fibre is resumed until its stack has been left again. The next
//     context on that worker then stores 0. The fibre may be in a queue by then, so it is resumed
//     only when `on_worker` is 0. A worker waits for that in its own idle context. A fibre never
//     waits for it: two could wait for each other.
//  3. `note`, `word`, `object` and `state` of a parked fibre change under its bucket's lock, and
//     those of a fibre that waits for an event under its list's lock. Nobody touches fibres that
//     are released at once: each sets its own `state` when it is resumed. `ticket` tells whether a
//     fibre still is in a list of event waiters.
// Thread rule: each field says whose it is.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.hpp"
#include "runtime/fibres/event_waiters.hpp"
#include "runtime/fibres/switch.hpp"

namespace warren::fibre {

struct Worker;
class ObjectWait;

enum class State : std::uint32_t {
    ready,       // or running
    parked,      // until it is woken
    parked_till, // or until a time has come
    ended,
    waits_for_event // until an event that many wait for (event_waiters.hpp)
};

// (The first line is what a switch needs.)
struct alignas(64) Fibre {
    Context context; // while it doesn't run
    std::atomic<std::uint32_t> on_worker{0};
    std::uint32_t number = 0;
    Fibre* next = nullptr; // in a queue, a bucket or a list of event waiters
    // The worker that runs it, or ran it last. Written by the context that resumes it.
    std::atomic<Worker*> worker{nullptr};
    // The worker whose queue it joins when it is woken or yields; null: the one where it ran last.
    // Written by Balancing.
    std::atomic<Worker*> home_worker{nullptr};
    // Load, in ticks of the processor's clock; by its worker.
    std::atomic<std::uint64_t> ran{0};
    // Length of a stretch, as last timed (stretches.hpp); by its worker.
    std::uint32_t usual_ticks = 0;
    std::atomic<State> state{State::ready};
    std::atomic<std::uint32_t> nap{0}; // the word that it parks on while it waits for time only
    // Parked, or waiting for the event of this address
    std::atomic<const void*> word{nullptr};
    std::atomic<WaitNote*> note{nullptr}; // on its stack
    ObjectWait* object = nullptr;         // the same; null: it waits for no object
    std::atomic<std::uint64_t> parks{0}; // number of the wait, so that a late time limit is ignored
    // The list of event waiters that it was in last, and its ticket there.
    std::atomic<EventWaiters*> event_waiters{nullptr};
    std::atomic<std::uint64_t> ticket{0};
    Fibre* before = nullptr;
    // The word by which others may wake it from an event, and the next fibre with a bell in the
    // bucket.
    std::atomic<const void*> bell{nullptr};
    Fibre* next_bell = nullptr;
    // Where it looks whether it is interrupted (interruptions.cpp), from its first run on; and its
    // place on the stack of those that may wait.
    std::atomic<std::atomic<bool>*> is_interrupted{nullptr};
    std::atomic<bool> is_to_be_resumed{false};
    Fibre* next_to_resume = nullptr;
};

// Whether a fibre whose state is `waits_for_event` still waits; otherwise it has been released and
// is ready. Call under the lock of its list: without, the answer may be out of date.
inline bool still_waits_for_event(const Fibre& fibre) {
    const EventWaiters* const event_waiters = fibre.event_waiters.load(std::memory_order_relaxed);
    return event_waiters != nullptr && fibre.ticket.load(std::memory_order_relaxed) ==
                                           event_waiters->ticket.load(std::memory_order_relaxed);
}

} // namespace warren::fibre
