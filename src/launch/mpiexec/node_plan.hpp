// NodePlan: what mpiexec asks of a node's agent: the node's place in the job, and the command line,
// folder and environment that its ranks would have if mpiexec itself ran there. Thread rule: plain
// values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/mpiexec/hosts.hpp"

namespace warren::launch {

struct NodePlan {
    std::uint32_t node = 0;
    std::uint32_t world_size = 1;
    bool dealt = false;
    std::uint32_t sharers = 1; // nodes that have this node's processors, itself among them
    std::uint64_t secret = 0;
    std::vector<std::uint32_t> first_ranks; // nodes + 1, as node/node_map.hpp has them
    std::vector<std::string> names;         // of nodes
    std::vector<std::uint32_t> ranks;       // of the world, by program
    std::vector<std::string> words;         // of the command line
    std::vector<std::string> environment;
    std::string directory;

    std::uint32_t nodes() const { return static_cast<std::uint32_t>(names.size()); }
    // The ranks of a program on this node.
    std::uint32_t ranks_here(std::uint32_t program) const;
    std::uint32_t world_rank(std::uint32_t slot) const;

    std::string pack() const;
    // False: these bytes are no plan.
    static bool unpack(std::string_view bytes, NodePlan& plan);
};

} // namespace warren::launch
