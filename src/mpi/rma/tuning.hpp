// Tuning constants of one-sided communication, with their reasons. Changing one changes speed,
// never correctness. `bench/rma` measures them (bench/README.md). The machine: README.md's, a
// 2-core virtual EPYC (Zen 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>

#include "mpi.h"

namespace warren::rma {

// --- Waits. bench/rma: lock, fence, pscw

// Calls that wait for a peer's step before they give way: some microseconds, as two ranks that
// synchronise come as close together.
inline constexpr std::uint32_t polls_of_a_peer = 100;
// Calls that poll() counts from one look around to the next: some microseconds of polling.
inline constexpr std::uint32_t polls_per_look = 64;
// Polls of a mutex that is held for some 10 ns to 10 µs, before a sleep of some 5 µs.
inline constexpr int polls_before_sleep = 200;
// First limit of a sleep for a mutex, doubled with each sleep: an owner misses a sleeper if its
// store takes longer to leave the processor than a system call, which nobody has seen.
inline constexpr timespec shortest_mutex_sleep = {.tv_sec = 0, .tv_nsec = 1'000'000};
// A sleeper looks after this time whether the mutex's owner has ended: long beside all critical
// sections, and short for a program that has lost a rank.
inline constexpr timespec look_at_owner = {.tv_sec = 0, .tv_nsec = 20'000'000};
// Turns of a reader of the region table before it yields. A change takes less, unless its rank has
// lost the processor.
inline constexpr int turns_before_yield = 100;

// --- Copies. bench/rma: put, get, vector

// At or above this size, bytes, copies use the engine's routine for large ones.
inline constexpr std::size_t large_bytes = 4096;
// Pieces of memory per system call between processes; the kernel takes 1,024.
inline constexpr std::size_t pieces_per_call = 1000;
// A read of pieces whose part of the memory between the first and the last exceeds one piece per
// this many bytes reads all of that memory, up to largest_span: the kernel takes as long for a
// piece as for some hundred bytes.
inline constexpr std::size_t bytes_per_piece = 256;
inline constexpr std::size_t largest_span = 64 * 1024;

// --- Offers to a target in the same node. bench/rma --window create

// An origin takes an offer back after this time, 2 us: a target that waits in MPI takes half of it.
inline constexpr std::uint64_t offer_ticks = 5'000;
// Writes of so many pieces of at most this size, bytes, are offered: the kernel takes 0.17 us for
// each, and copies twice less.
inline constexpr std::uint32_t least_offered_pieces = 16;
inline constexpr MPI_Count largest_offered_piece = 512;
// Even blocks that are farther apart are offered piece by piece: the target asks whether it has all
// memory from the first to the last, which is no more than a page for each.
inline constexpr MPI_Count largest_offered_stride = 4096;
constexpr bool may_be_offered(MPI_Count stride) {
    return stride >= -largest_offered_stride && stride <= largest_offered_stride;
}

// --- Requests to a target's server, where the kernel refuses copies

// A request holds at most this much data, because the data is in memory twice, at the origin and at
// the target.
inline constexpr MPI_Count data_bytes_per_request = 256 * 1024;
inline constexpr std::size_t pieces_per_request = 1024;

// --- Small writes to ranks of other nodes, which leave together (collected_puts.hpp)

// A larger one has a request of its own.
inline constexpr MPI_Count largest_collected = 1024;
// A request that leaves has so many pieces or bytes: a frame of the network takes it as one block.
inline constexpr std::size_t collected_pieces = 1024;
inline constexpr std::size_t collected_bytes = 16 * 1024;
static_assert(collected_pieces <= pieces_per_request);
// So many requests to a target may be unanswered: by then the first one is answered.
inline constexpr std::uint64_t requests_under_way = 8;

// --- Window heap

// Windows from this size on ask how much memory the machine has: smaller ones are not worth the
// system call.
inline constexpr std::uint64_t looked_for_bytes = std::uint64_t{1} << 20;

} // namespace warren::rma
