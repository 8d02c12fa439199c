// The loads of a node's ranks that are fibres, in memory that other processes can read
// (`warren ranks`, mpiexec): a part of the node segment.
//
// The scheduler's monitor writes its knowledge here ten times a second, and when a rank ends, so
// that a switch between fibres costs nothing for it. What a rank sends is counted by the rank as it
// sends, by peer while there are few of them; collective operations in shared memory send nothing.
// Thread rule: each part has one writer at a time, which is said beside it; readers take the fields
// as they come.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/segment_region.hpp"

namespace warren::balance {

// State of a fibre, in the scheduler's view.
enum class RunState : std::uint32_t { unknown, ready, runs, waits, sleeps, ended };

// Messages that a rank has sent to one other rank.
struct PeerTraffic {
    std::atomic<std::uint32_t> peer; // 1 + the rank; 0: nobody yet
    std::atomic<std::uint64_t> messages;
    std::atomic<std::uint64_t> bytes;
};
inline constexpr std::uint32_t peers_kept = 32; // power of two: a stencil's neighbours
inline constexpr std::uint32_t peer_probes = 4; // places where a peer may be

struct alignas(64) RankLoad {
    // The monitor's, and when it ends the rank's
    std::atomic<std::uint64_t> ran_ns;
    std::atomic<std::uint32_t> worker; // that runs it, or ran it last
    std::atomic<RunState> state;
    std::atomic<std::uint32_t> moves; // how often a balancer gave it another worker
    // The rank's
    alignas(64) std::atomic<std::uint64_t> other_messages; // to peers that found no place
    std::atomic<std::uint64_t> other_bytes;
    PeerTraffic peers[peers_kept];
};

// The monitor's, and that of ranks that end.
struct alignas(64) WorkerLoad {
    std::atomic<std::int32_t> processor;  // -1: not bound
    std::atomic<std::int32_t> thread;     // the system's number of it
    std::atomic<std::uint32_t> stands_in; // 1: a spare one, for a worker in a long system call
    std::atomic<std::uint64_t> busy_ns;   // with fibres
    std::atomic<std::uint64_t> switches;
};
inline constexpr std::uint32_t workers_kept = 1024; // spare ones beyond are not seen

struct alignas(64) JobLoad {
    std::atomic<std::uint64_t> begin_ns; // monotonic; 0: there are no fibres (yet)
    std::atomic<std::uint64_t> written_ns;
    std::atomic<std::uint32_t> workers; // also spare ones
    // The balancer's record: how often; the imbalance of the workers' busy times before the first
    // time, and since then the sum of it and of its weights, those times in seconds.
    std::atomic<std::uint32_t> balancings;
    std::atomic<double> first_imbalance;
    std::atomic<double> later_imbalance;
    std::atomic<double> later_weight;
    // Record of the moves of ranks' pages (runtime/process_ranks/page_moves.hpp).
    std::atomic<std::uint64_t> pages_moved;
    std::atomic<std::uint64_t> pages_stayed; // although they should have been
};

// Addresses of the table's parts; null: there is no table.
struct LoadTable {
    JobLoad* job = nullptr;
    WorkerLoad* workers = nullptr;
    RankLoad* ranks = nullptr;

    explicit operator bool() const { return job != nullptr; }
    static constexpr std::size_t bytes(std::size_t ranks) {
        return sizeof(JobLoad) + workers_kept * sizeof(WorkerLoad) + ranks * sizeof(RankLoad);
    }
    // Lays the table out in memory of bytes() bytes, aligned to 64.
    static LoadTable at(std::byte* memory) {
        auto* job = reinterpret_cast<JobLoad*>(memory);
        auto* workers = reinterpret_cast<WorkerLoad*>(job + 1);
        return {job, workers, reinterpret_cast<RankLoad*>(workers + workers_kept)};
    }
};

inline constexpr node::RegionId<std::byte> loads{2};

// For a counter that one thread writes.
inline void add(std::atomic<std::uint64_t>& counter, std::uint64_t more) {
    counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

// Counts a message; called by the rank that sends, under its lock.
inline void count_message(RankLoad& load, std::uint32_t peer, std::uint64_t bytes) {
    for (std::uint32_t probe = 0; probe < peer_probes; ++probe) {
        PeerTraffic& traffic = load.peers[(peer + probe) % peers_kept];
        const std::uint32_t there = traffic.peer.load(std::memory_order_relaxed);
        if (there == 0) {
            traffic.peer.store(peer + 1, std::memory_order_relaxed);
        } else if (there != peer + 1) {
            continue;
        }
        add(traffic.messages, 1);
        add(traffic.bytes, bytes);
        return;
    }
    add(load.other_messages, 1);
    add(load.other_bytes, bytes);
}

} // namespace warren::balance
