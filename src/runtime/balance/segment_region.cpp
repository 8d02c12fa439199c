#include "runtime/balance/load_table.hpp"

namespace warren::balance {

namespace {

node::Extent extent_of_loads(const node::JobShape& shape) {
    return {.unit_bytes = LoadTable::bytes(shape.ranks),
            .units = 1,
            .sure_units = shape.fibres ? 1U : 0U};
}
WARREN_REGION(loads, {.number = loads.number, .name = "loads", .extent = extent_of_loads});

} // namespace

} // namespace warren::balance
