// Numbers that decide how a rank and its threads wait, with their reasons. The machine: 2 cores of
// a virtual EPYC, where 2'500 ticks are 1 us. bench/latency, bench/collectives and bench/polling
// measure them, with one rank per processor and with more.
//
// Thread rule: constants.
#pragma once

#include <cstdint>
#include <ctime>

namespace warren::wait_policy {

// --- Polls and yields before a sleep

// Polls before a rank with a processor of its own prepares to sleep.
inline constexpr std::uint32_t spins_alone = 20'000;
// Polls before a rank that shares its processor gives way: one round trip of a cache line or two.
inline constexpr std::uint32_t spins_shared = 4;
// Yields of such a rank before it sleeps. A yield is a third of a sleep and a wake, so while
// everybody comes back soon (a barrier of many ranks) nobody should sleep; but a rank that waits
// for a long computation must not take turns from it.
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
// Polls of a fibre before it sleeps: the rank that it waits for may need its worker.
inline constexpr std::uint32_t spins_of_fibre = 1;

// --- Vain looks: calls that don't wait (MPI_Test) and find nothing

// Vain looks of a fibre before it gives way.
inline constexpr std::uint32_t looks_of_fibre = 8;
// Vain looks in a count of a rank that shares its processor and only looks: as in a wait.
inline constexpr std::uint32_t looks_shared = spins_shared;
// Vain looks between two readings of the clock, of a rank that shares its processor and computes
// between looks. A reading (30 ns) is then 1/1000 of 64 us.
inline constexpr std::uint32_t looks_computing = 64;
// Vain looks between two questions to the kernel whether it has taken the processor of a rank that
// should have one of its own: 100 us of polling, and the question takes 0.3 us.
inline constexpr std::uint32_t looks_alone = 4096;
// Counts of looks after which a rank with such a processor asks whether it still has company.
inline constexpr std::uint32_t counts_contended = 64;
// A program only looks, and does not compute, while the time from look to look is at most this
// multiple of a look's own time, because it may call MPI for several requests; and at most
// poll_ticks (0.5 us).
inline constexpr std::uint64_t calls_per_look = 4;
inline constexpr std::uint64_t poll_ticks = 1'250;
// A yield of so many ticks (100 us) has let somebody run who doesn't yield: all ranks of a node
// that poll take less for their turns.
inline constexpr std::uint64_t long_yield_ticks = 250'000;
// After such a yield a rank sleeps instead of yielding for this time (100 ms): as the next yield
// may take the 3 ms of a time slice again, this costs 3 %. The time doubles with each long yield,
// up to the most (1.6 s), because many ranks may wait for each other's long yields, and is halved
// with each short one.
inline constexpr std::uint64_t sleeping_ticks = 250'000'000;
inline constexpr std::uint64_t most_sleeping_ticks = 16 * sleeping_ticks;
// Looks before each of these sleeps (1 us): other things than messages may come soon.
inline constexpr std::uint32_t looks_before_sleep = 32;
// Looks before one of `some_sleeps` sleeps (50 us, longer than a wake takes): ranks that look on
// different processors then answer each other without sleeping, until the count ends.
inline constexpr std::uint32_t looks_before_some_sleeps = 2048;
inline constexpr std::uint32_t some_sleeps = 16;
// Length of such a sleep, unless the rank is rung.
inline constexpr timespec vain_sleep = {.tv_sec = 0, .tv_nsec = 200'000};

// --- The rank's lock and doorbell

// Polls for the rank's lock before a thread sleeps: about the time of a short call by the holder.
inline constexpr int lock_spins = 100;
// Yields instead, on one processor: the holder has lost the processor and gets it back.
inline constexpr int lock_yields = 8;
// Polls that a thread that passes the lock on leaves to a thread that spins for it.
inline constexpr int lock_pass_spins = 8;
// Longest sleep of a rank in a process where the kernel refuses the sleepers' fence (doorbell.hpp):
// a wake-up may be missed, and is then late by 10 ms.
inline constexpr timespec refused_sleep_limit = {.tv_sec = 0, .tv_nsec = 10'000'000};

} // namespace warren::wait_policy

namespace warren::profile {

// --- A rank's record of its calls (profile_record.hpp): 16 kB, and 32 bytes for each column

// Rows: programs call 20 to 40 procedures, and wait in a few of them for their neighbours.
inline constexpr std::uint32_t rows_most = 512;
inline constexpr std::uint32_t row_places = 1024; // of the hash table that finds them
// Rows from which on waits are counted for no rank in particular.
inline constexpr std::uint32_t rows_before_condensed = 448;
// Columns of ranks: 256 ranks are told apart, more share them.
inline constexpr std::uint32_t columns_most = 256;
// Communicators and operations of each whose last arrivals have a place of their own. Ranks leave
// an operation before the one after the next begins, but for those that only send.
inline constexpr std::uint32_t communicators_apart = 64;
inline constexpr std::uint32_t operations_apart = 8;
// Calls of a procedure that are shorter than this many ticks, 1 to 2 µs, and come so many in a row,
// are timed now and then (Sampling): reading the clock twice takes 15 to 60 ns.
inline constexpr std::uint64_t short_call_ticks = 4096;
inline constexpr std::uint64_t short_calls = 16;
inline constexpr std::uint64_t least_distance = 8;
inline constexpr std::uint64_t random_distance = 16;

} // namespace warren::profile
