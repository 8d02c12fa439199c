// VainTurns: when a worker all of whose fibres poll in vain lets other programs have its processor.
//
// A worker whose fibres poll (MPI_Test and its like in a loop) goes from one to the next and holds
// its processor. If another program wants this processor, the kernel takes it for a time slice,
// milliseconds, in the midst of a message; and what the fibres poll for may be on a worker that
// waits for its processor likewise. So the worker gives its processor away while it has nothing to
// do: it then gets it as soon as it has. It asks the kernel now and then whether its processor was
// taken (involuntary context switches). If so, it yields after a few turns. A yield that takes long
// has let somebody run who doesn't yield: for a while, fibres that poll are parked until a message
// comes or a short time has passed, and the worker sleeps when it has no others. Ranks that are
// kernel threads do likewise (mpi/rank/vain_looks.hpp).
//
// Invariants
//  1. Turns are counted only while all fibres of the worker poll: one that has done anything else
//     begins the count again.
//  2. A worker that is alone on its processor asks the kernel once in turns_alone vain turns, and
//     does nothing else.
// Thread rule: by the fibre that runs on the worker.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/fibres/tuning.hpp"

namespace warren::fibre {

class VainTurns {
  public:
    // The fibre that has polled in vain does this.
    enum class Then : std::uint8_t { give_way, yield, sleep };

    // `now`: in ticks. switches(): how often the kernel has taken the processor from this thread.
    template <typename CountSwitches>
    Then after(std::uint64_t now, CountSwitches switches) {
        if (now < sleeps_until_) {
            return Then::sleep;
        }
        if (++turns_ < (contended_ ? turns_contended : turns_alone)) {
            return Then::give_way;
        }
        turns_ = 0;
        if (!contended_ || ++yields_ == yields_contended) {
            const long taken = switches();
            contended_ =
                taken_ >= 0 && taken != taken_; // the first answer counts from the thread's start
            taken_ = taken;
            yields_ = 0;
        }
        return contended_ ? Then::yield : Then::give_way;
    }
    // A fibre of the worker has done something else.
    void ran() { turns_ = 0; }
    // The worker has yielded.
    void yielded(std::uint64_t begin, std::uint64_t end) {
        if (end - begin >= long_yield_ticks) {
            sleeps_until_ = end + sleeping_ticks_;
            sleeping_ticks_ = std::min(2 * sleeping_ticks_, most_sleeping_ticks);
        } else {
            sleeping_ticks_ = std::max(sleeping_ticks_ / 2, least_sleeping_ticks);
        }
    }

  private:
    bool contended_ = false;
    std::uint32_t turns_ = 0;  // vain ones in a row
    std::uint32_t yields_ = 0; // since the kernel was asked last
    long taken_ = -1;          // what it said; -1: not asked yet
    std::uint64_t sleeps_until_ = 0;
    std::uint64_t sleeping_ticks_ = least_sleeping_ticks; // after the next long yield
};

} // namespace warren::fibre
