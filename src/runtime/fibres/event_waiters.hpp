// EventWaiters: the fibres of one worker that wait for one event, such as the end of a collective
// operation of a thousand ranks. The fibre that brings the event about hands all of them to their
// worker's queue at once, without looking at any (with balancing, to their home workers' queues). A
// fibre's bell takes it out of the list, for example because a message has come.
//
// Each worker has a table of a few lists, and an event has its list by its address. Several events
// may share a list, and are then released one fibre at a time. The workers' lists are released one
// after the other. A released fibre may already wait in another worker's list, for the next event
// of this address, and goes on early. So every fibre looks again whether its event has happened.
//
// Invariants
//  1. Only fibres that run on the worker enter a list. A fibre is in it while its ticket is the
//     list's. Each release of the whole list changes the list's ticket; no two lists ever have the
//     same one.
//  2. A fibre that enters sets `wanted` of the list and its own `event_waiters`, and after a full
//     fence (behind the list's lock) looks whether the event has happened or the bell has rung. A
//     releaser looks at `wanted` after the event and a full fence. A ringer looks at
//     `event_waiters` after the ring and a full fence (behind the bucket's lock). So either side
//     sees the other.
//  3. A fibre sets its state to waits_for_event, which others may read without the lock, after its
//     `event_waiters` and before the fence of invariant 2. The state stays until the fibre runs
//     again; `ticket` tells whether it waits: before it does, no list has the ticket.
// Thread rule: all but the atomic members under the lock; `ticket` changes under it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/fibres/spin_lock.hpp"

namespace warren::fibre {

struct Fibre;

struct alignas(64) EventWaiters {
    SpinLock lock;
    std::atomic<std::uint32_t> wanted{0}; // 0: the list is empty
    std::uint32_t count = 0;
    bool mixed = false; // its fibres wait for more than one event
    std::atomic<std::uint64_t> ticket{0};
    const void* event = nullptr; // the first fibre's
    Fibre* first = nullptr;
    Fibre* last = nullptr;
};

// A worker's lists of event waiters.
class EventTable {
  public:
    // `number` is unique to the worker.
    explicit EventTable(std::uint64_t number) {
        for (std::size_t index = 0; index < all_.size(); ++index) {
            all_[index].ticket.store(first_ticket | (number * all_.size() + index),
                                     std::memory_order_relaxed);
        }
    }

    EventWaiters& of(const void* event) {
        // Events are cache lines; the high bits of the product depend on all of the address.
        const std::uint64_t line = reinterpret_cast<std::uintptr_t>(event) >> 6;
        return all_[line * 0x9e3779b97f4a7c15U >> 61];
    }

    // The ticket of a list after a release.
    static std::uint64_t next(std::uint64_t ticket) { return ticket + first_ticket; }

  private:
    // The low bits of a ticket are the number of the list; the others count releases.
    static constexpr std::uint64_t first_ticket = 1 << 20;

    std::array<EventWaiters, 8> all_;
};

} // namespace warren::fibre
