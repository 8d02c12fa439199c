// ReadyQueue: the fibres that are ready to run on one worker, first come, first served.
//
// A worker switches every few dozen nanoseconds, and mostly nobody else looks at its queue. A lock
// would take an eighth of each switch. The queue therefore has two lists. The own list holds what
// the worker itself puts here; the worker uses it without an atomic instruction. Other threads put
// fibres into the second list, under a lock; the worker moves them behind its own when it next
// looks.
//
// A thread that takes fibres from another worker's own list makes all processors that run this
// process execute a fence (membarrier). That takes the thread a microsecond or two and interrupts
// each of these processors, but it happens seldom. The thread therefore first looks whether the
// worker is using its list, and if it gets nothing, it leaves that worker alone for a while
// (workers.cpp).
//
// Invariants ("a taker" is another thread that takes from the own list)
//  1. The own list and the `next` of its fibres belong to the worker while owner_ is 1. They belong
//     to a taker that holds the lock while other_ is 1 and the taker has seen owner_ 0 since it set
//     other_. The worker sets owner_ before it reads other_; a taker sets other_ before it reads
//     owner_; both have a full fence between (the taker's fence runs on the worker's processor as
//     well). So at least one of them sees the other. The worker then resets owner_ and waits until
//     other_ is 0; a taker waits or gives up.
//  2. If the kernel refuses the fence, the worker executes fences itself: fencing_ is `itself` once
//     the worker always does so. If the kernel refuses later on, a taker sets fencing_ to `asked`,
//     and takers take nothing until the worker has changed it to `itself`. There is one exception:
//     a taker that sees, after setting other_, that the worker sleeps in the kernel, and then that
//     owner_ is 0, may take, since leaving and entering a processor act as a full fence. (A worker
//     that is seen just before it leaves and comes back at once has passed no fence; but its stores
//     are visible long before the taker has opened and read the file that says so.)
//  3. The second list is used under the lock. Nobody waits for the lock while owner_ is 1.
//  4. A fibre that was brought and is in neither list belongs to the worker, which is about to put
//     it into its own list, or to the taker that took it.
// Thread rule: each function says who calls it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/invariant.hpp"
#include "runtime/fibres/fibre.hpp"
#include "runtime/fibres/spin_lock.hpp"

namespace warren::fibre {

class ReadyQueue {
  public:
    // Linked by `next`; the last one's is null.
    struct Row {
        Fibre* first = nullptr;
        Fibre* last = nullptr;
        std::uint32_t count = 0;
    };

    // Makes all processors that run this process execute a fence. False: the kernel refuses.
    using Fence = bool (*)();

    ReadyQueue();
    // Null: the worker fences itself.
    explicit ReadyQueue(Fence fence)
        : fencing_(fence == nullptr ? Fencing::itself : Fencing::others), fence_(fence) {}

    // By any thread. The value may be out of date by what others have just done.
    std::uint32_t count() const {
        return own_count_.load(std::memory_order_relaxed) +
               came_count_.load(std::memory_order_relaxed);
    }

    // By the worker (the fibre that runs on it, or its idle context):
    // Takes the first fibre, or null. Calls expect(fibre) with the next one.
    template <typename Expect>
    Fibre* take(Expect expect);
    // Like take(), and puts `self` last, unless the queue is empty.
    template <typename Expect>
    Fibre* take_turns(Fibre& self, Expect expect);
    // Puts a row, which isn't empty, behind all fibres.
    void put(const Row& row);

    // By other threads:
    // Puts a row behind the second list; calls held() under the lock.
    template <typename Held>
    void bring(const Row& row, Held held) {
        lock_.lock();
        append(came_, row);
        came_count_.store(came_.count, std::memory_order_relaxed);
        held();
        lock_.unlock();
    }
    // Takes the first half, rounded up. If the own list can't be taken now, half of the second
    // list; if the lock is held, nothing.
    Row take_half();
    // Takes all fibres, and waits for the worker to leave its list. (Takes less if the kernel
    // refuses the fence and the worker does not sleep: invariant 2.)
    template <typename IsAsleep>
    Row take_all(IsAsleep is_asleep);

    // The lock of the second list, for data that changes together with it. Any thread, briefly.
    SpinLock& lock() { return lock_; }

  private:
    enum class Fencing : std::uint32_t { others, asked, itself };

    static void append(Row& list, const Row& row);
    static Row cut(Row& list, std::uint32_t count);

    // The worker calls these two around each use of its own list.
    [[gnu::always_inline]] void begin_own() {
        owner_.store(1, std::memory_order_relaxed);
        if (fencing_.load(std::memory_order_relaxed) != Fencing::others) [[unlikely]] {
            std::atomic_thread_fence(std::memory_order_seq_cst);
            fencing_.store(Fencing::itself, std::memory_order_release);
        } else {
            // Others' fence works on what the processor does; the compiler must keep order too.
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        // Acquire pairs with leave(): the worker sees what a taker has done to the list.
        if (other_.load(std::memory_order_acquire) != 0) [[unlikely]] {
            wait_for_other();
        }
    }
    [[gnu::always_inline]] void end_own() {
        WARREN_INVARIANT(owner_.load(std::memory_order_relaxed) == 1,
                         "ready queue 1: the own list is the worker's while owner_ is 1");
        // Release: a taker that sees it sees the list.
        owner_.store(0, std::memory_order_release);
    }
    [[gnu::noinline]] void wait_for_other();
    // By the worker: moves the second list behind its own.
    [[gnu::noinline]] void collect();

    // By takers, under the lock: the own list is theirs from when the fence has worked and owner_
    // is 0 until leave().
    bool have_fenced();
    void wait_for_owner();
    // All that is in the own list, if it is theirs, and in the other.
    Row all(bool is_theirs);
    void leave() { other_.store(0, std::memory_order_release); }

    // The worker's
    alignas(64) std::atomic<std::uint32_t> owner_{0};
    std::atomic<std::uint32_t> other_{0};
    Row own_;
    std::atomic<std::uint32_t> own_count_{0}; // own_.count, for all
    std::atomic<Fencing> fencing_;
    // Others'
    alignas(64) SpinLock lock_;
    Row came_;
    std::atomic<std::uint32_t> came_count_{0};
    const Fence fence_;
};

template <typename Expect>
[[gnu::always_inline]] inline Fibre* ReadyQueue::take(Expect expect) {
    if (came_count_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
        collect();
    }
    if (own_count_.load(std::memory_order_relaxed) == 0) {
        return nullptr;
    }
    begin_own();
    Fibre* const first = own_.count != 0 ? own_.first : nullptr;
    if (first != nullptr) [[likely]] {
        own_.first = first->next;
        own_count_.store(--own_.count, std::memory_order_relaxed);
        WARREN_INVARIANT((own_.count == 0) == (own_.first == nullptr),
                         "ready queue: a list's count is that of its fibres");
        if (own_.count != 0) {
            expect(*own_.first);
        }
    }
    end_own();
    return first;
}

template <typename Expect>
[[gnu::always_inline]] inline Fibre* ReadyQueue::take_turns(Fibre& self, Expect expect) {
    if (came_count_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
        collect();
    }
    begin_own();
    Fibre* first = nullptr;
    if (own_.count != 0) [[likely]] {
        first = own_.first;
        Fibre* const second = first->next;
        self.next = nullptr;
        if (second == nullptr) {
            own_.first = &self;
        } else {
            own_.first = second;
            own_.last->next = &self;
            expect(*second);
        }
        own_.last = &self;
    }
    end_own();
    return first;
}

template <typename IsAsleep>
ReadyQueue::Row ReadyQueue::take_all(IsAsleep is_asleep) {
    const std::lock_guard guard(lock_);
    bool is_theirs = false;
    if (own_count_.load(std::memory_order_relaxed) != 0) {
        other_.store(1, std::memory_order_seq_cst);
        if (have_fenced()) {
            wait_for_owner();
            is_theirs = true;
        } else {
            // (Asleep amid its list, in a handler of a signal, it may be for long.)
            is_theirs = is_asleep() && owner_.load(std::memory_order_acquire) == 0;
        }
    }
    const Row row = all(is_theirs);
    leave();
    return row;
}

} // namespace warren::fibre
