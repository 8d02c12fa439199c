// Limits of the tool information interface, with their reasons.
#pragma once

#include <cstdint>

namespace warren::tool {

// Events that wait for the rank's next progress. More are dropped, and counted: a program that does
// not call MPI must not make the library take memory.
inline constexpr std::uint32_t queued_events = 256;
// A wait of at least this time, ns, is an event of type long_wait unless the variable says
// otherwise: ten times what the kernel takes to switch between two ranks that share a processor.
inline constexpr std::uint64_t long_wait_ns = 100'000;

} // namespace warren::tool
