// How a rank waits, and how others wake it.
//
// A waiting rank polls; after a while it sleeps on the doorbell in its slot of the node segment.
// Who brings it work (a message, a finished collective step, space in its queue) first publishes
// the work and then calls ring().
//
// Invariants
//  1. Bit 0 of the doorbell is set whenever the rank sleeps or is committed to sleep; the rest
//     counts the wakes, so that a sleeper sees one that came before it slept.
//  2. A rank that sets the bit looks for work once more before it sleeps; a full fence stands
//     between.
//  3. A waker publishes its work before it reads the doorbell; a full fence stands between: its own
//     (fence_in_wakers, when ranks are many and a context switch dwarfs it), or the sleeper's
//     membarrier, which runs a fence on every processor, so that wakers pay nothing. By 2 and 3
//     either the sleeper sees the work or the waker sees the bit.
// Thread rule: prepare() and sleep() by any thread of the rank, several may sleep at once; ring()
// by anybody.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.hpp"
#include "base/invariant.hpp"
#include "mpi/job/segment.hpp"

namespace warren {

class Doorbell {
  public:
    Doorbell() = default;
    Doorbell(node::SegmentHeader& header, std::atomic<std::uint32_t>& word)
        : header_(&header), word_(&word) {}

    // Joins the processes whose sleepers fence for their wakers. Where this process is refused what
    // the launcher was granted, all wakers of the node fence from now on; and as one of them may
    // have read the old policy just before, this rank's own sleeps get a limit.
    void join();

    // Commits to sleep: after it, the owner looks for work once more, then calls sleep() or, when
    // there is work, goes on. (The bit that then stays costs the next waker one needless call;
    // another thread of the rank may sleep on it, so it is not taken back.)
    // Pass the value that it returns to sleep().
    [[nodiscard]] std::uint32_t prepare() {
        const std::uint32_t seen = word_->fetch_or(asleep, std::memory_order_seq_cst) | asleep;
        if (header_->fence_in_wakers.load(std::memory_order_relaxed) != 0) {
            fence_after_change();
        } else {
            fence_for_wakers();
        }
        return seen;
    }

    // Sleeps until somebody rings; not at all if somebody has since the prepare() that returned
    // `seen`, even if another thread of the rank has prepared to sleep after that.
    void sleep(std::uint32_t seen) {
        WARREN_INVARIANT((seen & asleep) != 0, "doorbell 1: a sleeper has set bit 0");
        futex_wait(*word_, seen, limit_);
    }
    // Sleeps until somebody rings, but no longer than `limit`.
    void sleep(std::uint32_t seen, const timespec& limit) { futex_wait(*word_, seen, &limit); }
    // Sleeps until somebody rings, in a process whose ranks are fibres.
    void sleep(std::uint32_t seen, const FibreFunctions& functions, WaitNote& note) {
        functions.wait(*word_, seen, limit_, &note);
    }
    // And until an event has happened that many wait for, where waits for an event() said so.
    template <typename Happened>
    void wait_for_event(std::uint32_t seen, const FibreFunctions& functions, WaitNote& note,
                        const void* event, Happened& happened) {
        functions.wait_for_event(
            event, [](void* condition) -> bool { return (*static_cast<Happened*>(condition))(); },
            &happened, *word_, seen, &note);
    }
    bool waits_for_event(const FibreFunctions* functions) const {
        return functions != nullptr && limit_ == nullptr && functions->may_wait_for_event();
    }

    // Whether somebody has rung since the prepare() that returned `seen`.
    bool has_rung(std::uint32_t seen) const {
        return word_->load(std::memory_order_relaxed) != seen;
    }

    // Wakes the owner of `word` if it sleeps. The caller has published what the owner waits for.
    static void ring(const node::SegmentHeader& header, std::atomic<std::uint32_t>& word) {
        if (header.fence_in_wakers.load(std::memory_order_relaxed) != 0) {
            // A fence stands before the look that finds the owner awake. One that finds it asleep
            // needs none, for wake() then changes the word, with all that was published before.
            const std::uint32_t seen = word.load(std::memory_order_relaxed);
            if ((seen & asleep) != 0) {
                wake(word, seen);
                return;
            }
            std::atomic_thread_fence(std::memory_order_seq_cst);
        } else {
            // The sleeper's fence works on what the processor does; the compiler must keep order
            // too.
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        const std::uint32_t seen = word.load(std::memory_order_relaxed);
        if ((seen & asleep) != 0) [[unlikely]] {
            wake(word, seen);
        }
    }

  private:
    // Bit 0 of the word: somebody sleeps, or is about to. The rest counts the wakes.
    static constexpr std::uint32_t asleep = 1;

    // A full fence, right after an atomic change of the word.
    static void fence_after_change() {
#if defined(__x86_64__)
        // Which is one itself: an instruction with the prefix lock. The compiler must keep order.
        std::atomic_signal_fence(std::memory_order_seq_cst);
#else
        std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    }

    // The sleeper's part of invariant 3, or, refused, the change to the other policy.
    void fence_for_wakers();
    // `seen`: the word, with the bit set. Changes it, or has looked behind a fence that the bit is
    // gone.
    [[gnu::cold]] static void wake(std::atomic<std::uint32_t>& word, std::uint32_t seen);

    node::SegmentHeader* header_ = nullptr;
    std::atomic<std::uint32_t>* word_ = nullptr;
    const timespec* limit_ = nullptr; // of one sleep; null: none
};

} // namespace warren
