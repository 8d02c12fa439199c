// How long a wait polls before it gives way, in numbers.
#pragma once

#include <cstdint>

namespace warren::wait_policy {

// Polls before a rank with a processor of its own looks at the clock and thinks of sleeping.
inline constexpr std::uint32_t spins_alone = 20'000;
// Polls before a rank that shares its processor gives way: one round trip of a cache line or two.
inline constexpr std::uint32_t spins_shared = 4;
// Turns in which it then yields before it sleeps. A yield is a third of a sleep and a wake, so
// while everybody comes back soon (a barrier of many ranks) nobody should sleep; but a rank that
// waits for a long computation must not take turns from it.
inline constexpr std::uint32_t yields = 64;
// The same for a thread that polls for others of its rank, which share a processor with it and
// nobody else: while they all wait, nobody else wants it.
inline constexpr std::uint32_t yields_among_threads = 2'000;
// Polls of a fibre: who brings what it waits for needs its worker.
inline constexpr std::uint32_t spins_of_fibre = 1;
// How many calls that don't wait (MPI_Test) a fibre makes in vain before it gives way.
inline constexpr std::uint32_t looks_of_fibre = 8;

} // namespace warren::wait_policy
