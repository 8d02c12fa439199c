// MpiexecBootstrap: the bootstrap of jobs that Warren's mpiexec starts. All ranks are on one node,
// so everything is in the node segment: the node's numbers are the world's.
//
// A rank puts its values on its card, one behind the other: lengths of key and value, key, value.
// Invariants
//  1. A card's length is stored after what it covers (release), and read before (acquire).
//  2. The first `arrived` of the ranks wait in a fence until its number changes; the last one
//     changes it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mpi/job/bootstrap.hpp"
#include "mpi/job/segment.hpp"

namespace warren::node {

struct JobCounts {
    // One word, so that finishes (the upper half) grows at once when finishing reaches all.
    alignas(cache_line_bytes) std::atomic<std::uint64_t> finishing;
    std::atomic<std::uint32_t> withdrawing;
    alignas(cache_line_bytes) std::atomic<std::uint32_t> arrived; // in the present fence
    std::atomic<std::uint32_t> fence;                             // its number
};
inline constexpr RegionId<JobCounts> job_counts{16};

inline constexpr std::size_t card_bytes = 4096;
inline constexpr RegionId<std::atomic<std::uint32_t>> card_lengths{17}; // per rank
inline constexpr RegionId<std::byte> cards{18}; // a unit per rank, committed by its first put()

class MpiexecBootstrap final : public Bootstrap {
  public:
    // `lifeline`: to mpiexec; -1: the program was started alone.
    MpiexecBootstrap(Segment segment, std::uint32_t node_rank, int lifeline);

    std::uint32_t node_of(std::uint32_t world_rank) const override;
    Error put(std::string_view key, std::span<const std::byte> value) override;
    Error get(std::uint32_t world_rank, std::string_view key,
              std::vector<std::byte>& value) override;
    Error fence() override;
    std::uint32_t take_context(std::uint32_t members) override;
    std::uint32_t give_back_context(std::uint32_t context) override;
    std::uint32_t add(JobCount count, std::int32_t change) override;
    std::uint32_t read(JobCount count) const override;
    bool has_launcher() const override { return lifeline_ >= 0; }
    Told abort(JobEnd end, int code, const char* text) override;

  private:
    // The value under a key on a rank's card; its data is null when there is none.
    std::span<const std::byte> find(std::uint32_t rank, std::string_view key) const;

    const Segment segment_;
    const int lifeline_;
};

} // namespace warren::node
