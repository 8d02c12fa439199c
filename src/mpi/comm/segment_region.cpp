#include "mpi/comm/context_ids.hpp"
#include "mpi/comm/rank_table.hpp"

namespace warren::comm {

namespace {

node::Extent extent_of_contexts(const node::JobShape&) {
    return {.unit_bytes = sizeof(ContextEntry), .units = context_limit, .sure_units = 0};
}
WARREN_REGION(contexts,
              {.number = contexts.number, .name = "contexts", .extent = extent_of_contexts});

node::Extent extent_of_context_stock(const node::JobShape&) {
    return {.unit_bytes = sizeof(ContextStock), .units = 1, .sure_units = 1};
}
void initialise_context_stock(std::byte* memory, const node::JobShape&) {
    reinterpret_cast<ContextStock*>(memory)->next.store(ContextIds::first_dynamic,
                                                        std::memory_order_relaxed);
}
WARREN_REGION(context_stock, {.number = context_stock.number,
                              .name = "free contexts",
                              .extent = extent_of_context_stock,
                              .initialise = initialise_context_stock});

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
