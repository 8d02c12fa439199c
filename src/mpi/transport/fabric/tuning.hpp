// Limits and times of ports and of what is above them. Thread rule: constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>

namespace warren::transport::fabric {

// --- Links (port.hpp, invariant 1)
inline constexpr std::uint32_t credit_frames = 32;    // of a link
inline constexpr std::uint32_t credit_told_after = 8; // consumed frames that the peer learns of
inline constexpr std::uint32_t credit_reserve = 8;
static_assert((credit_frames + credit_reserve) / credit_told_after < credit_reserve);

// --- Buffers
inline constexpr std::uint32_t frames_of_a_port = 256; // 16 MiB at most
inline constexpr std::size_t receive_buffers = 4;
inline constexpr std::size_t receive_buffer_bytes = 1 << 20;

// A port reads what has arrived before it closes, until so many looks found nothing, or after so
// many.
inline constexpr int vain_looks_before_close = 50;
inline constexpr int looks_before_close = 10'000;

// --- Lingering (port.hpp). bench/message_rate, with its ranks on two nodes
// A frame of this size doesn't linger: to send it takes as long as to fill it.
inline constexpr std::uint32_t linger_bytes = 8 * 1024;
// How long after a frame the next one begins to linger: some 50 us.
inline constexpr std::uint64_t linger_ticks = 125'000;
// How long the watcher leaves a port to ranks that have something to send. It doubles the time when
// it finds that they have polled, and rests after the longest.
inline constexpr std::uint32_t shortest_patrol_us = 50;
inline constexpr std::uint32_t longest_patrol_us = 1600;

// --- The watcher (network.hpp)
// How long it waits when it has no descriptor to wait for, or something waits to leave.
inline constexpr timespec look_again = {.tv_sec = 0, .tv_nsec = 200'000};
// How long it waits for the port's descriptor at most, and, while no rank sleeps, between two looks
// after the other nodes.
inline constexpr timespec look_at_port_again = {.tv_sec = 0, .tv_nsec = 100'000'000};
inline constexpr timespec look_after_nodes_every = {.tv_sec = 1, .tv_nsec = 0};
// After so many rounds that brought something it looks after the other nodes, too.
inline constexpr std::uint32_t rounds_per_look_at_nodes = 256;

// --- Lost nodes. Together less than the ten seconds after which a job ends.
// A rank that has died is reported by its node's agent, which knows why: so long it comes first.
inline constexpr std::uint32_t agent_comes_first_us = 2'000'000;
// How often kernels ask each other whether they are there, and how long they wait for an answer.
inline constexpr int pulse_period_s = 1;
inline constexpr int pulse_patience_s = 4;

} // namespace warren::transport::fabric
