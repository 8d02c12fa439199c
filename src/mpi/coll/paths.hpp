// Paths: how the data of a blocking collective operation moves, by its size, the number of ranks,
// and whether they share processors. One table has all limits.
//
// All ranks of a communicator choose alike, since the inputs of a choice are the same everywhere.
// Short blocks are the exception: they take part in the operations of the staging path, and each
// rank decides for itself.
// Thread rule: under the rank's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

#include "mpi/coll/slot_member.hpp"
#include "mpi/coll/slot_pool.hpp"
#include "mpi/coll/staging.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/coll/tuning.hpp"

namespace warren::coll {

enum class Path : std::uint8_t {
    lines,        // in the lines of the collective slot (small_collectives.hpp)
    short_blocks, // as staging, for short blocks without gaps (short_blocks.hpp)
    direct,       // from buffer to buffer, for ranks of one address space (shared_direct.hpp)
    staging,      // through staging areas (shared_data.hpp)
    messages      // steps of an algorithm (choice.hpp)
};

// How a communicator's ranks are on the node: the columns of the table.
enum class Shape : std::uint8_t {
    pair,         // two ranks, each with a processor
    few,          // up to flat_ranks, each with a processor
    many,         // more, each with a processor
    crowded_pair, // two ranks that share processors with others
    crowded,      // more ranks that share processors
    crowded_many, // direct_many_ranks or more that share processors
    fibre_pair,   // two ranks that are fibres
    fibres,       // more ranks that are fibres
    count
};

// Limits of one operation's paths, in bytes of a rank's contribution, or of what two ranks
// exchange. A call takes the first path whose limit it keeps, else messages.
struct PathLimits {
    MPI_Count lines_to; // -1: never, as below
    MPI_Count short_to;
    // By shape, for ranks of one address space. `direct_per_fibre`: at least this times the number
    // of fibres; direct_of_all: the limit for fibres is of what all ranks exchange.
    MPI_Count direct_from[static_cast<std::size_t>(Shape::count)];
    MPI_Count direct_per_fibre;
    // By shape; the last is of all crowded ones. `staging_to_in_one_space`: of a pair of one
    // address space, whose messages can be direct as well.
    MPI_Count staging_to[static_cast<std::size_t>(Shape::crowded_pair) + 1];
    MPI_Count staging_to_in_one_space;
};
inline constexpr MPI_Count direct_of_all = -1;

namespace path_table {

inline constexpr MPI_Count any = std::numeric_limits<MPI_Count>::max();
inline constexpr MPI_Count no = any; // of direct_from
inline constexpr MPI_Count k = 1024;
// Constants of tuning.hpp and others, as short as columns are.
inline constexpr MPI_Count line = line_data_bytes;
inline constexpr MPI_Count blk = short_block_bytes;
inline constexpr MPI_Count two = direct_pair_from_bytes;
inline constexpr MPI_Count own = direct_from_bytes;
inline constexpr MPI_Count crd = direct_crowded_from_bytes;
inline constexpr MPI_Count all = direct_of_all;

// By Tag; columns of direct_from by Shape.
//  * Two ranks' large blocks go by messages: pair rings and bounce buffers are as fast as staging.
//    In a reduction, one copy is saved.
//  * Of an allreduce, neither of two ranks that have processors should write where the other one
//    has just read.
//  * Fibres' switches cost little: measured with 4 to 256 fibres on two processors. In a reduction
//    each asks all others where their operands are. Of an all-to-all, staging would keep what all
//    move in the caches.
//  * In a scan, each rank combines what all before it have.
// clang-format off
inline constexpr PathLimits limits[] = {
    // lines     direct from: two, few, many;               staging to: two, few,
    // | blocks  crowded: two, more, most; fibres: two, more (per fibre)  many, crowded; one space
    {  -1,  -1, { no,  no,  no,  no,  no,  no,  no,   no},   0, { -1,  -1,  -1,  -1}, any},
    {line,  -1, { no,  no,  no,  no,  no,  no,  no,   no},   0, { -1,  -1,  -1,  -1}, any}, // barrier
    {line, blk, { no, own, own,  no, crd, crd,  no, 16*k},   0, {  k, any, any, any}, any}, // bcast
    {  -1, blk, { no, own, own,  no, crd, crd,  no,  4*k},   0, {  k, any, any, any}, any}, // gather
    {  -1, blk, { no, own, own,  no, crd, crd,  no,    k},  16, {  k, any, any, any}, any}, // scatter
    {  -1, blk, { no, own, own,  no, crd, crd,  no,    k},  16, {any, any, any, any}, own}, // allgather
    {  -1, blk, { no, own, own,  no, crd,   0,  no, 16*k}, all, {any, any, any, any}, own}, // alltoall
    {line, blk, {two, own, own, crd, crd, crd, 2*k,  2*k},  64, {any, any, any, any}, any}, // reduce
    {line, blk, { no, own, own, crd, crd, crd, 4*k,  4*k}, 128, {any, any, any, any}, any}, // allreduce
    {  -1,  -1, { no,  no,  no,  no,  no,  no,  no,   no},   0, {8*k, any, any, any}, any}, // reduce_scatter
    {  -1,  -1, { no,  no,  no,  no,  no,  no,  no,   no},   0, {any, any,   k, 4*k}, any}, // scan
};
// clang-format on
static_assert(std::size(limits) == static_cast<std::size_t>(Tag::scan) + 1);

} // namespace path_table

// Whether all ranks of the communicator are of this process; found out once.
bool in_one_space(const Rank& rank, comm::Communicator& communicator);

// As choose(), for what takes neither lines nor short blocks.
Path choose_for_large(Tag operation, MPI_Count bytes, const Rank& rank,
                      comm::Communicator& communicator);

// `bytes` > 0, except for a barrier. `solid()`: whether this rank's blocks have no gaps, and fit
// ShortBlocks. (Inline, as the operation is a constant at each caller: what is left of the table
// are its limits.)
template <typename Solid>
[[gnu::always_inline]] inline Path choose(Tag operation, MPI_Count bytes, const Rank& rank,
                                          comm::Communicator& communicator, const Solid& solid) {
    const PathLimits& limits = path_table::limits[static_cast<std::size_t>(operation)];
    if (limits.lines_to >= 0 && bytes <= limits.lines_to && slot_pool::has_slot(communicator))
        [[likely]] {
        return Path::lines;
    }
    const int ranks = communicator.peers(); // intercommunicators have no slot
    // Blocks that don't fit lines need the small staging area, which exists from its first use.
    if (limits.short_to >= 0 && bytes <= limits.short_to && bytes > 0 && ranks != 1 &&
        slot_pool::has_slot(communicator) && rank.short_blocks && ranks <= flat_ranks &&
        (bytes * ranks <= line_data_bytes ||
         communicator.place.staging[static_cast<std::size_t>(StagingKind::small)] >=
             staging::first) &&
        solid()) {
        return Path::short_blocks;
    }
    return choose_for_large(operation, bytes, rank, communicator);
}

} // namespace warren::coll
