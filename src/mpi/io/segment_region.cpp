#include "mpi/io/segment_regions.hpp"

#include "base/page.hpp"

namespace warren::io {

namespace {

node::Extent extent_of_range_locks(const node::JobShape& shape) {
    return {.unit_bytes = whole_pages(lock_block_bytes + shape.ranks * lock_counter_bytes),
            .units = lock_blocks,
            .sure_units = 0};
}
WARREN_REGION(range_locks, {.number = range_lock_blocks.number,
                            .name = "range locks of files",
                            .extent = extent_of_range_locks});

} // namespace

} // namespace warren::io
