#include "mpi/io/segment_regions.hpp"

namespace warren::io {

namespace {

node::Extent extent_of_range_locks(const node::JobShape&) {
    return {.unit_bytes = lock_block_bytes, .units = lock_blocks, .sure_units = 0};
}
WARREN_REGION(range_locks, {.number = range_lock_blocks.number,
                            .name = "range locks of files",
                            .extent = extent_of_range_locks});

} // namespace

} // namespace warren::io
