// ObjectWaits: fibres that wait for objects of the program which something else sees to: mutexes,
// condition variables. Who may have brought about what one waits for tells it, by the address of
// the object; what the object then is, the fibre looks at itself.
//
// Invariants
//  1. A wait is in its object's place from its making until it is told or withdrawn, under the
//     place's lock; the places' counts say how many are there.
//  2. A fibre is there before it looks at the object for the last time; who tells has changed the
//     object, and after a full fence looks at the count, then at the list under its lock. So either
//     the fibre sees the change, or it is told.
//  3. Once one is told, nobody uses more of it than its address: it may be gone.
// Thread rule: a wait is its fibre's; tell() by any thread, not in handlers of signals.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fibre/spin_lock.hpp"

namespace warren::fibre {

class ObjectWait;

class ObjectWaits {
  public:
    // The first `count` of those that wait for this object go on.
    void tell(const void* object, std::uint32_t count);

  private:
    friend class ObjectWait;

    struct alignas(64) Place {
        SpinLock lock;
        std::atomic<std::uint32_t> count{0};
        ObjectWait* first = nullptr;
        ObjectWait** end = &first;
    };

    Place& place_of(const void* object) {
        // The high bits of the product depend on all of the address.
        const auto address = reinterpret_cast<std::uintptr_t>(object);
        return places_[(address >> 3) * 0x9e3779b97f4a7c15U >> 58];
    }
    static void take_out(Place& place, ObjectWait** link);

    std::array<Place, 64> places_;
};

// One wait of the calling fibre, on its stack.
class ObjectWait {
  public:
    explicit ObjectWait(const void* object);
    ~ObjectWait() { withdraw(); }
    ObjectWait(const ObjectWait&) = delete;
    ObjectWait& operator=(const ObjectWait&) = delete;

    // Parks the fibre until it is told, or until this time of the monotonic clock (UINT64_MAX: no
    // limit). Returns whether it has been told.
    bool park(std::uint64_t until_ns);
    // It waits no more. Returns false if it has been told before.
    bool withdraw();
    // Having been told, it waits again, behind the others.
    void repeat();

  private:
    friend class ObjectWaits;

    void come();

    const void* object_;
    ObjectWaits::Place& place_;
    std::atomic<std::uint32_t> told_{0}; // changes to 1 under the place's lock
    ObjectWait* next_ = nullptr;
};

} // namespace warren::fibre
