// The part of the node that the calling thread may use: its affinity, which control groups and
// mpiexec narrow, and the NUMA nodes that control groups leave to its process. Thread rule:
// anybody; the answer is the calling thread's, as of now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "warren/topology.h"

namespace warren::topology {

struct ProcessShare {
    std::vector<std::uint64_t> cpus;
    std::vector<std::uint64_t> nodes; // empty: the kernel doesn't say
};

ProcessShare find_process_share();

// The members of `words` that are in `set` too, with as many words as `set` reaches to.
std::vector<std::uint64_t> intersection(const std::vector<std::uint64_t>& words,
                                        const warren_set& set);

// All members of a set, from word 0 on.
std::vector<std::uint64_t> words_of(const warren_set& set);

} // namespace warren::topology
