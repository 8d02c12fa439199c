// ThreadWaits: how the threads of one rank wait at the same time (MPI_THREAD_MULTIPLE).
//
// One of them polls for all and is the only one that sleeps on the rank's doorbell; the others
// look at, then sleep on, a word of their own each, until the one that polls finds that what they
// wait for has come. So a message wakes the thread that it is for and no other, and threads that
// share a processor don't take turns in looking at nothing. Invariants
//  1. While a thread is in the list, another one polls (or has been woken in order to).
//  2. What others than the polling thread bring is noted in `look` before they release the rank's
//     lock, and the polling thread is woken if it sleeps.
//  3. A thread's record, on its stack, is used by others only while it is in the list: who takes it
//     off says so in its word (release), and wakes it once the lock is free again.
// Thread rule: everything under the rank's lock, but for sleep(), which releases it meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <pthread.h>

#include "mpi/rank/lock.hpp"

namespace warren {

// Who brings what a wait is for.
enum class BroughtBy : std::uint8_t {
    progress, // the rank's own progress, in whichever thread
    others,   // other ranks, straight into shared memory
};

class ThreadWaits {
  public:
    // A thread that waits while another one polls.
    struct Waiter {
        bool (*is_done)(void*);
        void* condition;
        BroughtBy brought_by;
        Waiter* next = nullptr;
        // It looks at this word before it sleeps on it: a sleep and a wake take longer than most
        // messages.
        enum : std::uint32_t { polls, asleep, woken };
        std::atomic<std::uint32_t> state{polls};
    };

    bool has_poller() const { return poller_ != Poller::none; }
    bool poller_sleeps() const { return poller_ == Poller::asleep; }
    // Whether this thread polls already: a function of the program, called by the rank's progress,
    // waits as well.
    bool polls() const { return has_poller() && pthread_equal(polling_, pthread_self()) != 0; }
    // This thread polls from now on.
    void poll();
    void poller_falls_asleep() { poller_ = Poller::asleep; }
    // Something may have come for any of them.
    void poller_wakes() {
        poller_ = Poller::awake;
        look_ = true;
    }

    // Another thread than the polling one has brought something.
    void note() {
        look_ = true;
        ++notes_;
    }
    // Changes with every note and every thread that comes to wait: what has been arranged for
    // before it is not all.
    std::uint32_t notes() const { return notes_; }

    // Whether more threads have waited at a time than the rank has processors: those who don't wait
    // just now may want one.
    bool outnumber_processors() const { return most_ > processors_; }
    // The processors that the rank may use; set before a second thread calls.
    void set_processors(std::uint32_t processors) { processors_ = processors; }

    // The polling thread: wakes those whose wait is over, after `moved`: its progress has brought
    // something. True: there was one, and the lock has been free meanwhile.
    bool wake_done(bool moved, RankLock& lock, bool shares_processor) {
        if (first_ == nullptr || (!moved && !look_ && by_others_ == 0)) {
            look_ = false;
            return false;
        }
        return wake_some(lock, shares_processor);
    }

    // Waits until woken, because the wait is over or because somebody must poll.
    void sleep(Waiter& self, RankLock& lock, bool shares_processor);
    // A thread leaves its wait: somebody must poll as long as there are others.
    void leave(RankLock& lock) {
        if (first_ != nullptr && !has_poller()) {
            hand_over(lock);
        }
    }
    // However the wait of the polling thread ends, another one polls from then on. Null: it does
    // not poll for others.
    class End {
      public:
        End(ThreadWaits* waits, RankLock& lock) : waits_(waits), lock_(lock) {}
        End(const End&) = delete;
        End& operator=(const End&) = delete;
        ~End() {
            if (waits_ != nullptr) [[unlikely]] {
                waits_->poller_ = Poller::none;
                waits_->leave(lock_);
            }
        }

      private:
        ThreadWaits* waits_;
        RankLock& lock_;
    };

  private:
    enum class Poller : std::uint8_t { none, awake, asleep };

    // Those to be woken once the lock is free.
    struct Wakes {
        std::atomic<std::uint32_t>* words[16];
        std::uint32_t asleep = 0; // in words
        std::uint32_t count = 0;  // with those who see it without being woken

        void add(std::atomic<std::uint32_t>& word);
        void send();
    };

    bool wake_some(RankLock& lock, bool shares_processor);
    void hand_over(RankLock& lock);
    // Takes the one at `link` off the list: its wait is over.
    void take_off(Waiter** link, Wakes& wakes);

    Waiter* first_ = nullptr; // in the order of their coming
    Waiter** end_ = &first_;
    std::uint32_t waiting_ = 0;   // in the list
    std::uint32_t by_others_ = 0; // of them, those for which BroughtBy::others holds
    std::uint32_t most_ = 1;      // threads that have waited at a time, with the polling one
    std::uint32_t processors_ = 1;
    pthread_t polling_{}; // who, while there is one
    Poller poller_ = Poller::none;
    bool look_ = false;
    std::uint32_t notes_ = 0;
};

} // namespace warren
