// WaitPolicy: how a rank waits. It is chosen once, when the rank starts; whoever waits or polls
// asks it instead of asking what kind of rank this is. Its numbers are in tuning.hpp.
//
// Thread rule: constant, but for the counts of polls and yields, which a tool may change under the
// rank's lock (mpi/tool).
#pragma once

#include <cstdint>

#include "base/futex.hpp"
#include "mpi/rank/tuning.hpp"

namespace warren {

struct WaitPolicy {
    // Functions that park and wake the rank if it is a fibre; null: it is a kernel thread.
    const FibreFunctions* functions = nullptr;
    // Ranks are more than processors: a wait gives way after a few polls.
    bool shares_processor = false;
    // All ranks of the node are fibres of this process: who brings what one waits for may need its
    // worker.
    bool takes_turns = false;
    // …and of the job: all that one waits for comes by its queue.
    bool all_by_queue = false;
    // In a wait that does not give way: polls before the rank sleeps.
    std::uint32_t spins_alone = wait_policy::spins_alone;
    // In a wait that gives way: polls before the first yield, yields before the rank sleeps.
    std::uint32_t spins = 0;
    std::uint32_t yields = 0;
    std::uint32_t collective_yields = 0;
    // The first count of vain looks (VainLooks).
    std::uint32_t looks = 0;

    // `oversubscribed`, `only_fibres`: fields of the node segment's header. `functions`: the
    // process's; null: it has no fibres. `one_node`: the job has no other.
    static WaitPolicy choose(bool oversubscribed, bool only_fibres, const FibreFunctions* functions,
                             bool one_node = true) {
        WaitPolicy chosen = {.functions = functions,
                             .shares_processor = oversubscribed,
                             .takes_turns = only_fibres && functions != nullptr,
                             .all_by_queue = only_fibres && functions != nullptr && one_node};
        if (functions != nullptr) {
            // To sleep is a fibre's cheapest way to let others run, and who wakes it knows when.
            chosen.spins = wait_policy::spins_of_fibre;
            chosen.yields = 0;
            chosen.collective_yields = wait_policy::collective_yields_of_fibre;
            chosen.looks = wait_policy::looks_of_fibre;
        } else if (oversubscribed) {
            chosen.spins = wait_policy::spins_shared;
            chosen.yields = wait_policy::yields;
            chosen.collective_yields = wait_policy::collective_yields;
            chosen.looks = wait_policy::looks_shared;
        } else {
            // Gives way if its threads that wait are more than its processors.
            chosen.spins = wait_policy::spins_shared;
            chosen.yields = wait_policy::yields_among_threads;
            chosen.collective_yields = wait_policy::collective_yields;
            chosen.looks = wait_policy::looks_alone;
        }
        return chosen;
    }
};

} // namespace warren
