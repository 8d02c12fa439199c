// make_darray: one process's part of an array that is distributed over a grid of processes.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "mpi/datatype/construct.hpp"

namespace warren::datatype {

namespace {

// The part that a process has of one dimension: `blocks` blocks of `length` elements, each `period`
// elements after the one before, and then a last one of `rest`; the first begins at `start`.
struct Share {
    MPI_Count start = 0;
    MPI_Count blocks = 0;
    MPI_Count length = 0;
    MPI_Count period = 0;
    MPI_Count rest = 0;
};

Error share_of(int dimension, MPI_Count elements, int distribution, int argument, int processes,
               int coordinate, Share& share) {
    const auto refused = [&](const char* why) {
        return fail(MPI_ERR_ARG, "dimension %d: %lld elements on %d processes, argument %d: %s",
                    dimension, static_cast<long long>(elements), processes, argument, why);
    };
    switch (distribution) {
    case MPI_DISTRIBUTE_NONE:
        if (processes != 1) {
            return refused("what is not distributed needs exactly 1 process");
        }
        share = {.blocks = 1, .length = elements};
        return {};
    case MPI_DISTRIBUTE_BLOCK: {
        const MPI_Count length = argument == MPI_DISTRIBUTE_DFLT_DARG
                                     ? (elements + processes - 1) / processes
                                     : argument;
        if (length < 1 || length > elements || length * processes < elements) {
            return refused("blocks of that size, one per process, are not the array");
        }
        share.start = std::min(length * coordinate, elements);
        share.blocks = 1;
        share.length = std::min(length, elements - share.start);
        return {};
    }
    case MPI_DISTRIBUTE_CYCLIC: {
        const MPI_Count length = argument == MPI_DISTRIBUTE_DFLT_DARG ? 1 : argument;
        if (length < 1) {
            return refused("blocks need at least 1 element");
        }
        share.start = std::min(length * coordinate, elements);
        share.length = length;
        share.period = length * processes;
        const MPI_Count left = elements - share.start; // from the first block on
        share.blocks = left / share.period;
        share.rest = std::min(left % share.period, length);
        return {};
    }
    default:
        return fail(MPI_ERR_ARG,
                    "distribution %d of dimension %d is none of MPI_DISTRIBUTE_BLOCK, _CYCLIC, "
                    "_NONE",
                    distribution, dimension);
    }
}

// The share's elements, each a `row`, `stride` bytes apart; from where the share begins.
Error rows(const Share& share, MPI_Count stride, const Datatype& row, Draft& draft) {
    if (share.blocks <= 1 && share.rest == 0) {
        return make_vector(share.blocks * share.length, 1, stride, row, draft);
    }
    MPI_Count period = 0;
    MPI_Count behind = 0;
    if (Error error = multiply(share.period, stride, "block period", period)) {
        return error;
    }
    if (Error error = multiply(share.blocks, period, "array of", behind)) {
        return error;
    }
    Draft block;
    Draft blocks;
    Draft rest;
    if (Error error = make_vector(share.length, 1, stride, row, block)) {
        return error;
    }
    if (Error error = make_vector(share.blocks, 1, period, block.type, blocks)) {
        return error;
    }
    if (Error error = make_vector(share.rest, 1, stride, row, rest)) {
        return error;
    }
    const Datatype* const types[] = {&blocks.type, &rest.type};
    const MPI_Count places[] = {0, behind};
    return make_struct(2, {.same = 1}, {.values = places}, types, draft);
}

Error check_grid(int size, int rank, int dimensions, const int processes[]) {
    if (size < 1 || rank < 0 || rank >= size) {
        return fail(MPI_ERR_ARG, "rank %d of %d processes does not exist", rank, size);
    }
    if (dimensions < 1) {
        return fail(MPI_ERR_ARG, "ndims = %d is not positive", dimensions);
    }
    MPI_Count product = 1;
    for (int i = 0; i < dimensions; ++i) {
        if (processes[i] < 1) {
            return fail(MPI_ERR_ARG, "dimension %d has %d processes", i, processes[i]);
        }
        product = std::min<MPI_Count>(product * processes[i], std::numeric_limits<int>::max());
    }
    if (product != size) {
        return fail(MPI_ERR_ARG, "the grid's processes, the product of array_of_psizes, aren't %d",
                    size);
    }
    return {};
}

} // namespace

Error make_darray(const Grid& grid, const Numbers& sizes, const int distributions[],
                  const int arguments[], int order, const Datatype& old_type, Draft& draft) {
    const int dimensions = grid.dimensions;
    if (Error error = check_grid(grid.size, grid.rank, dimensions, grid.processes)) {
        return error;
    }
    if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN) {
        return fail(MPI_ERR_ARG, "order %d is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order);
    }
    // The grid is in row-major order, whatever the array's order.
    std::vector<int> coordinates(static_cast<std::size_t>(dimensions));
    int rank = grid.rank;
    for (int i = dimensions - 1; i >= 0; --i) {
        coordinates[static_cast<std::size_t>(i)] = rank % grid.processes[i];
        rank /= grid.processes[i];
    }
    // From the dimension whose elements are neighbours outwards.
    Draft inner;
    make_duplicate(old_type, inner);
    MPI_Count stride = old_type.extent; // of one element of the dimension
    MPI_Count offset = 0;
    for (int i = 0; i < dimensions; ++i) {
        const int dimension = order == MPI_ORDER_C ? dimensions - 1 - i : i;
        const MPI_Count size = sizes[dimension];
        if (size < 1) {
            return fail(MPI_ERR_ARG, "dimension %d has %lld elements", dimension,
                        static_cast<long long>(size));
        }
        Share share;
        if (Error error = share_of(dimension, size, distributions[dimension], arguments[dimension],
                                   grid.processes[dimension],
                                   coordinates[static_cast<std::size_t>(dimension)], share)) {
            return error;
        }
        Draft outer;
        if (Error error = rows(share, stride, inner.type, outer)) {
            return error;
        }
        MPI_Count skipped = 0;
        if (Error error = multiply(share.start, stride, "start", skipped)) {
            return error;
        }
        if (__builtin_add_overflow(offset, skipped, &offset)) {
            return fail(MPI_ERR_VALUE_TOO_LARGE, "the process's part begins beyond 64 bits");
        }
        if (Error error = multiply(size, stride, "size", stride)) {
            return error;
        }
        inner = std::move(outer);
    }
    Draft placed;
    if (Error error = make_indexed(1, {.same = 1}, {.same = offset}, 1, inner.type, placed)) {
        return error;
    }
    return make_resized(placed.type, 0, stride, draft);
}

} // namespace warren::datatype
