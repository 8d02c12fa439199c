#include "mpi/rank/profile_record.hpp"

namespace warren::profile {

namespace {

node::Extent extent_of_records(const node::JobShape& shape) {
    const std::uint32_t units = shape.profiled ? shape.ranks : 0;
    const std::uint64_t bytes =
        sizeof(ProfileRecord) + Columns(shape.ranks).count * sizeof(PairCount);
    const std::uint64_t lines = (bytes + node::cache_line_bytes - 1) / node::cache_line_bytes;
    return {.unit_bytes = lines * node::cache_line_bytes, .units = units, .sure_units = units};
}
WARREN_REGION(records, {.number = records.number, .name = "profile", .extent = extent_of_records});

node::Extent extent_of_last_arrivals(const node::JobShape& shape) {
    const std::uint32_t units = shape.profiled ? communicators_apart * operations_apart : 0;
    return {.unit_bytes = sizeof(LastArrival), .units = units, .sure_units = units};
}
WARREN_REGION(last_arrivals, {.number = last_arrivals.number,
                              .name = "last arrivals",
                              .extent = extent_of_last_arrivals});

} // namespace

} // namespace warren::profile
