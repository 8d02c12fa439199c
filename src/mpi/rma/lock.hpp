// WindowLock: the lock of one rank's part of a window (MPI_Win_lock), shared or exclusive.
//
// A free lock is taken, and one that nobody waits for is given back, by one atomic operation.
// Others queue: the lock is handed to the one that has waited longest, and to those that wait for a
// shared one behind it, who are rung. A waiter waits as for a message, so its rank makes progress.
// Where ranks share processors, the first of the queue is rung as soon as it is the first: it wakes
// up while the holder has the lock, and polls a little until it is handed over.
// A rank of another node has the target take the lock for it (remote_lock.hpp): it stands in the
// queue like all others, and the target is rung in its place.
// Thread rule: under the rank's lock.
// Invariants
//  1. While the word says `queued`, the queue is not empty, and the word and the queue change only
//     under the queue's mutex; nobody passes those that wait.
//  2. A rank is in one queue of a window at most; a waiter's `state` says `granted` after it has
//  left
//     it, and before the mutex is released. It says `next` of the first of the queue.
//  3. The word names who holds it exclusively. Who holds it shared has counted that before, in its
//     own line (RankControl::shared_locks). So whoever waits finds out that a holder has ended
//     (mpiexec --keep-going), wherever it was killed.
//  4. If a rank is killed while it holds the queue's mutex, the lock is lost: who takes the mutex
//     over says so in the word, for good, and everybody who wants the lock gets an error.
#pragma once

#include <cstdint>

#include "mpi/comm/communicator.hpp"
#include "mpi/message/engine.hpp"
#include "mpi/rma/control.hpp"

namespace warren::rma {

class WindowLock {
  public:
    // This rank's lock of a target of this node.
    WindowLock(message::Engine& engine, const comm::Communicator& communicator,
               const ControlBlock& control, int target)
        : WindowLock(engine, communicator, control, target, communicator.rank()) {}
    // For `user`, a rank of another node that this rank, the target, serves.
    WindowLock(message::Engine& engine, const comm::Communicator& communicator,
               const ControlBlock& control, int target, int user)
        : engine_(engine),
          communicator_(communicator),
          control_(control),
          lock_(control.rank(target).lock),
          target_(target),
          user_(user) {}

    // False: it is held, or others wait for it.
    bool try_take(bool exclusive) {
        std::uint64_t word = lock_.word.load(std::memory_order_relaxed);
        while (word == 0 || (!exclusive && word < exclusively)) {
            if (lock_.word.compare_exchange_weak(word, exclusive ? own_hold() : word + 1,
                                                 std::memory_order_acquire)) {
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
    // Completes this rank's stores: the exchange is sequentially consistent, at no cost.
    void give_back(bool exclusive) {
        std::uint64_t word = lock_.word.load(std::memory_order_relaxed);
        while (word < queued) {
            if (lock_.word.compare_exchange_weak(word, exclusive ? 0 : word - 1,
                                                 std::memory_order_seq_cst,
                                                 std::memory_order_relaxed)) {
                return;
            }
        }
        give_back_slowly(exclusive);
    }
    // take(), of a user that this rank serves, without a wait. False: not yet; `waits` is false
    // at first, and the next call gets what this one has made of it.
    bool take_for_user(bool exclusive, bool& waits, Error& error);

  private:
    // The word: the number of shared holders, or 1 + the exclusive one; above it bits.
    static constexpr std::uint64_t exclusively = std::uint64_t{1} << 32;
    static constexpr std::uint64_t queued = std::uint64_t{1} << 33;
    static constexpr std::uint64_t lost = std::uint64_t{1} << 34;
    static std::uint64_t hold_of(std::uint32_t link) { return exclusively | link; }
    std::uint64_t own_hold() const { return hold_of(own_link()); }

    // Ranks that have been given the lock, to be rung once the mutex is free.
    class Granted;

    Error take_slowly(bool exclusive);
    enum class Outcome : std::uint8_t { taken, queued, lost };
    Outcome take_or_queue(bool exclusive, LockWaiter& own,
                          char (&holder)[sizeof node::Activity::communicator_name]);
    // A thread polls while another thread of its rank waits in a queue of the window.
    Error poll(bool exclusive);
    void give_back_slowly(bool exclusive);
    // Takes this rank out of the queue. False: it has been given the lock.
    bool leave_queue(LockWaiter& own);
    // A rank that has ended, and held this lock, or a shared one of the window, or the queue's
    // mutex; -1: none.
    int ended_holder() const;
    Error ended_error(int ended) const;
    // Notes that the lock is lost if the mutex has been taken over. Returns whether it is lost.
    bool is_lost(const SharedLock& lock);
    // Under the queue's mutex: takes those off the queue that the lock is handed to, and those that
    // have ended.
    void hand_on(Granted& granted);
    // Has the first of the queue woken up, if that is of use.
    void alert_next(Granted& granted);
    // Writes the lock's holder into mpiexec's account of a long wait.
    static void describe_holder(std::uint64_t word,
                                char (&text)[sizeof node::Activity::communicator_name]);
    MutexUser mutex_user() const {
        const Rank& rank = engine_.rank();
        return {.segment = &rank.segment, .rank = rank.index, .spins = !rank.oversubscribed()};
    }
    // The rank of the window that is this one of the node; -1: none.
    int rank_of_node(int index) const;
    std::uint32_t own_link() const { return static_cast<std::uint32_t>(user_) + 1; }
    LockWaiter& waiter(std::uint32_t link) const {
        return control_.rank(static_cast<int>(link) - 1).waiter;
    }

    message::Engine& engine_;
    const comm::Communicator& communicator_;
    const ControlBlock& control_;
    LockWord& lock_;
    int target_;
    int user_;
};

} // namespace warren::rma
