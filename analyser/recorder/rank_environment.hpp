// The rank of a process in its job, from the environment that launchers set. Thread rule: a plain
// function, which allocates nothing: the tracker runs it inside malloc.
#pragma once

#include <cstdint>

namespace warren::locality {

struct RankEnvironment {
    std::int32_t rank = -1;  // -1: of no job
    std::int32_t size = -1;  // -1: not told
    const char* source = ""; // whose variables say so
};

// `variable` returns the value of an environment variable, or null.
RankEnvironment rank_in(const char* (*variable)(const char* name));

} // namespace warren::locality
