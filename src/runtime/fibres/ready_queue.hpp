// ReadyQueue: the fibres that are ready to run on one worker, first come, first served.
//
// A worker switches every few dozen nanoseconds, and mostly nobody else looks at its queue; a lock
// would take an eighth of each switch. So what the worker puts here itself is in a list of its own,
// which it gets at without an atomic instruction. What others bring comes to a second list, under
// a lock; the worker puts it behind its own when it looks next. Others who take from the worker's
// own list, which is seldom, have all processors that run this process execute a fence
// (membarrier): it takes them a microsecond or two, and each of the processors an interrupt. So
// they look first whether the worker is at its list just now, and who gets nothing leaves it alone
// for a while (workers.cpp).
//
// Invariants
//  1. The own list and the `next` of the fibres in it are the worker's while owner_ is 1, and
//     theirs who hold the lock while other_ is 1 and they have seen owner_ 0 since. The worker sets
//     owner_ before it looks at other_; others set other_ before they look at owner_; a full fence
//     stands between, on both sides: theirs runs for the worker, too. So at least one sees the
//     other. The worker then takes back owner_ and waits until other_ is 0; others wait, or give
//     up.
//  2. Where the kernel refuses the fence, the worker fences itself: fencing_ is `itself` from when
//     it does so always. Refused later on, it is `asked` to, and others take nothing till then,
//     unless they see, after setting other_, that it sleeps in the kernel, and then that owner_ is
//     0: to leave the processor and to come back to one is as good as a full fence. (Who is seen
//     just before it leaves, and comes back at once, has passed none; but a processor's stores are
//     out long before others have opened and read the file that says so.)
//  3. The list of what has come is under the lock. Nobody waits for the lock while owner_ is 1.
//  4. A fibre in neither list that has been brought is in the hands of the worker, which puts it
//     into its own list, or of who has taken it.
// Thread rule: each function says whose it is.
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

    // Has all processors that run this process fence. False: the kernel refuses it.
    using Fence = bool (*)();

    ReadyQueue();
    // Null: the worker fences itself.
    explicit ReadyQueue(Fence fence)
        : fencing_(fence == nullptr ? Fencing::itself : Fencing::others), fence_(fence) {}

    // By any thread; of others' doings it says what has been a moment ago.
    std::uint32_t count() const {
        return own_count_.load(std::memory_order_relaxed) +
               came_count_.load(std::memory_order_relaxed);
    }

    // By the worker: what runs on it, or its idle context.
    // The first, or null. expect(fibre) hears of the one behind it.
    template <typename Expect>
    Fibre* take(Expect expect);
    // The same, and puts `self` behind all others; not if there is none.
    template <typename Expect>
    Fibre* take_turns(Fibre& self, Expect expect);
    // Puts a row, which isn't empty, behind all others.
    void put(const Row& row);

    // By others.
    // Puts a row behind what has come; held() is called with the lock.
    template <typename Held>
    void bring(const Row& row, Held held) {
        lock_.lock();
        append(came_, row);
        came_count_.store(came_.count, std::memory_order_relaxed);
        held();
        lock_.unlock();
    }
    // The first half, rounded up; of what has come alone where the other list can't be had just
    // now; nothing, also when somebody holds the lock.
    Row take_half();
    // All, with patience. (Less where the fence is refused just now, and the worker isn't asleep in
    // the kernel: invariant 2.)
    template <typename IsAsleep>
    Row take_all(IsAsleep is_asleep);

    // Lock of what others look at together with what comes: by any thread, not for long.
    SpinLock& lock() { return lock_; }

  private:
    enum class Fencing : std::uint32_t { others, asked, itself };

    static void append(Row& list, const Row& row);
    static Row cut(Row& list, std::uint32_t count);

    // Around what the worker does to its own list.
    [[gnu::always_inline]] void begin_own() {
        owner_.store(1, std::memory_order_relaxed);
        if (fencing_.load(std::memory_order_relaxed) != Fencing::others) [[unlikely]] {
            std::atomic_thread_fence(std::memory_order_seq_cst);
            fencing_.store(Fencing::itself, std::memory_order_release);
        } else {
            // Others' fence works on what the processor does; the compiler must keep order too.
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        // Acquire pairs with leave(): what another has done to the list is there.
        if (other_.load(std::memory_order_acquire) != 0) [[unlikely]] {
            wait_for_other();
        }
    }
    [[gnu::always_inline]] void end_own() {
        WARREN_INVARIANT(owner_.load(std::memory_order_relaxed) == 1,
                         "ready queue 1: the own list is the worker's while owner_ is 1");
        // Release: who sees it sees the list.
        owner_.store(0, std::memory_order_release);
    }
    [[gnu::noinline]] void wait_for_other();
    // The worker's: what has come is put behind its own.
    [[gnu::noinline]] void collect();

    // Others', with the lock: the own list is theirs from when the fence has worked and owner_ is 0
    // until leave().
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
