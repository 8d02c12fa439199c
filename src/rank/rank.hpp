// Rank: what one MPI process is on its node, and how it waits.
//
// Every room above keeps its per-rank state in objects that hold a Rank&; all of them together are
// the rank's context (mpi/context.hpp). There is no other mutable state in the library.
#pragma once

#include <cstdint>
#include <sched.h>

#include "node/segment.hpp"
#include "rank/doorbell.hpp"
#include "rank/lock.hpp"

namespace warren {

// What a wait is for, shown to who asks why a program hangs (`mpiexec --timeout`).
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

class Rank {
  public:
    Rank(node::Segment segment, std::uint32_t index);

    node::Segment segment;
    const std::uint32_t index; // rank on the node; today also the rank in the world
    const std::uint32_t size;  // ranks on the node
    RankLock lock;             // taken by entry points when threads may call at once
    node::RankSlot& slot;
    Doorbell doorbell;

    // Waits until done(). Polls progress(), which returns true when it moved anything; then yields,
    // then sleeps, as the node's load asks for. Before a sleep, arrange() tells those who could
    // bring work without being asked (a queue that gets room again); then progress() is tried once
    // more. reason() is asked once the wait gets long.
    // The rank's lock is released while the processor is given away.
    template <typename Done, typename Progress, typename Arrange, typename Reason>
    void wait(Done done, Progress progress, Arrange arrange, Reason reason);

    // Wakes another rank of the node for work that has been published.
    void ring(std::uint32_t other) { Doorbell::ring(header(), segment.slot(other).doorbell); }

    // Wakes this rank's other threads after one of them completed what another may wait for.
    void wake_threads() {
        if (lock.shared() && waiting_threads_ != 0) [[unlikely]] {
            Doorbell::ring(header(), slot.doorbell);
        }
    }

    node::SegmentHeader& header() const { return segment.header(); }
    bool oversubscribed() const { return oversubscribed_; }
    bool verbose() const { return header().verbose != 0; }

  private:
    void publish(const WaitReason& reason);
    void unpublish();

    const bool oversubscribed_;
    std::uint32_t waiting_threads_ = 0; // under the lock
};

namespace wait_policy {
// Polls before a rank with a processor of its own looks at the clock and thinks of sleeping.
inline constexpr std::uint32_t spins_alone = 20'000;
// Polls before a rank that shares its processor gives way: one round trip of a cache line or two.
inline constexpr std::uint32_t spins_shared = 4;
// Turns in which it then yields before it sleeps. A yield is a third of a sleep and a wake, so
// while everybody comes back soon (a barrier of many ranks) nobody should sleep; but a rank that
// waits for a long computation must not take turns from it.
inline constexpr std::uint32_t yields = 64;
} // namespace wait_policy

template <typename Done, typename Progress, typename Arrange, typename Reason>
void Rank::wait(Done done, Progress progress, Arrange arrange, Reason reason) {
    if (done()) {
        return;
    }
    const std::uint32_t spins =
        oversubscribed_ ? wait_policy::spins_shared : wait_policy::spins_alone;
    std::uint32_t turn = 0;
    std::uint32_t yielded = 0;
    bool published = false;
    ++waiting_threads_;
    while (true) {
        if (progress()) {
            turn = 0;
            yielded = 0;
        }
        if (done()) {
            break;
        }
        if (++turn < spins) [[likely]] {
            // Also from the first poll on: hammering the line that the sender is about to write
            // makes its way longer.
            spin_pause();
            lock.pass(); // another thread of the rank may bring the work that this one waits for
            continue;
        }
        if (oversubscribed_ && yielded < wait_policy::yields) {
            ++yielded;
            lock.unlock();
            sched_yield();
            lock.lock();
            continue;
        }
        if (!published) {
            publish(reason());
            published = true;
        }
        // Another thread may complete this wait while the lock is free: done() is asked again by
        // the loop, and whoever completes it rings (wake_threads).
        arrange();
        const std::uint32_t seen = doorbell.prepare();
        if (!progress() && !done()) {
            lock.unlock();
            doorbell.sleep(seen);
            lock.lock();
        }
        turn = 0;
        yielded = 0;
    }
    --waiting_threads_;
    if (published) {
        unpublish();
    }
}

} // namespace warren
