// Times, counts and limits of the scheduler of fibres, with their reasons. The machine: 2 cores of
// a virtual EPYC, where 2'500 ticks are 1 µs. bench/switches measures a switch between fibres.
//
// Thread rule: constants.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::fibre {

// --- Idle workers

// Looks of an idle worker before it sleeps, and its polls between two looks (turns of a few dozen
// nanoseconds): together about the time of a sleep and a wake.
inline constexpr std::uint32_t looks_before_sleep = 400;
inline constexpr std::uint32_t turns_of_a_look = 8;
// A sleeping worker looks this often for work that the awake ones don't get done.
inline constexpr std::uint64_t patrol_ns = 4'000'000;
// An idle worker leaves a fibre that is alone in a queue there while its worker still switches: it
// will run next, and its data is in the caches there. 20 µs.
inline constexpr std::uint64_t patience_ticks = 50'000;
// An idle worker takes one of several fibres of a queue only after this time: a release may just
// have put them there, and the worker has had no time to run them. 2 µs.
inline constexpr std::uint64_t patience_of_many_ticks = 5'000;
// With a balancer, a fibre that is taken from its home worker soon goes back there. Taking pays
// only for what the balancer did not foresee: the worker has not switched for this time, or each
// look in this time has found several ready fibres there. 50 µs.
inline constexpr std::uint64_t patience_with_homes_ticks = 125'000;
// Time to the next test for a deadlock, when all fibres wait and only threads that are no workers
// could wake one.
inline constexpr std::uint64_t deadlock_ns = 100'000'000;

// --- Busy workers

// A worker that is never idle looks at the clock after this many switches.
inline constexpr std::uint32_t switches_per_clock = 64;
// A worker whose fibres have given way to nobody this many times looks at the others' queues, as an
// idle one does.
inline constexpr std::uint32_t turns_per_look = 64;
// The calls around polls that find nothing, and the switch before them, take less than this
// multiple of the polls' own time. Polls that took longer than poll_ticks (4 µs) were interrupted
// by the system.
inline constexpr std::uint64_t calls_per_looks = 4;
inline constexpr std::uint64_t poll_ticks = 10'000;

// --- Workers all of whose fibres poll in vain (VainTurns)

// Vain turns between two questions to the kernel whether it has taken the worker's processor: 0.5
// ms of polling, and the question takes 0.3 µs.
inline constexpr std::uint32_t turns_alone = 1024;
// Vain turns of a worker whose processor was taken, before it yields: 20 µs.
inline constexpr std::uint32_t turns_contended = 64;
// Yields after which such a worker asks whether its processor is still taken.
inline constexpr std::uint32_t yields_contended = 64;
// A yield of so many ticks (100 µs) has let somebody run who doesn't yield. Fibres that poll are
// then parked for this time (100 ms, doubled by each further long yield up to 1.6 s), as ranks that
// are threads sleep (mpi/rank/tuning.hpp).
inline constexpr std::uint64_t long_yield_ticks = 250'000;
inline constexpr std::uint64_t least_sleeping_ticks = 250'000'000;
inline constexpr std::uint64_t most_sleeping_ticks = 16 * least_sleeping_ticks;

// --- Monitor, spare workers, balancer

// Intervals of the monitor while a worker is awake, and else; and of what fibres wait for in the
// load table.
inline constexpr std::uint64_t monitor_ns = 5'000'000;
inline constexpr std::uint64_t quiet_monitor_ns = 100'000'000;
inline constexpr std::uint64_t show_every_ns = 100'000'000;
// Spare workers at most: far more than programs have fibres that block in the kernel at a time.
inline constexpr std::size_t spare_limit = 1024;
// A balancer rests at least this multiple of the time that it took: 5 % of a worker.
inline constexpr std::uint64_t rest_of_balancing = 20;

// --- Waits for objects, locks

// Between two tests of an object passes this part of the time that its fibre has waited.
inline constexpr std::uint64_t looks_per_wait = 8;
// Fibres that are taken from a list under one hold of its lock, and then woken.
inline constexpr std::size_t told_at_once = 32;
// Polls of a word that another thread holds for a few instructions, before the kernel is asked to
// run that thread: 2 to 10 µs.
inline constexpr int spins_before_yield = 200;

} // namespace warren::fibre
