// Files' region of the node segment (base/segment_region.hpp): the range locks of all files.
#pragma once

#include "base/page.hpp"
#include "base/segment_region.hpp"

namespace warren::io {

struct LockBlock; // range_locks.hpp

// A file's block is chosen by its number in its file system; committed when a file is opened.
inline constexpr std::uint64_t lock_block_bytes = page_bytes;
inline constexpr std::uint64_t lock_blocks = 64;
inline constexpr node::RegionId<std::byte> range_lock_blocks{24};

} // namespace warren::io
