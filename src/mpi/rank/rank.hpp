// Rank: what one MPI process is on its node, and how it waits.
//
// Every room above keeps its per-rank state in objects that hold a Rank&; all of them together are
// the rank's context (mpi/entry/context.hpp). There is no other mutable state in the library.
#pragma once

#include <cstdint>
#include <memory>

#include "base/futex.hpp"
#include "mpi/job/bootstrap.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/rank/doorbell.hpp"
#include "mpi/rank/lock.hpp"
#include "mpi/rank/profile.hpp"
#include "mpi/rank/thread_waits.hpp"
#include "mpi/rank/vain_looks.hpp"
#include "mpi/rank/wait_policy.hpp"
#include "runtime/balance/load_table.hpp"
#include "runtime/fibres/switch.hpp"

namespace warren {

// The reason of a wait, shown to who asks why a program hangs (`mpiexec --timeout`).
struct WaitReason {
    std::uint32_t call = 0;     // index of the procedure
    std::int32_t peer = 0;      // rank in the communicator, MPI_ANY_SOURCE, MPI_PROC_NULL
    bool peer_in_world = false; // …or in the world (a send's)
    std::int32_t tag = 0;
    std::uint32_t context = 0;
    const char* communicator_name = "";
    std::uint32_t posted = 0;
    std::uint32_t unexpected = 0;
    std::uint32_t pending_sends = 0;
    std::uint32_t requests = 0;
};

// Arrangements for a sleep that others can't take back need not say so.
template <typename Arrange>
bool still_stands(const Arrange& arrange) {
    if constexpr (requires { arrange.stands(); }) {
        return arrange.stands();
    } else {
        return true;
    }
}

// Whether an event other than done() has happened, after which done() may give another answer.
template <typename Arrange>
bool has_changed(const Arrange& arrange) {
    if constexpr (requires { arrange.changed(); }) {
        return arrange.changed();
    } else {
        return false;
    }
}

// Whether processes have ended, so that waits for them do, too.
template <typename Arrange>
bool finds_lost(const Arrange& arrange) {
    if constexpr (requires { arrange.finds_lost(); }) {
        return arrange.finds_lost();
    } else {
        return false;
    }
}

class Rank {
  public:
    Rank(node::Segment segment, std::unique_ptr<node::Bootstrap> bootstrap);
    // A rank of a node that is the whole world, without a launcher.
    Rank(const node::Segment& segment, std::uint32_t index);

    node::Segment segment;
    const std::uint32_t index; // among the ranks of the node
    const std::uint32_t size;  // ranks on the node
    const std::uint32_t world_rank;
    const std::uint32_t world_size;
    RankLock lock; // taken by entry points when threads may call at once
    node::RankSlot& slot;
    Doorbell doorbell;
    WaitPolicy waits;
    balance::RankLoad* const load; // where to count what is sent; null: not counted
    // Endpoints from world_size on may be processes of other worlds (mpi/transport/bridge).
    bool meets_other_worlds = false;

    // Waits until done(). Polls progress(), which returns true when it moved anything; then yields,
    // then sleeps, as the node's load asks for. Before a sleep, arrange() tells those who could
    // bring work without being asked (a queue that gets room again); then progress() is tried once
    // more. It sleeps only while arrange.stands(): who has been told may have called before the
    // doorbell was prepared, in vain when others have been quicker to take what there was.
    // reason() is asked once the wait gets long.
    // The rank's lock is released while the processor is given away. Where several threads of the
    // rank wait, one polls for all (ThreadWaits), so done() may be called by another thread.
    // `event`: of fibres that may_wait_for_event(), done() is what release_event() is called
    // after, by others.
    template <typename Done, typename Progress, typename Arrange, typename Reason>
    void wait(Done done, Progress progress, Arrange arrange, Reason reason,
              BroughtBy brought_by = BroughtBy::progress, const void* event = nullptr) {
        if (done()) {
            return;
        }
        wait_number_ = ++waits_begun_;
        if (lock.closed()) [[unlikely]] {
            wait_observed(done, progress, arrange, reason, brought_by, event);
        } else {
            wait_in_turns<false>(done, progress, arrange, reason, brought_by, event);
        }
        wait_number_ = 0;
    }
    // The number of the wait that the calling thread is in, as no other has it; 0: none, or others
    // of the rank's threads may run the program meanwhile.
    std::uint64_t wait_number() const { return lock.shared() ? 0 : wait_number_; }

    // Events that many ranks of the node wait for, each by the address of a cache line, where they
    // are fibres: who brings one about wakes all at once, and rings nobody.
    bool waits_for_event() const {
        return !lock.shared() && doorbell.waits_for_event(waits.functions);
    }
    void release_event(const void* event) const {
        if (waits.functions != nullptr) {
            waits.functions->release(event);
        }
    }

    // Wakes another rank of the node for work that has been published.
    void ring(std::uint32_t other) { Doorbell::ring(header(), segment.slot(other).doorbell); }

    // A thread has brought something that another one of this rank may wait for.
    void wake_threads() {
        if (lock.shared() && threads_.has_poller()) [[unlikely]] {
            threads_.note();
            if (threads_.poller_sleeps()) {
                Doorbell::ring(header(), slot.doorbell);
            }
        }
    }

    // The look of a call that doesn't wait (MPI_Test and its like): programs that ask again and
    // again in vain let the ranks run that could bring it (VainLooks). `progress` says whether it
    // found anything; `arrange` is wait()'s. True: others may have run since it looked.
    template <typename Progress, typename Arrange>
    bool look(Progress progress, const Arrange& arrange) {
        if (looks_left_ != 1) [[likely]] {
            looks_left_ -= progress() ? 0 : 1;
            return false;
        }
        const std::uint64_t begin = fibre::ticks();
        if (progress()) {
            return false;
        }
        if (looked_in_vain(begin)) {
            sleep_a_while(progress, arrange);
        } else {
            static_cast<void>(finds_lost(arrange));
        }
        return true;
    }

    // How the rank and others of its job do what needs no messages.
    node::Bootstrap& bootstrap() const { return *bootstrap_; }

    // From now on several of its threads may call MPI (MPI_THREAD_MULTIPLE). Once, before they do.
    void share_by_threads();

    node::SegmentHeader& header() const { return segment.header(); }
    bool oversubscribed() const { return waits.shares_processor; }
    bool takes_turns() const { return waits.takes_turns; }
    bool verbose() const { return header().verbose != 0; }

    // Whether another process has ended while others go on (mpiexec --keep-going). Of ranks of
    // other nodes nobody here knows.
    bool has_ended(std::uint32_t endpoint) const {
        return endpoint < size && segment.has_ended(endpoint);
    }

    // Algorithms that a tool has chosen, by collective operation (mpi/coll/choice.hpp); 0: none.
    std::uint8_t algorithms[16] = {};
    // Whether collective operations may go by short blocks: it has a processor of its own, and no
    // tool has chosen an algorithm. One byte, as it is on their short way.
    bool short_blocks = !waits.shares_processor;

    // (Also of those who may only look at the rank.)
    mutable Counts counts;
    Profile profile;

  private:
    // wait(), of a rank that is shared by threads if `shareable`.
    template <bool shareable, typename Done, typename Progress, typename Arrange, typename Reason>
    void wait_in_turns(Done& done, Progress& progress, Arrange& arrange, Reason& reason,
                       BroughtBy brought_by, const void* event);
    // Takes the time if the rank is observed.
    template <typename Done, typename Progress, typename Arrange, typename Reason>
    [[gnu::noinline]] void wait_observed(Done& done, Progress& progress, Arrange& arrange,
                                         Reason& reason, BroughtBy brought_by, const void* event);
    void publish(const WaitReason& reason);
    void unpublish();
    void record_wait(const WaitReason& reason, std::uint64_t since, std::uint64_t ticks);
    // The look since `begin` was the last of a count of vain ones. Yields if that helps; true: it
    // should sleep.
    [[gnu::cold]] bool looked_in_vain(std::uint64_t begin);
    template <typename Progress, typename Arrange>
    [[gnu::cold]] void sleep_a_while(Progress progress, const Arrange& arrange) {
        arrange();
        const std::uint32_t seen = doorbell.prepare();
        if (!progress() && still_stands(arrange)) {
            counts.sleeps.add(1);
            doorbell.sleep(seen, wait_policy::vain_sleep);
            counts.wakes.add(doorbell.has_rung(seen) ? 1 : 0);
        }
        vain_looks_.slept(fibre::ticks());
    }

    const std::unique_ptr<node::Bootstrap> bootstrap_;
    ThreadWaits threads_;
    VainLooks vain_looks_;
    std::uint32_t looks_counted_; // what looks_left_ began with
    std::uint32_t looks_left_;    // vain ones until looked_in_vain()
    std::uint64_t waits_begun_ = 0;
    std::uint64_t wait_number_ = 0; // 0: it doesn't wait
};

template <typename Done, typename Progress, typename Arrange, typename Reason>
void Rank::wait_observed(Done& done, Progress& progress, Arrange& arrange, Reason& reason,
                         BroughtBy brought_by, const void* event) {
    const std::uint64_t begin_ns = lock.observed_by_tool() ? monotonic_ns() : 0;
    const std::uint64_t begin = fibre::ticks();
    const std::uint64_t since = profile.wait_begins();
    wait_in_turns<true>(done, progress, arrange, reason, brought_by, event);
    if (profile.on()) {
        record_wait(reason(), since, fibre::ticks() - begin);
    }
    if (begin_ns == 0) {
        return;
    }
    const std::uint64_t duration_ns = monotonic_ns() - begin_ns;
    counts.waits.add(1);
    counts.waiting_ns.add(duration_ns);
    if (Observer* observer = lock.observer.load(std::memory_order_relaxed)) {
        const WaitReason its = reason();
        observer->waited(its.call, its.peer, its.tag, duration_ns);
    }
}

template <bool shareable, typename Done, typename Progress, typename Arrange, typename Reason>
void Rank::wait_in_turns(Done& done, Progress& progress, Arrange& arrange, Reason& reason,
                         BroughtBy brought_by, const void* event) {
    const bool shared = shareable && lock.shared();
    const bool nested = shared && threads_.polls();
    if (shared && !nested) [[unlikely]] {
        // The thread that polls asks this whenever it looks for those whose wait is over.
        auto over = [&] { return done() || (has_changed(arrange) && done()); };
        ThreadWaits::Waiter self{
            .is_done = [](void* asked) -> bool { return (*static_cast<decltype(over)*>(asked))(); },
            .condition = &over,
            .brought_by = brought_by};
        while (threads_.has_poller()) {
            const bool asleep = threads_.poller_sleeps();
            if (asleep) {
                // It has not arranged for, nor looked for, what this thread waits for.
                arrange();
                static_cast<void>(doorbell.prepare());
            }
            progress(); // shorter than to wait for the one that polls
            if (over()) {
                return;
            }
            // A function of the program that progress called ran without the lock.
            if (!threads_.has_poller() || threads_.poller_sleeps() != asleep) {
                continue;
            }
            threads_.sleep(self, lock, waits.shares_processor);
            if (done()) {
                threads_.leave(lock);
                return;
            }
        }
        threads_.poll();
    }
    const ThreadWaits::End end(shared && !nested ? &threads_ : nullptr, lock);
    const auto gives_way = [&] {
        return waits.shares_processor || (shared && threads_.outnumber_processors());
    };
    const auto yield = [&] {
        counts.yields.add(1);
        lock.unlock();
        give_way();
        lock.lock();
    };
    const FibreFunctions* const functions = waits.functions;
    struct Shown {
        Rank* rank;
        Reason* reason;
    } shown{this, &reason};
    WaitNote note{.show =
                      [](void* given) {
                          const auto* its = static_cast<Shown*>(given);
                          its->rank->publish((*its->reason)());
                      },
                  .wait = &shown};
    std::uint32_t turn = 0;
    std::uint32_t yielded = 0;
    bool published = false;
    while (true) {
        const bool moved = progress();
        if (shared) [[unlikely]] {
            threads_.wake_done(moved, lock, waits.shares_processor);
        }
        if (moved) {
            turn = 0;
            yielded = 0;
        }
        if (done()) {
            break;
        }
        if (++turn < (gives_way() ? waits.spins : waits.spins_alone)) [[likely]] {
            // Also from the first poll on: hammering the line that the sender is about to write
            // makes its way longer.
            spin_pause();
            if (shared && lock.wanted()) [[unlikely]] {
                gives_way() ? yield() : lock.pass();
            }
            continue;
        }
        if (gives_way() && yielded < waits.yields) {
            ++yielded;
            yield();
            continue;
        }
        if (!published && functions == nullptr) {
            publish(reason());
            published = true;
        }
        // Another thread may complete this wait while the lock is free: done() is asked again by
        // the loop, and whoever completes it rings (wake_threads).
        const std::uint32_t notes = threads_.notes();
        arrange();
        const std::uint32_t seen = doorbell.prepare();
        if (!progress() && !done() && still_stands(arrange) && notes == threads_.notes() &&
            !(shared && threads_.wake_done(true, lock, waits.shares_processor))) {
            if (shared) [[unlikely]] {
                threads_.poller_falls_asleep();
            }
            counts.sleeps.add(1);
            lock.unlock();
            if (functions == nullptr) {
                doorbell.sleep(seen);
            } else if (event != nullptr) {
                doorbell.wait_for_event(seen, *functions, note, event, done);
                published = note.shown;
            } else {
                doorbell.sleep(seen, *functions, note);
                published = note.shown;
            }
            lock.lock();
            counts.wakes.add(doorbell.has_rung(seen) ? 1 : 0);
            if (shared) [[unlikely]] {
                threads_.poller_wakes();
            }
        }
        turn = 0;
        yielded = 0;
    }
    if (published) {
        unpublish();
    }
}

} // namespace warren
