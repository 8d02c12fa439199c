// Grids.

#include "mpi/entry/topologies.hpp"

#include <algorithm>

#include "mpi/comm/topology.hpp"
#include "mpi/entry/new_communicator.hpp"

namespace warren::mpi {

using comm::Topology;

namespace {

// The communicator's grid, or an error.
Error grid_of(const comm::Communicator& comm, const Topology*& grid) {
    grid = comm.topology.get();
    if (grid == nullptr || grid->kind != Topology::Kind::grid) {
        return fail(MPI_ERR_TOPOLOGY, "the communicator has no Cartesian topology");
    }
    return {};
}

Error check_grid(const comm::Communicator& comm, int ndims, const int dims[], int* ranks) {
    if (comm.inter()) {
        return fail(MPI_ERR_COMM, "an intercommunicator has no topology");
    }
    if (ndims < 0) {
        return fail(MPI_ERR_DIMS, "ndims = %d is negative", ndims);
    }
    return comm::grid_size(ndims, dims, comm.size(), ranks);
}

Error null_array(const char* name) {
    return fail(MPI_ERR_ARG, "%s is a null pointer", name);
}

} // namespace

Error dims_create(int nnodes, int ndims, int dims[]) {
    if (ndims < 0) {
        return fail(MPI_ERR_DIMS, "ndims = %d is negative", ndims);
    }
    return comm::balance_dims(nnodes, ndims, dims);
}

Error topo_test(Context&, comm::Communicator& comm, int* status) {
    if (comm.topology == nullptr) {
        *status = MPI_UNDEFINED;
        return {};
    }
    switch (comm.topology->kind) {
    case Topology::Kind::grid:
        *status = MPI_CART;
        break;
    case Topology::Kind::graph:
        *status = MPI_GRAPH;
        break;
    case Topology::Kind::distributed:
        *status = MPI_DIST_GRAPH;
        break;
    }
    return {};
}

Error cart_create(Context& context, comm::Communicator& comm_old, int ndims, const int dims[],
                  const int periods[], int, MPI_Comm* comm_cart) {
    *comm_cart = MPI_COMM_NULL;
    int ranks = 0;
    if (Error error = check_grid(comm_old, ndims, dims, &ranks)) {
        return error;
    }
    if (comm_old.rank() >= ranks) {
        return {};
    }
    comm::Communicator* made = nullptr;
    if (Error error = make_of_first(context, comm_old, ranks, made)) {
        return error;
    }
    made->topology =
        std::make_shared<const Topology>(comm::make_grid(ndims, dims, periods, made->rank()));
    *comm_cart = context.communicators.handle_of(*made);
    return {};
}

Error cart_sub(Context& context, comm::Communicator& comm, const int remain_dims[],
               MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    const Topology* grid = nullptr;
    if (Error error = grid_of(comm, grid)) {
        return error;
    }
    if (remain_dims == nullptr && grid->dimensions() > 0) {
        return null_array("remain_dims");
    }
    std::vector<int> dims, periods;
    for (int i = 0; i < grid->dimensions(); ++i) {
        if (remain_dims[i] != 0) {
            dims.push_back(grid->dims[static_cast<std::size_t>(i)]);
            periods.push_back(grid->periods[static_cast<std::size_t>(i)]);
        }
    }
    // Ranks that agree in the coordinates that go, in the order of those that are kept.
    int colour = 0;
    int key = 0;
    for (int i = 0; i < grid->dimensions(); ++i) {
        const auto dimension = static_cast<std::size_t>(i);
        int& number = remain_dims[i] != 0 ? key : colour;
        number = number * grid->dims[dimension] + grid->coords[dimension];
    }
    comm::Communicator* made = nullptr;
    if (Error error = make_of_colour(context, comm, colour, key, made)) {
        return error;
    }
    made->topology = std::make_shared<const Topology>(
        comm::make_grid(static_cast<int>(dims.size()), dims.data(), periods.data(), made->rank()));
    *newcomm = context.communicators.handle_of(*made);
    return {};
}

Error cartdim_get(Context&, comm::Communicator& comm, int* ndims) {
    const Topology* grid = nullptr;
    if (Error error = grid_of(comm, grid)) {
        return error;
    }
    *ndims = grid->dimensions();
    return {};
}

Error cart_get(Context&, comm::Communicator& comm, int maxdims, int dims[], int periods[],
               int coords[]) {
    const Topology* grid = nullptr;
    if (Error error = grid_of(comm, grid)) {
        return error;
    }
    const auto given = static_cast<std::size_t>(std::clamp(maxdims, 0, grid->dimensions()));
    std::copy_n(grid->dims.begin(), given, dims);
    std::copy_n(grid->periods.begin(), given, periods);
    std::copy_n(grid->coords.begin(), given, coords);
    return {};
}

Error cart_rank(Context&, comm::Communicator& comm, const int coords[], int* rank) {
    const Topology* grid = nullptr;
    if (Error error = grid_of(comm, grid)) {
        return error;
    }
    if (coords == nullptr && grid->dimensions() > 0) {
        return null_array("coords");
    }
    const int found = comm::rank_at(*grid, coords);
    if (found == MPI_PROC_NULL) {
        for (std::size_t i = 0; i < grid->dims.size(); ++i) {
            if (grid->periods[i] == 0 && (coords[i] < 0 || coords[i] >= grid->dims[i])) {
                return fail(MPI_ERR_ARG, "coords[%zu] = %d is not in 0 … %d, and does not wrap", i,
                            coords[i], grid->dims[i] - 1);
            }
        }
    }
    *rank = found;
    return {};
}

Error cart_coords(Context&, comm::Communicator& comm, int rank, int maxdims, int coords[]) {
    const Topology* grid = nullptr;
    if (Error error = grid_of(comm, grid)) {
        return error;
    }
    if (rank < 0 || rank >= comm.size()) {
        return fail(MPI_ERR_RANK, "rank = %d is not in 0 … %d", rank, comm.size() - 1);
    }
    std::vector<int> all(grid->dims.size());
    comm::coordinates_of(*grid, rank, all.data());
    std::copy_n(all.begin(), std::clamp(maxdims, 0, grid->dimensions()), coords);
    return {};
}

Error cart_shift(Context&, comm::Communicator& comm, int direction, int disp, int* rank_source,
                 int* rank_dest) {
    const Topology* grid = nullptr;
    if (Error error = grid_of(comm, grid)) {
        return error;
    }
    if (direction < 0 || direction >= grid->dimensions()) {
        return fail(MPI_ERR_ARG, "direction = %d is not in 0 … %d", direction,
                    grid->dimensions() - 1);
    }
    *rank_source = comm::rank_along(*grid, direction, -std::int64_t{disp});
    *rank_dest = comm::rank_along(*grid, direction, disp);
    return {};
}

Error cart_map(Context&, comm::Communicator& comm, int ndims, const int dims[], const int[],
               int* newrank) {
    int ranks = 0;
    if (Error error = check_grid(comm, ndims, dims, &ranks)) {
        return error;
    }
    *newrank = comm.rank() < ranks ? comm.rank() : MPI_UNDEFINED;
    return {};
}

} // namespace warren::mpi
