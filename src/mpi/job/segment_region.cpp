#include "mpi/job/context_ids.hpp"
#include "mpi/job/mpiexec_bootstrap.hpp"
#include "mpi/job/node_map.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/job/world_identity.hpp"
#include "mpi/job/write_log.hpp"

#include <sys/random.h>

namespace warren::node {

namespace {

Extent extent_of_slots(const JobShape& shape) {
    return {.unit_bytes = sizeof(RankSlot), .units = shape.ranks, .sure_units = shape.ranks};
}
void initialise_slots(std::byte* memory, const JobShape& shape) {
    auto* slots = reinterpret_cast<RankSlot*>(memory);
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
        slots[rank].process = rank;
    }
}
WARREN_REGION(rank_slots, {.number = rank_slots.number,
                           .name = "rank slots",
                           .extent = extent_of_slots,
                           .initialise = initialise_slots});

Extent extent_of_contexts(const JobShape&) {
    return {.unit_bytes = sizeof(ContextEntry), .units = context_limit, .sure_units = 0};
}
WARREN_REGION(contexts,
              {.number = contexts.number, .name = "contexts", .extent = extent_of_contexts});

Extent extent_of_context_stock(const JobShape&) {
    return {.unit_bytes = sizeof(ContextStock), .units = 1, .sure_units = 1};
}
void initialise_context_stock(std::byte* memory, const JobShape&) {
    reinterpret_cast<ContextStock*>(memory)->next.store(ContextIds::first_dynamic,
                                                        std::memory_order_relaxed);
}
WARREN_REGION(context_stock, {.number = context_stock.number,
                              .name = "free contexts",
                              .extent = extent_of_context_stock,
                              .initialise = initialise_context_stock});

Extent extent_of_job_counts(const JobShape&) {
    return {.unit_bytes = sizeof(JobCounts), .units = 1, .sure_units = 1};
}
WARREN_REGION(job_counts,
              {.number = job_counts.number, .name = "job counts", .extent = extent_of_job_counts});

Extent extent_of_card_lengths(const JobShape& shape) {
    return {.unit_bytes = sizeof(std::atomic<std::uint32_t>),
            .units = shape.ranks,
            .sure_units = shape.ranks};
}
WARREN_REGION(card_lengths, {.number = card_lengths.number,
                             .name = "lengths of cards",
                             .extent = extent_of_card_lengths});

Extent extent_of_cards(const JobShape& shape) {
    return {.unit_bytes = card_bytes, .units = shape.ranks, .sure_units = 0};
}
WARREN_REGION(cards, {.number = cards.number, .name = "cards", .extent = extent_of_cards});

Extent extent_of_node_place(const JobShape&) {
    return {.unit_bytes = sizeof(NodePlace), .units = 1, .sure_units = 1};
}
void initialise_node_place(std::byte* memory, const JobShape& shape) {
    auto& place = *reinterpret_cast<NodePlace*>(memory);
    place.nodes = shape.nodes;
    place.world_size = shape.ranks; // of one node; the launcher of several stores what is right
}
WARREN_REGION(node_place, {.number = node_place.number,
                           .name = "place of the node",
                           .extent = extent_of_node_place,
                           .initialise = initialise_node_place});

Extent extent_of_first_ranks(const JobShape& shape) {
    const std::uint64_t units = shape.nodes > 1 ? std::uint64_t{shape.nodes} + 1 : 0;
    return {.unit_bytes = sizeof(std::uint32_t), .units = units, .sure_units = units};
}
WARREN_REGION(first_ranks, {.number = first_ranks.number,
                            .name = "first ranks of nodes",
                            .extent = extent_of_first_ranks});

Extent extent_of_world_identity(const JobShape&) {
    return {.unit_bytes = sizeof(WorldIdentity), .units = 1, .sure_units = 1};
}
void initialise_world_identity(std::byte* memory, const JobShape&) {
    auto& identity = *reinterpret_cast<WorldIdentity*>(memory);
    if (getrandom(&identity.number, sizeof identity.number, GRND_NONBLOCK) !=
            static_cast<ssize_t>(sizeof identity.number) ||
        identity.number == 0) {
        // Early at boot: the address is as random as this kernel makes it.
        identity.number = reinterpret_cast<std::uintptr_t>(memory) ^ std::uint64_t{0x77617272656e};
    }
}
WARREN_REGION(world_identity, {.number = world_identity.number,
                               .name = "identity of the world",
                               .extent = extent_of_world_identity,
                               .initialise = initialise_world_identity});

Extent extent_of_write_entries(const JobShape& shape) {
    return {.unit_bytes = write_entry_bytes,
            .units = write_entry_unit(shape.ranks, 0),
            .sure_units = 0};
}
WARREN_REGION(write_entries, {.number = write_entries.number,
                              .name = "entries of file writes",
                              .extent = extent_of_write_entries});

} // namespace

} // namespace warren::node
