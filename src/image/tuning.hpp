// Times that images and their C library wait, with their reasons. Changing one changes speed and
// idle load, never results. The machine: README.md's, a 2-core virtual EPYC (Zen 4).
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace warren::image {

// --- Looks of fibres at what no event tells them of: a blocked fibre is asked again after the
// shortest time, ns, then ever later, up to the longest.

inline constexpr std::uint64_t shortest_look_ns = 20'000;
inline constexpr std::uint64_t longest_look_ns = 100'000'000;
// The longest for objects that other processes use as well, or threads by another address: nobody
// tells of their changes.
inline constexpr std::uint64_t longest_shared_look_ns = 10'000'000;

// --- End of an image

// How long, ms, threads that are ending are waited for.
inline constexpr int exit_wait_ms = 200;
// Timers that have been deleted and are kept, because a thread may be on its way to their function.
inline constexpr std::size_t deleted_timers_kept = 1000;
// Notices of message queues that have been withdrawn and are kept for the same reason.
inline constexpr std::size_t withdrawn_notices_kept = 100;

} // namespace warren::image
