#include "base/page.hpp"
#include "mpi/rank/profile_record.hpp"

namespace warren::profile {

namespace {

node::Extent extent_of_records(const node::JobShape& shape) {
    const std::uint32_t units = shape.profiled ? shape.ranks : 0;
    return {.unit_bytes = whole_pages(ProfileRecord::bytes(Columns(shape.ranks))),
            .units = units,
            .sure_units = units};
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
