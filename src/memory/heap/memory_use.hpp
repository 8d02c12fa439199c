// MemoryUse: a NUMA node's memory as a job sees it, in the node segment (base/segment_region.hpp),
// for the fair shares of its ranks (share.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/segment_region.hpp"

namespace warren::memory {

struct MemoryUse {
    std::atomic<std::uint64_t> free_bytes; // when the job first used it, odd; 0: nobody has yet
};
inline constexpr std::size_t memory_use_limit = 1024;     // NUMA nodes
inline constexpr node::RegionId<MemoryUse> memory_use{1}; // committed by who uses it

} // namespace warren::memory
