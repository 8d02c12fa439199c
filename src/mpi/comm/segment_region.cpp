#include "mpi/comm/rank_table.hpp"

namespace warren::comm {

namespace {

// Tables of rank maps take address space only until they are made. What does not fit any more is
// made by every rank for itself.
constexpr std::uint64_t table_bytes_limit = 4 << 20;
constexpr std::uint64_t table_bytes_per_rank = 16 << 10;

node::Extent extent_of_tables(const node::JobShape& shape) {
    return {.unit_bytes = table_bytes_limit + shape.ranks * table_bytes_per_rank,
            .units = 1,
            .sure_units = 0};
}
WARREN_REGION(rank_tables, {.number = rank_tables.number,
                            .name = "shelf of rank tables",
                            .extent = extent_of_tables});

} // namespace

} // namespace warren::comm
