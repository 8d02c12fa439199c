// ObjectWaits: fibres that wait for objects of the program: mutexes, condition variables, futex
// words. A thread that may have changed an object tells the object's waits, by its address. The
// fibre then tests the object itself.
//
// Each object has a queue of its waits. The first wait of a queue stands in a table by the object's
// address; the table has as many places as there are fibres. So the cost of a telling does not
// depend on how many fibres wait for other objects.
//
// Some changes are never told: those made by other processes or through other mappings of the
// object. So the scheduler also tests each object by itself, at growing intervals (Looks), when it
// handles its timers, and resumes the fibre only if the object may be free.
//
// Invariants
//  1. A wait is in its object's queue from its construction until it is told or withdrawn. The
//     queue changes under the place's lock; the place's count says how many waits it holds.
//  2. A fibre joins the queue before it tests the object for the last time. A teller has changed
//     the object before it executes a full fence, reads the count and then, under the lock, the
//     queue. So either the fibre sees the change, or it is told.
//  3. Once a wait is told, nobody uses more of it than its address: it may be gone.
//  4. A signal handler may not take locks. It puts the place on the stack of due places and then
//     wakes a sleeping worker. A worker looks at that stack before each switch and, after it counts
//     as sleeping, before it sleeps.
// Thread rule: a wait belongs to its thread, which may be a kernel thread. Any thread may call
// tell(), but no signal handler; signal handlers may call tell_safely() and tell_soon().
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

    // Resumes the first `count` waits of this object. Returns how many there were.
    std::uint32_t tell(const void* object, std::uint32_t count);
    // Like tell(), for signal handlers, too. If the handler has interrupted a thread that may hold
    // locks, it resumes nothing itself and returns 0. Then all waits of this object (and perhaps of
    // others in its place) that allow a resumption without cause are soon resumed.
    std::uint32_t tell_safely(const void* object, std::uint32_t count);
    bool is_waited_for(const void* object);
    // Soon resumes the first wait of this object, if the object may be free then and the wait's
    // Looks say if_free.
    void tell_soon(const void* object);
    // Whether places are on the stack of due places; tells the waits there.
    bool are_due() const { return due_.load(std::memory_order_relaxed) != nullptr; }
    void tell_due();
    // Has whoever tells the due places call Scheduler::resume_interrupted() as well. In signal
    // handlers, too.
    void call_for_interrupted() { call_for(interrupted_); }

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
    Place interrupted_; // of no object
    alignas(64) std::atomic<Place*> due_{nullptr};
};

// How the scheduler tests the object of a wait by itself: each interval is an eighth of the time
// waited so far, between these limits.
struct Looks {
    // Whether the object may be in the state that the wait is for; null: nobody can tell, so no
    // tests.
    bool (*may_be_free)(const void* object, std::uint32_t expected);
    std::uint64_t shortest_ns;
    std::uint64_t longest_ns;
    // The effect of a change by a signal handler on the wait: `never` none; `if_free` resumes it if
    // may_be_free() returns true (may_be_free() is then also called under the place's lock, and
    // must take none); `for_nothing` always resumes it.
    enum class ByHandlers : std::uint8_t { never, if_free, for_nothing } by_handlers = {};
};

// One wait of the calling thread, on its stack.
class ObjectWait {
  public:
    // `expected` is passed to may_be_free().
    ObjectWait(const void* object, const Looks& looks, std::uint32_t expected = 0);
    ~ObjectWait();
    ObjectWait(const ObjectWait&) = delete;
    ObjectWait& operator=(const ObjectWait&) = delete;

    // Parks the fibre until it is told, the object may be free, the monotonic clock reaches this
    // time (UINT64_MAX: no limit), or it has been interrupted: then it leaves the queue and acts,
    // which may end by a jump; if not, it is the queue's last. Returns whether it was told.
    bool park(std::uint64_t until_ns);
    // Whether it has been out of the queue since it began: somebody may have told others instead,
    // so an object that can't be tested must be given up.
    bool has_been_away() const { return was_away_; }
    // Ends the wait. Returns false if it has already been told.
    bool withdraw();
    // After it was told: waits again, behind the others.
    void repeat();

    // For a parked fibre: tests the object. Returns the time of the next test; 0: resume the fibre.
    // By the thread that handles the timers, under the lock of the fibre's bucket.
    std::uint64_t look(std::uint64_t now_ns);

  private:
    friend class ObjectWaits;

    std::uint64_t next_look(std::uint64_t now_ns) const;
    bool act();

    const bool was_postponed_; // others refer to it from now on (Inside::postpone)
    const void* object_;
    ObjectWaits::Place& place_;
    const Looks& looks_;
    std::uint32_t expected_;
    std::atomic<std::uint32_t> told_{0}; // changes to 1 under the place's lock
    std::uint64_t begin_ns_ = 0;         // of its looks
    std::uint64_t until_ns_ = 0;
    bool was_away_ = false;
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
