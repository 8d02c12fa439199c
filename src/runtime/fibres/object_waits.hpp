// ObjectWaits: fibres that wait for objects of the program which something else sees to: mutexes,
// condition variables, words of futexes. Who may have brought about what one waits for tells it, by
// the address of the object; what the object then is, the fibre looks at itself.
//
// Each object has a queue of its waits, doubly linked, which the first one of them stands for in a
// table by the object's address, of as many places as there are fibres. So what a telling takes
// doesn't depend on how many wait for other objects.
//
// Some tellings don't come: of other processes, of other mappings of an object. So a wait also
// looks by itself, ever less often (Looks): whether the object may be free is seen by whoever sees
// to the scheduler's timers, and only then does the fibre go on.
//
// Invariants
//  1. A wait is in its object's queue from its making until it is told or withdrawn, under the
//     place's lock; the places' counts say how many are there.
//  2. A fibre is there before it looks at the object for the last time; who tells has changed the
//     object, and after a full fence looks at the count, then at the queue under the lock. So
//     either the fibre sees the change, or it is told.
//  3. Once one is told, nobody uses more of it than its address: it may be gone.
//  4. Who may take no locks (a handler of a signal) has the place on the stack of those that are
//     due, then calls a worker that sleeps. A worker looks at the stack before each switch, and,
//     after it counts as sleeping, before it sleeps.
// Thread rule: a wait is its thread's, and kernel threads may have some, too; tell() by any thread,
// not in handlers of signals; tell_safely() and tell_soon() also there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/fibres/spin_lock.hpp"

namespace warren::fibre {

class ObjectWait;

class ObjectWaits {
  public:
    explicit ObjectWaits(std::uint32_t fibres);

    // The first `count` of those that wait for this object go on. Returns how many.
    std::uint32_t tell(const void* object, std::uint32_t count);
    // As above, also in handlers of signals. Where that has interrupted who may have locks, all go
    // on soon that wait for this object and may go on for nothing, perhaps for others, too: then
    // none is counted.
    std::uint32_t tell_safely(const void* object, std::uint32_t count);
    bool is_waited_for(const void* object);
    // The first that waits for this object goes on soon, if it may be free then and its looks are
    // of that kind.
    void tell_soon(const void* object);
    // Whether there are some of those; tells them.
    bool are_due() const { return due_.load(std::memory_order_relaxed) != nullptr; }
    void tell_due();

  private:
    friend class ObjectWait;

    struct alignas(64) Place {
        SpinLock lock;
        std::atomic<std::uint32_t> count{0};
        std::uint64_t arrivals = 0;
        std::uint64_t rounds = 0;    // of tell_due()
        ObjectWait* first = nullptr; // of the first object
        std::atomic<bool> is_due{false};
        std::atomic<bool> is_due_for_nothing{false}; // set before
        Place* next_due = nullptr;
    };

    Place& place_of(const void* object) {
        // The high bits of the product depend on all of the address.
        const auto address = reinterpret_cast<std::uintptr_t>(object);
        return places_[(address >> 2) * 0x9e3779b97f4a7c15U >> shift_];
    }
    void call_for(Place& place);
    void tell_due(Place& place, bool for_nothing);
    static ObjectWait* find(const Place& place, const void* object);
    static void put_in(Place& place, ObjectWait& wait);
    static void take_out(Place& place, ObjectWait& wait);

    std::unique_ptr<Place[]> places_;
    unsigned shift_ = 0;
    alignas(64) std::atomic<Place*> due_{nullptr};
};

// How a wait looks by itself: an eighth of its time after the last look, between these limits.
struct Looks {
    // Whether this object may be what is waited for; null: that can't be seen, so it isn't looked.
    bool (*may_be_free)(const void* object, std::uint32_t expected);
    std::uint64_t shortest_ns;
    std::uint64_t longest_ns;
    // How it is told of what a handler of a signal has brought about; if_free: may_be_free is
    // called under the place's lock, too: it takes none.
    enum class ByHandlers : std::uint8_t { never, if_free, for_nothing } by_handlers = {};
};

// One wait of the calling thread, on its stack.
class ObjectWait {
  public:
    // `expected` is handed to the looks.
    ObjectWait(const void* object, const Looks& looks, std::uint32_t expected = 0);
    ~ObjectWait() { withdraw(); }
    ObjectWait(const ObjectWait&) = delete;
    ObjectWait& operator=(const ObjectWait&) = delete;

    // Parks the fibre until it is told, or the object may be free, or until this time of the
    // monotonic clock (UINT64_MAX: no limit). Returns whether it has been told.
    bool park(std::uint64_t until_ns);
    // It waits no more. Returns false if it has been told before.
    bool withdraw();
    // Having been told, it waits again, behind the others.
    void repeat();

    // For a parked fibre: when it is to be looked at again; 0: now it goes on. By who sees to
    // the timers, under the lock that it is parked by.
    std::uint64_t look(std::uint64_t now_ns);

  private:
    friend class ObjectWaits;

    std::uint64_t next_look(std::uint64_t now_ns) const;

    const void* object_;
    ObjectWaits::Place& place_;
    const Looks& looks_;
    std::uint32_t expected_;
    std::atomic<std::uint32_t> told_{0}; // changes to 1 under the place's lock
    std::uint64_t begin_ns_ = 0;         // of its looks
    std::uint64_t until_ns_ = 0;
    // Under the place's lock
    std::uint64_t arrival_ = 0;
    ObjectWait* before_ = nullptr; // null: the first of its object
    ObjectWait* next_ = nullptr;
    // For the first one: the last; the last round of tell_due() that has looked at the object;
    // other objects' first ones.
    ObjectWait* last_ = nullptr;
    std::uint64_t round_ = 0;
    ObjectWait* object_before_ = nullptr;
    ObjectWait* object_next_ = nullptr;
};

} // namespace warren::fibre
