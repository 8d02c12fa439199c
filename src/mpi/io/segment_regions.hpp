// Files' region of the node segment (base/segment_region.hpp): the range locks of all files.
#pragma once

#include "base/segment_region.hpp"

namespace warren::io {

struct LockBlock; // range_locks.hpp

// A file's block is chosen by its number in its file system; committed when a file is opened. The
// block's own bytes are followed by a counter for each rank.
inline constexpr std::uint64_t lock_block_bytes = 3136;
inline constexpr std::uint64_t lock_counter_bytes = 4;
inline constexpr std::uint64_t lock_blocks = 64;
inline constexpr node::RegionId<std::byte> range_lock_blocks{24};

} // namespace warren::io
