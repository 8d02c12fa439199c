#include <algorithm>

#include "base/page.hpp"
#include "mpi/coll/segment_regions.hpp"

namespace warren::coll {

namespace {

constexpr std::uint64_t collective_bytes_limit = 16 << 20;
constexpr std::uint64_t least_collective_slots = 2;

node::Extent extent_of_collective_slots(const node::JobShape& shape) {
    const std::uint64_t bytes = collective_head_bytes(shape.ranks) +
                                collective_phases * collective_phase_bytes(shape.ranks);
    const std::uint64_t slot_bytes = whole_pages(bytes);
    return {.unit_bytes = slot_bytes,
            .units = std::clamp<std::uint64_t>(collective_bytes_limit / slot_bytes,
                                               least_collective_slots, collective_slot_limit),
            .sure_units = 1};
}
WARREN_REGION(collective_slots, {.number = collective_slots.number,
                                 .name = "collective slots",
                                 .extent = extent_of_collective_slots});

node::Extent extent_of_slot_map(const node::JobShape&) {
    return {.unit_bytes = sizeof(SlotMap), .units = 1, .sure_units = 1};
}
void initialise_slot_map(std::byte* memory, const node::JobShape&) {
    // The world has the first slot (comm::CollectivePlace).
    reinterpret_cast<SlotMap*>(memory)->used[0].store(1, std::memory_order_relaxed);
}
WARREN_REGION(slot_map, {.number = slot_map.number,
                         .name = "collective slots in use",
                         .extent = extent_of_slot_map,
                         .initialise = initialise_slot_map});

// Staging areas take address space only until collective operations use them.
constexpr std::uint64_t staging_units_per_rank = 128;
constexpr std::uint64_t least_staging_units = 512;

node::Extent extent_of_staging(const node::JobShape& shape) {
    const std::uint64_t units = shape.ranks == 1
                                    ? 0
                                    : std::clamp(shape.ranks * staging_units_per_rank,
                                                 least_staging_units, staging_unit_limit);
    return {.unit_bytes = staging_unit_bytes, .units = units, .sure_units = 0};
}
WARREN_REGION(staging_units,
              {.number = staging_units.number, .name = "staging", .extent = extent_of_staging});

node::Extent extent_of_staging_map(const node::JobShape&) {
    return {.unit_bytes = sizeof(StagingMap), .units = 1, .sure_units = 1};
}
WARREN_REGION(staging_map, {.number = staging_map.number,
                            .name = "staging in use",
                            .extent = extent_of_staging_map});

} // namespace

} // namespace warren::coll
