// Bootstrap: what a rank knows of its job before it can send messages, and what the ranks of a job
// do together without messages: exchange of addresses, numbers of communicators, counts at the end.
//
// Whoever starts the job implements it. MpiexecBootstrap (mpiexec_bootstrap.hpp) is for Warren's
// mpiexec, and for programs that were started alone. A client of another launcher (PMI-1, PMIx) and
// spawned worlds stand behind the same interface. The rank owns its bootstrap (mpi/rank/rank.hpp).
//
// Thread rule: under the rank's lock, but for abort(), which any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "mpi/job/connecting_contexts.hpp"
#include "mpi/job/segment.hpp"

namespace warren::node {

// A rank's numbers among the ranks of its node and among those of its world.
struct RankNumbers {
    std::uint32_t node_rank = 0; // its index in the node segment
    std::uint32_t node_size = 1;
    std::uint32_t world_rank = 0;
    std::uint32_t world_size = 1;
    std::uint32_t node = 0;  // this node's number
    std::uint32_t nodes = 1; // of the job
};

// Counts that all ranks of a job share.
enum class JobCount : std::uint8_t {
    finishing,   // ranks that send no more, until they come back (sessions)
    finishes,    // how often all ranks were finishing at once: counts by itself
    withdrawing, // ranks that ask for what they have announced to others
};

class Bootstrap {
  public:
    explicit Bootstrap(const RankNumbers& numbers) : numbers_(numbers) {}
    virtual ~Bootstrap() = default;
    Bootstrap(const Bootstrap&) = delete;
    Bootstrap& operator=(const Bootstrap&) = delete;

    const RankNumbers& numbers() const { return numbers_; }
    // The node of a rank of the world, and its node rank there; the rank at such a place. Nodes are
    // numbered from 0. The slots of a node ascend with the ranks.
    virtual std::uint32_t node_of(std::uint32_t world_rank) const = 0;
    virtual std::uint32_t slot_of(std::uint32_t world_rank) const = 0;
    virtual std::uint32_t world_rank_at(std::uint32_t node, std::uint32_t slot) const = 0;
    // The name by which its agent was started; "": not known.
    virtual std::string name_of_node(std::uint32_t node) const = 0;
    // Random bits that all ranks of the job have in common and nobody else; 0: a job on one node.
    virtual std::uint64_t secret() const = 0;

    // Publishes a value under a key, once each; others get() it after the next fence().
    virtual Error put(std::string_view key, std::span<const std::byte> value) = 0;
    // The value that a rank of the world had put before the last fence().
    virtual Error get(std::uint32_t world_rank, std::string_view key,
                      std::vector<std::byte>& value) = 0;
    // Returns when all ranks of the world have called it as often. Blocks the thread: fibres call
    // enter_fence() and yield until fence_is_over() with the number that it returned.
    virtual Error fence() = 0;
    virtual std::uint32_t enter_fence() = 0;
    virtual bool fence_is_over(std::uint32_t number) const = 0;

    // A number for a communicator of so many members (ContextIds): an even context, 0 when there is
    // none. Each member gives it back; the last one gets the entry's `slot`, else 0.
    virtual std::uint32_t take_context(std::uint32_t members) = 0;
    // As above, for a communicator whose members are on several nodes.
    virtual std::uint32_t take_spanning_context() = 0;
    [[nodiscard]] virtual std::uint32_t give_back_context(std::uint32_t context) = 0;
    // For communicators of several worlds.
    ConnectingContexts& connecting_contexts() { return connecting_contexts_; }

    // Adds to a count and returns what it is then; a full fence. Ranks of the node that wait for
    // the count are rung by the caller, others by the bootstrap.
    virtual std::uint32_t add(JobCount count, std::int32_t change) = 0;
    // Acquires what was done before the last add().
    virtual std::uint32_t read(JobCount count) const = 0;

    // Whether there is a launcher that says why the job ends.
    virtual bool has_launcher() const = 0;
    // Makes known that this rank ends the job, for a reason of one line. The caller then exits.
    enum class Told : std::uint8_t {
        launcher, // it says the reason and ends the other ranks
        before,   // another rank was quicker: its reason counts
        nobody    // there is no launcher, or none any more
    };
    virtual Told abort(JobEnd end, int code, const char* text) = 0;

  private:
    const RankNumbers numbers_;
    ConnectingContexts connecting_contexts_;
};

} // namespace warren::node
