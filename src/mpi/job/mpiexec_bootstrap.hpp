// MpiexecBootstrap: the bootstrap of jobs that Warren's mpiexec starts. What a node's ranks do
// together is in the node segment. What they know of other nodes is in the segment's map of nodes
// (node_map.hpp) and in the book (book.hpp); their agent takes part in fences.
//
// A rank puts its values on its card, one behind the other: lengths of key and value, key, value.
// Invariants
//  1. A card's length is stored after what it covers (release), and read before (acquire).
//  2. The first `arrived` of the ranks wait in a fence until its number changes. The last one
//     changes it, or has the agent change it when all nodes have come.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/page.hpp"
#include "mpi/job/book.hpp"
#include "mpi/job/bootstrap.hpp"
#include "mpi/job/node_map.hpp"
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

inline constexpr std::size_t card_bytes = page_bytes;
inline constexpr RegionId<std::atomic<std::uint32_t>> card_lengths{17}; // per rank
inline constexpr RegionId<std::byte> cards{18}; // a unit per rank, committed by its first put()

class MpiexecBootstrap : public Bootstrap {
  public:
    // `lifeline`: to mpiexec, or the node's agent; -1: the program was started alone. `book`: of
    // the other nodes, stays the caller's; -1: there are none.
    MpiexecBootstrap(Segment segment, std::uint32_t node_rank, int lifeline, int book = -1);

    // Bytes that a rank writes into its lifeline.
    static constexpr char ends_job = '!';
    static constexpr char fences = 'f'; // all ranks of the node have come to a fence
    // The agent's part of a fence: all nodes have come. Lets the ranks of this one go on.
    static void end_fence(const Segment& segment);

    std::uint32_t node_of(std::uint32_t world_rank) const override;
    std::uint32_t slot_of(std::uint32_t world_rank) const override;
    std::uint32_t world_rank_at(std::uint32_t node, std::uint32_t slot) const override;
    std::string name_of_node(std::uint32_t node) const override;
    std::uint64_t secret() const override;
    Error put(std::string_view key, std::span<const std::byte> value) override;
    Error get(std::uint32_t world_rank, std::string_view key,
              std::vector<std::byte>& value) override;
    Error fence() override;
    std::uint32_t enter_fence() override;
    bool fence_is_over(std::uint32_t number) const override;
    std::uint32_t take_context(std::uint32_t members) override;
    std::uint32_t take_spanning_context() override;
    std::uint32_t give_back_context(std::uint32_t context) override;
    std::uint32_t add(JobCount count, std::int32_t change) override;
    std::uint32_t read(JobCount count) const override;
    bool has_launcher() const override { return lifeline_ >= 0; }
    Told abort(JobEnd end, int code, const char* text) override;

  protected:
    const Segment& segment() const { return segment_; }
    // The card of a rank of another node; empty when it has put nothing.
    virtual std::vector<std::byte> card_elsewhere(std::uint32_t node, std::uint32_t slot);

  private:
    // The card of a rank of this node.
    std::span<const std::byte> card(std::uint32_t slot) const;

    const Segment segment_;
    const NodeMap map_;
    const int lifeline_;
    const Book book_;
};

} // namespace warren::node
