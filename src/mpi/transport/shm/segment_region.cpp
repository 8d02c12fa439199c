#include <algorithm>

#include "mpi/transport/shm/segment_regions.hpp"

namespace warren::transport {

namespace {

// Pair rings take address space only until a pair opens them.
constexpr std::uint64_t pair_ring_region_limit = std::uint64_t{1} << 30;

node::Extent extent_of_space_waiters(const node::JobShape& shape) {
    return {.unit_bytes = std::uint64_t{(shape.ranks + 63) / 64} * sizeof(std::uint64_t),
            .units = shape.ranks,
            .sure_units = shape.ranks};
}
WARREN_REGION(space_waiters, {.number = space_waiters.number,
                              .name = "ranks that wait for space",
                              .extent = extent_of_space_waiters});

node::Extent extent_of_queues(const node::JobShape& shape) {
    return {
        .unit_bytes = queue_cells * cell_bytes, .units = shape.ranks, .sure_units = shape.ranks};
}
WARREN_REGION(queues, {.number = queues.number, .name = "queues", .extent = extent_of_queues});

// Few of thousands of ranks use many chunks, and the rest of what these have (their stacks) has no
// memory beforehand either.
node::Extent extent_of_chunks(const node::JobShape& shape) {
    const std::uint64_t units = std::uint64_t{shape.ranks} * chunks_per_rank;
    return {.unit_bytes = chunk_bytes, .units = units, .sure_units = shape.fibres ? 0 : units};
}
WARREN_REGION(chunks, {.number = chunks.number, .name = "chunks", .extent = extent_of_chunks});

// A rank that shares its processor gains nothing from pair rings and bounce buffers.
std::uint64_t count_of_pair_rings(const node::JobShape& shape) {
    const std::uint64_t ranks = shape.ranks;
    return shape.shares_processors()
               ? 0
               : std::min({ranks * (ranks - 1), ranks * pair_rings_per_receiver,
                           pair_ring_region_limit / pair_ring_bytes});
}
node::Extent extent_of_pair_rings(const node::JobShape& shape) {
    return {.unit_bytes = pair_ring_bytes, .units = count_of_pair_rings(shape), .sure_units = 0};
}
WARREN_REGION(pair_rings,
              {.number = pair_rings.number, .name = "pair rings", .extent = extent_of_pair_rings});

node::Extent extent_of_opened(const node::JobShape&) {
    return {.unit_bytes = node::cache_line_bytes, .units = 1, .sure_units = 1};
}
WARREN_REGION(pair_rings_opened, {.number = pair_rings_opened.number,
                                  .name = "count of pair rings",
                                  .extent = extent_of_opened});

node::Extent extent_of_bounces(const node::JobShape& shape) {
    const std::uint64_t units =
        count_of_pair_rings(shape) != 0 ? std::uint64_t{shape.ranks} * bounce_buffers : 0;
    return {.unit_bytes = bounce_stride_bytes, .units = units, .sure_units = 0};
}
WARREN_REGION(bounces,
              {.number = bounces.number, .name = "bounce buffers", .extent = extent_of_bounces});

} // namespace

} // namespace warren::transport
