// Which rank of a job a process is, as launchers tell by the environment.
// Thread rule: a plain function, which allocates nothing: the tracker runs it inside malloc.
#pragma once

#include <cstdint>

namespace warren::locality {

struct RankEnvironment {
    std::int32_t rank = -1;  // -1: of no job
    std::int32_t size = -1;  // -1: not told
    const char* source = ""; // whose variables say so
};

// `variable` gives the value of a name, or null.
RankEnvironment rank_in(const char* (*variable)(const char* name));

} // namespace warren::locality
