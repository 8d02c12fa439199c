// VainLooks: when a rank that polls (MPI_Test, MPI_Iprobe and their like in a loop) gives its
// processor away, and how.
//
// A rank that polls holds its processor until the kernel takes it, milliseconds later. If the rank
// that could bring what it polls for needs that processor, each message takes as long. So a rank
// yields after a few vain looks, if it shares its processor and does little else than look. It
// shares it when ranks are more than processors, or when the kernel has lately taken it for
// somebody else (an involuntary context switch). A yield that takes long has let somebody run who
// doesn't yield: for a while the rank sleeps on its doorbell instead, because the kernel gives the
// processor back to a sleeper as soon as it is woken, but not to who has yielded.
//
// Invariants
//  1. Looks are counted and not timed, but for the one that ends a count. The caller keeps the
//     count; a look that finds something doesn't change it.
//  2. A program that computes between looks keeps its processor: since Linux 6.18 a yield forfeits
//     the rest of the thread's share, which the kernel divides fairly without that.
//  3. A sleep ends after wait_policy::vain_sleep: the program may poll for more than messages.
// Thread rule: under the rank's lock. Threads' context switches are compared with their own only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mpi/rank/wait_policy.hpp"

namespace warren {

class VainLooks {
  public:
    explicit VainLooks(bool shares_processor) : shares_processor_(shares_processor) {}

    // Involuntary context switches of the calling thread, and which thread that is.
    struct Switches {
        std::uint64_t thread = 0;
        long involuntary = 0;
    };
    static Switches count_switches();

    // The action after the vain look that ended a count.
    enum class Then : std::uint8_t { look_on, yield, sleep };
    struct Next {
        Then then;
        std::uint32_t looks; // the next count
    };
    // `looks`: how many were counted. `begin` and `end`, of the last of them, are in ticks.
    // switches(), which calls the kernel, is asked now and then.
    template <typename CountSwitches>
    Next after(std::uint32_t looks, std::uint64_t begin, std::uint64_t end,
               CountSwitches switches) {
        const bool polls = only_looks(looks, begin, end);
        const bool sleeps = end < sleeps_until_;
        last_ = end;
        if (!shares_processor_ && !sleeps) {
            if (!contended_ || ++counts_ == wait_policy::counts_contended) {
                contended_ = has_been_switched(switches());
                counts_ = 0;
            }
            if (!contended_) {
                return {.then = Then::look_on, .looks = wait_policy::looks_alone};
            }
        }
        if (!polls) {
            return {.then = Then::look_on, .looks = wait_policy::looks_computing};
        }
        if (!sleeps) {
            return {.then = Then::yield, .looks = wait_policy::looks_shared};
        }
        // A count as long has gone before.
        return {.then = looks >= wait_policy::looks_before_sleep ? Then::sleep : Then::look_on,
                .looks = ++sleeps_ % wait_policy::some_sleeps == 0
                             ? wait_policy::looks_before_some_sleeps
                             : wait_policy::looks_before_sleep};
    }
    // A yield, or a sleep, has ended.
    void yielded(std::uint64_t begin, std::uint64_t end) {
        last_ = end;
        if (end - begin >= wait_policy::long_yield_ticks) {
            sleeps_until_ = end + sleeping_ticks_;
            sleeping_ticks_ = std::min(2 * sleeping_ticks_, wait_policy::most_sleeping_ticks);
        } else {
            sleeping_ticks_ = std::max(sleeping_ticks_ / 2, wait_policy::sleeping_ticks);
        }
    }
    void slept(std::uint64_t end) { last_ = end; }

  private:
    // Whether the program has done little but look since the last count's end.
    bool only_looks(std::uint32_t looks, std::uint64_t begin, std::uint64_t end) const {
        const std::uint64_t most = wait_policy::calls_per_look * (end - begin);
        return begin - last_ < looks * std::min(most, wait_policy::poll_ticks);
    }
    bool has_been_switched(const Switches& now) {
        const bool more = now.thread == seen_.thread && now.involuntary != seen_.involuntary;
        seen_ = now;
        return more;
    }

    const bool shares_processor_;
    bool contended_ = false;
    std::uint32_t counts_ = 0; // since the switches were last compared
    std::uint32_t sleeps_ = 0;
    std::uint64_t last_ = 0;         // end of the last count, or of the yield or sleep after it
    std::uint64_t sleeps_until_ = 0; // and yields no more
    std::uint64_t sleeping_ticks_ = wait_policy::sleeping_ticks; // after the next long yield
    Switches seen_;
};

} // namespace warren
