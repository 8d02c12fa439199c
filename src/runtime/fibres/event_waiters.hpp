// Gathering: the fibres of one worker that wait for one event, such as the end of a collective
// operation of a thousand ranks. Who brings the event about hands all of them to their worker's
// queue at once, without looking at any (with balancing, at where each is at home); a fibre that is
// to see to something else meanwhile (a message) can be taken out of it by its bell.
//
// Each worker has a few gatherings, and an event has its place among them by its address; several
// events may meet there, and are then released one fibre at a time. Workers' gatherings are
// released one after the other: who has gone on may have gathered elsewhere for the next event of
// this address by then, and goes on early. So all look again.
//
// Invariants
//  1. Only fibres that run on the worker come in. A fibre is in the gathering while its ticket is
//     the gathering's; each release of all makes that another one, which no other gathering has.
//  2. Who comes in has set `wanted` and its own `gathering`, and after a full fence (behind the
//     gathering's lock) looks whether the event has happened or the bell has rung. Who brings about
//     the event looks at `wanted` after it and a full fence; who rings, at `gathering` after it and
//     a full fence (behind the bucket's lock). So either sees the other.
//  3. A fibre sets its state to gathered, which others may look at without the lock, after its
//     `gathering` and its `ticket`: who sees the one sees the others. It stays gathered until it
//     runs again: `ticket` tells who still waits.
// Thread rule: all but the atomic members under the lock; `ticket` changes under it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/fibres/spin_lock.hpp"

namespace warren::fibre {

struct Fibre;

struct alignas(64) Gathering {
    SpinLock lock;
    std::atomic<std::uint32_t> wanted{0}; // 0: nobody is here
    std::uint32_t count = 0;
    bool mixed = false; // for more than one event
    std::atomic<std::uint64_t> ticket{0};
    const void* event = nullptr; // of the first
    Fibre* first = nullptr;
    Fibre* last = nullptr;
};

// Of one worker.
class Gatherings {
  public:
    // `number`: which no other has.
    explicit Gatherings(std::uint64_t number) {
        for (std::size_t index = 0; index < all_.size(); ++index) {
            all_[index].ticket.store(first_ticket | (number * all_.size() + index),
                                     std::memory_order_relaxed);
        }
    }

    Gathering& of(const void* event) {
        // Events are cache lines; the high bits of the product depend on all of the address.
        const std::uint64_t line = reinterpret_cast<std::uintptr_t>(event) >> 6;
        return all_[line * 0x9e3779b97f4a7c15U >> 61];
    }

    // A release's new ticket.
    static std::uint64_t next(std::uint64_t ticket) { return ticket + first_ticket; }

  private:
    // Its number is below the count of releases.
    static constexpr std::uint64_t first_ticket = 1 << 20;

    std::array<Gathering, 8> all_;
};

} // namespace warren::fibre
