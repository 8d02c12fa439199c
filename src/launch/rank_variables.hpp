// Variables of the environment whose values differ from rank to rank.
//
// They come first in the environment that mpiexec makes for a program, in this order and without
// values; whoever starts a rank puts the numbers there. WARREN_RANK says that a process is a rank.
// The others are those that programs read before MPI_Init to learn their place from other
// launchers: to choose an accelerator, a log file, or whether to call MPI at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace warren::launch {

struct RankVariable {
    const char* name;
    bool on_node; // the number among the job's ranks on the node, not in the world
};

inline constexpr RankVariable rank_variables[] = {
    {"WARREN_RANK", false},
    {"OMPI_COMM_WORLD_RANK", false},
    {"OMPI_COMM_WORLD_LOCAL_RANK", true},
    {"OMPI_COMM_WORLD_NODE_RANK", true},
    {"MPI_LOCALRANKID", true},
};
inline constexpr std::size_t rank_variable_count = std::size(rank_variables);

// These are the same for all ranks of a node: the number of ranks in the world, or on the node.
inline constexpr RankVariable size_variables[] = {
    {"WARREN_SIZE", false},
    {"OMPI_COMM_WORLD_SIZE", false},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", true},
    {"MPI_LOCALNRANKS", true},
};

// A rank's two numbers.
struct RankNumbers {
    std::uint32_t in_world = 0;
    std::uint32_t on_node = 0;

    std::uint32_t of(const RankVariable& variable) const {
        return variable.on_node ? on_node : in_world;
    }
};

} // namespace warren::launch
