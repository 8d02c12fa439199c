// WaitPolicy: how a rank waits. It is chosen once, when the rank starts; whoever waits or polls
// asks it instead of asking what kind of rank this is. The numbers that policies consist of are
// here.
//
// Thread rule: constant.
#pragma once

#include <cstdint>
#include <ctime>

#include "base/futex.hpp"

namespace warren::wait_policy {

// Polls before a rank with a processor of its own prepares to sleep.
inline constexpr std::uint32_t spins_alone = 20'000;
// Polls before a rank that shares its processor gives way: one round trip of a cache line or two.
inline constexpr std::uint32_t spins_shared = 4;
// Turns in which it then yields before it sleeps. A yield is a third of a sleep and a wake, so
// while everybody comes back soon (a barrier of many ranks) nobody should sleep; but a rank that
// waits for a long computation must not take turns from it.
inline constexpr std::uint32_t yields = 64;
// Yields before a thread sleeps that polls for others of its rank, which share a processor with it
// and nobody else: while they all wait, nobody else wants it.
inline constexpr std::uint32_t yields_among_threads = 2'000;
// Yields of a rank that shares its processor in a collective operation in shared memory before it
// sleeps. One is mostly enough among ranks that all come to the same operation; the others serve
// ranks that compute in between.
inline constexpr std::uint32_t collective_yields = 64;
// Such yields of a fibre, whose sleep and wake cost as much as two yields: a worker whose fibres
// all wait should take over others' work.
inline constexpr std::uint32_t collective_yields_of_fibre = 2;
// Polls of a fibre: who brings what it waits for needs its worker.
inline constexpr std::uint32_t spins_of_fibre = 1;
// How many calls that don't wait (MPI_Test) a fibre makes in vain before it gives way.
inline constexpr std::uint32_t looks_of_fibre = 8;
// Vain looks in a count of a rank that shares its processor and only looks: as in a wait.
inline constexpr std::uint32_t looks_shared = spins_shared;
// Vain looks between two of which the time is taken, of a rank that shares its processor and
// computes between looks. Taking the time (30 ns) is then 1/1000 of 64 us.
inline constexpr std::uint32_t looks_computing = 64;
// Vain looks between two questions to the kernel whether it has taken the processor of a rank
// that should have one of its own: 100 us of polling, and the question takes 0.3 us.
inline constexpr std::uint32_t looks_alone = 4096;
// Counts of looks after which a rank with such a processor asks whether it still has company.
inline constexpr std::uint32_t counts_contended = 64;
// Up to this multiple of what a look takes, from look to look, a program only looks: it calls MPI,
// maybe for several requests. And never when longer than so many ticks a look (0.5 us).
inline constexpr std::uint64_t calls_per_look = 4;
inline constexpr std::uint64_t poll_ticks = 1'250;
// A yield of so many ticks (100 us) has let somebody run who doesn't yield: all ranks of a node
// that poll take less for their turns.
inline constexpr std::uint64_t long_yield_ticks = 250'000;
// After such a yield a rank sleeps instead for so long (100 ms): as the next one may take the 3 ms
// of a time slice again, this costs 3 %. The time doubles with each long yield, up to the most (1.6
// s), because many ranks may wait for each other's long yields, and is halved with each short one.
inline constexpr std::uint64_t sleeping_ticks = 250'000'000;
inline constexpr std::uint64_t most_sleeping_ticks = 16 * sleeping_ticks;
// It looks so often before each sleep (1 us): what it polls for beside messages may come soon.
inline constexpr std::uint32_t looks_before_sleep = 32;
// But so often (50 us, longer than a wake takes) before one of so many sleeps: ranks that look on
// different processors then answer each other without sleeping, until the count ends.
inline constexpr std::uint32_t looks_before_some_sleeps = 2048;
inline constexpr std::uint32_t some_sleeps = 16;
// How long it sleeps, unless it is rung.
inline constexpr timespec vain_sleep = {.tv_sec = 0, .tv_nsec = 200'000};

} // namespace warren::wait_policy

namespace warren {

struct WaitPolicy {
    // Functions that park and wake the rank if it is a fibre; null: it is a kernel thread.
    const FibreFunctions* functions = nullptr;
    // Ranks are more than processors: a wait gives way after a few polls.
    bool shares_processor = false;
    // All ranks of the node are fibres of this process: who brings what one waits for may need its
    // worker.
    bool takes_turns = false;
    // In a wait that gives way: polls before the first yield, yields before the rank sleeps.
    std::uint32_t spins = 0;
    std::uint32_t yields = 0;
    std::uint32_t collective_yields = 0;
    // The first count of vain looks (VainLooks).
    std::uint32_t looks = 0;

    // `oversubscribed`, `crowded`: what the node segment's header says. `functions`: of the
    // process.
    static WaitPolicy choose(bool oversubscribed, bool crowded, const FibreFunctions* functions) {
        WaitPolicy chosen = {.functions = functions,
                             .shares_processor = oversubscribed,
                             .takes_turns = crowded && functions != nullptr};
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
