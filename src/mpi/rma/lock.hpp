// WindowLock: the lock of one rank's part of a window (MPI_Win_lock), shared or exclusive.
//
// A free lock is taken, and one that nobody waits for is given back, by one atomic operation.
// Others queue: the lock is handed to the one that has waited longest, and to those that wait for a
// shared one behind it, who are rung. A waiter waits as for a message, so its rank makes progress.
// Thread rule: under the rank's lock.
// Invariants
//  1. While the word says `queued`, the queue is not empty, and the word and the queue change only
//     under the queue's mutex; nobody passes those that wait.
//  2. A rank is in one queue of a window at most; a waiter's `granted` is set after it has left it.
#pragma once

#include <cstdint>

#include "mpi/comm/communicator.hpp"
#include "mpi/message/engine.hpp"
#include "mpi/rma/control.hpp"

namespace warren::rma {

class WindowLock {
  public:
    WindowLock(message::Engine& engine, const comm::Communicator& communicator,
               const ControlBlock& control, int target)
        : engine_(engine),
          communicator_(communicator),
          control_(control),
          lock_(control.rank(target).lock),
          target_(target) {}

    // False: it is held, or others wait for it.
    bool try_take(bool exclusive) {
        std::uint64_t word = lock_.word.load(std::memory_order_relaxed);
        while (word == 0 || (!exclusive && word < exclusively)) {
            if (lock_.word.compare_exchange_weak(word, exclusive ? exclusively : word + 1,
                                                 std::memory_order_acquire)) {
                if (exclusive) {
                    name_owner(communicator_.rank());
                }
                return true;
            }
        }
        return false;
    }
    // Waits for it. Error: a rank that holds it has ended (mpiexec --keep-going).
    Error take(bool exclusive) {
        if (!try_take(exclusive)) [[unlikely]] {
            return take_slowly(exclusive);
        }
        return {};
    }
    void give_back(bool exclusive) {
        if (exclusive) {
            lock_.owner.store(0, std::memory_order_relaxed);
        }
        std::uint64_t word = lock_.word.load(std::memory_order_relaxed);
        while (word < queued) {
            if (lock_.word.compare_exchange_weak(word, exclusive ? 0 : word - 1,
                                                 std::memory_order_release)) {
                return;
            }
        }
        give_back_slowly(exclusive);
    }

  private:
    // Bits of the word, above the number of shared holders.
    static constexpr std::uint64_t exclusively = std::uint64_t{1} << 32;
    static constexpr std::uint64_t queued = std::uint64_t{1} << 33;

    Error take_slowly(bool exclusive);
    // True: it was free. Else this rank is in the queue.
    bool take_or_queue(bool exclusive, LockWaiter& own,
                       char (&holder)[sizeof node::Activity::communicator_name]);
    // A thread polls while another thread of its rank waits in a queue of the window.
    void poll(bool exclusive);
    void give_back_slowly(bool exclusive);
    // Takes this rank out of the queue. False: it has been given the lock.
    bool leave_queue(LockWaiter& own);
    // A rank that has ended, and held this lock, or a shared one of the window; -1: none.
    int ended_holder() const;
    // Rings those that the lock has been handed to.
    void tell_granted(std::uint32_t granted);
    // Under the queue's mutex: takes those off the queue that the lock is handed to, and those that
    // have ended. Returns the first of them, as `first` is, which are linked.
    std::uint32_t hand_on();
    // Writes the lock's holder into mpiexec's account of a long wait.
    void describe_holder(std::uint64_t word,
                         char (&text)[sizeof node::Activity::communicator_name]) const;
    std::uint32_t own_rank() const { return engine_.rank().index; }
    void name_owner(int rank) {
        lock_.owner.store(static_cast<std::uint32_t>(rank) + 1, std::memory_order_relaxed);
    }
    LockWaiter& waiter(std::uint32_t link) const {
        return control_.rank(static_cast<int>(link) - 1).waiter;
    }

    message::Engine& engine_;
    const comm::Communicator& communicator_;
    const ControlBlock& control_;
    LockWord& lock_;
    int target_;
};

} // namespace warren::rma
