#include "runtime/fibres/ready_queue.hpp"

#include <linux/membarrier.h>
#include <mutex>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "runtime/fibres/fibre.hpp"
#include "runtime/fibres/tuning.hpp"

namespace warren::fibre {

namespace {

// Whether this process's threads may have each other's processors fence.
bool may_fence_others() {
    static const bool may =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    return may;
}

bool fence_others() {
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void wait_until_zero(const std::atomic<std::uint32_t>& word) {
    for (int spin = 0; word.load(std::memory_order_acquire) != 0; ++spin) {
        if (spin < spins_before_yield) {
            spin_pause();
        } else {
            sched_yield(); // whoever it is has lost the processor
        }
    }
}

} // namespace

ReadyQueue::ReadyQueue() : ReadyQueue(may_fence_others() ? fence_others : nullptr) {}

void ReadyQueue::append(Row& list, const Row& row) {
    (list.count == 0 ? list.first : list.last->next) = row.first;
    list.last = row.last;
    list.count += row.count;
}

// Takes so many, of as many at least, from the front.
ReadyQueue::Row ReadyQueue::cut(Row& list, std::uint32_t count) {
    if (count == list.count) {
        return std::exchange(list, {});
    }
    Row row{.first = list.first, .last = list.first, .count = count};
    for (std::uint32_t more = 1; more < count; ++more) {
        row.last = row.last->next;
    }
    list.first = std::exchange(row.last->next, nullptr);
    list.count -= count;
    return row;
}

void ReadyQueue::put(const Row& row) {
    if (came_count_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
        collect();
    }
    begin_own();
    append(own_, row);
    own_count_.store(own_.count, std::memory_order_relaxed);
    end_own();
}

void ReadyQueue::collect() {
    Row row;
    {
        const std::lock_guard guard(lock_);
        row = std::exchange(came_, {});
        came_count_.store(0, std::memory_order_relaxed);
    }
    if (row.count == 0) {
        return; // another has been quicker
    }
    begin_own();
    append(own_, row);
    own_count_.store(own_.count, std::memory_order_relaxed);
    end_own();
}

void ReadyQueue::wait_for_other() {
    do {
        owner_.store(0, std::memory_order_release);
        wait_until_zero(other_);
        owner_.store(1, std::memory_order_seq_cst);
        // (A fence of the worker's own, because its invariants don't depend on others' here.)
        std::atomic_thread_fence(std::memory_order_seq_cst);
    } while (other_.load(std::memory_order_acquire) != 0);
}

bool ReadyQueue::have_fenced() {
    if (fencing_.load(std::memory_order_acquire) == Fencing::itself) {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        return true;
    }
    if (fence_()) {
        return true;
    }
    fencing_.store(Fencing::asked, std::memory_order_relaxed);
    return false;
}

void ReadyQueue::wait_for_owner() {
    wait_until_zero(owner_);
}

ReadyQueue::Row ReadyQueue::take_half() {
    if (!lock_.try_lock()) {
        return {};
    }
    const std::lock_guard guard(lock_, std::adopt_lock);
    // (There is no need to interrupt anybody for the own list of who is at it.)
    if (own_count_.load(std::memory_order_relaxed) != 0 &&
        owner_.load(std::memory_order_relaxed) == 0) {
        other_.store(1, std::memory_order_seq_cst);
        const bool is_theirs = have_fenced() && owner_.load(std::memory_order_acquire) == 0;
        Row row;
        if (is_theirs) {
            if (came_.count != 0) {
                append(own_, std::exchange(came_, {}));
                came_count_.store(0, std::memory_order_relaxed);
            }
            row = cut(own_, (own_.count + 1) / 2);
            own_count_.store(own_.count, std::memory_order_relaxed);
        }
        leave();
        if (is_theirs) {
            return row;
        }
    }
    const Row row = cut(came_, (came_.count + 1) / 2);
    came_count_.store(came_.count, std::memory_order_relaxed);
    return row;
}

ReadyQueue::Row ReadyQueue::all(bool is_theirs) {
    Row row;
    if (is_theirs) {
        row = std::exchange(own_, {});
        own_count_.store(0, std::memory_order_relaxed);
    }
    if (came_.count != 0) {
        append(row, std::exchange(came_, {}));
        came_count_.store(0, std::memory_order_relaxed);
    }
    return row;
}

} // namespace warren::fibre
