// Topology: the virtual topology of a communicator (MPI chapter 8): a Cartesian grid, a graph that
// every process knows whole, or a distributed graph of which each knows its own edges.
//
// Neighbourhood collectives need the same of all three: `sources` and `destinations`, the
// own neighbours in the standard's order (grids: for each dimension the one below, then the one
// above, MPI_PROC_NULL beyond an edge that does not wrap). A rank may be there more than once. In a
// grid of 1 or 2 in a periodic dimension both neighbours are one process: what this rank sends to
// its lower neighbour arrives there as coming from the upper one, so positions 2d and 2d + 1 of a
// peer's sources belong to positions 2d + 1 and 2d of its destinations.
//
// Thread rule: immutable once made; shared by a communicator and its duplicates.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "mpi.h"

namespace warren::comm {

struct Topology {
    enum class Kind : std::uint8_t { grid, graph, distributed };

    explicit Topology(Kind what) : kind(what) {}

    Kind kind;
    std::vector<int> sources;      // that messages come from
    std::vector<int> destinations; // that messages go to

    // A grid: the last dimension varies fastest.
    std::vector<int> dims;
    std::vector<int> periods; // 0 or 1
    std::vector<int> coords;  // the own ones

    // A graph: edges of rank r end at index[r], as in MPI_Graph_create.
    std::vector<int> index;
    std::vector<int> edges;

    // A distributed graph, if weighted.
    bool weighted = false;
    std::vector<int> source_weights;
    std::vector<int> destination_weights;

    int dimensions() const { return static_cast<int>(dims.size()); }
};

// For a checked grid, and one rank of it.
Topology make_grid(int dimensions, const int dims[], const int periods[], int own_rank);
Topology make_graph(int nodes, const int index[], const int edges[], int own_rank);

// The coordinates of a rank of a grid, and back: MPI_PROC_NULL for coordinates beyond an edge that
// does not wrap.
void coordinates_of(const Topology& grid, int rank, int coords[]);
int rank_at(const Topology& grid, const int coords[]);
// The rank that is `steps` away along a dimension, or MPI_PROC_NULL.
int rank_along(const Topology& grid, int dimension, std::int64_t steps);

// The product of a grid's dimensions: how many ranks it has. MPI_ERR_DIMS: it is not positive, or
// more than `limit`.
Error grid_size(int dimensions, const int dims[], int limit, int* ranks);
// MPI_ERR_ARG, MPI_ERR_RANK: what cannot be a graph of `nodes` nodes.
Error check_graph(int nodes, const int index[], const int edges[]);

// MPI_Dims_create: fills in the dimensions that are 0, as close to each other as the divisors of
// what is left allow, in falling order: the largest less the smallest is least; among those the
// smallest is the largest, then the second smallest, and so on.
Error balance_dims(int nodes, int dimensions, int dims[]);

} // namespace warren::comm
