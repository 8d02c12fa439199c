// Limits of the bridge between worlds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::transport::bridge {

// Bytes that wait in this process for one other: a stream goes on while others get their turn.
inline constexpr std::size_t backlog_limit = 512 * 1024;
// A backlog's buffer that is larger is given back when it is empty.
inline constexpr std::size_t backlog_kept = 64 * 1024;
// Bytes that are read from one connection before the next.
inline constexpr std::size_t read_at_once = 256 * 1024;
// Looks at the node's queues between two at the sockets, which cost a system call.
inline constexpr std::uint32_t looks_per_poll = 8;
// Between two attempts to reach a process that does not listen yet, of a rank that sleeps.
inline constexpr int retry_ms = 1;
// How long a bridge waits before it ends its job. (Tests wait less.)
struct Patience {
    // For a process to listen that is a member of a new communicator: it comes to the same
    // collective call.
    std::uint64_t listen_ns = 600'000'000'000;
    // For a descriptor to become free, where none is left.
    std::uint64_t descriptor_ns = 10'000'000'000;
    // For the mpiexec of a process that has died, which knows why, to say so.
    std::uint32_t lost_us = 2'000'000;
};
// Connections that are taken at once, before messages get their turn.
inline constexpr int connections_at_once = 64;
// Processes met before those that have ended are forgotten; then twice as many as are left.
inline constexpr std::size_t ways_at_first = 32;
// Connections that the kernel keeps until they are taken.
inline constexpr int connections_waiting = 1024;

} // namespace warren::transport::bridge
