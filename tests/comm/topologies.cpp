// Cartesian, graph and distributed graph topologies: what is asked for is there, on the new
// communicator and its duplicates, and neighbours agree with each other.
#include "check.hpp"

namespace {

// Each row of each dimension, and each point.
void parts(MPI_Comm comm, const std::vector<int>& dims, const std::vector<int>& periods,
           int dimensions, const int* coords) {
    const int own = rank_in(comm);
    for (int kept = 0; kept < dimensions; ++kept) {
        int remain[4] = {};
        remain[kept] = 1;
        MPI_Comm row;
        MPI_Cart_sub(comm, remain, &row);
        EXPECT(size_of(row) == dims[static_cast<std::size_t>(kept)]);
        EXPECT(rank_in(row) == coords[kept]);
        int row_dims, row_period, row_coord;
        MPI_Cart_get(row, 1, &row_dims, &row_period, &row_coord);
        EXPECT(row_dims == dims[static_cast<std::size_t>(kept)]);
        EXPECT(row_period == periods[static_cast<std::size_t>(kept)]);
        EXPECT(row_coord == coords[kept]);
        int sum;
        MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, row);
        MPI_Comm_free(&row);
    }
    int none[4] = {};
    MPI_Comm point;
    MPI_Cart_sub(comm, none, &point);
    EXPECT(size_of(point) == 1);
    int kind;
    MPI_Topo_test(point, &kind);
    EXPECT(kind == MPI_CART);
    MPI_Comm_free(&point);
}

void grids() {
    for (int dimensions = 0; dimensions <= 4; ++dimensions) {
        std::vector<int> dims(4), periods = {1, 0, 1, 0};
        int ranks = 1;
        if (dimensions > 0) {
            MPI_Dims_create(world_size, dimensions, dims.data());
            ranks = world_size;
        }
        MPI_Comm comm;
        EXPECT(MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims.data(), periods.data(), 1, &comm) ==
               MPI_SUCCESS);
        if (comm == MPI_COMM_NULL) {
            EXPECT(dimensions == 0 && world_rank != 0);
            continue;
        }
        EXPECT(size_of(comm) == ranks);
        int kind, count;
        MPI_Topo_test(comm, &kind);
        EXPECT(kind == MPI_CART);
        MPI_Cartdim_get(comm, &count);
        EXPECT(count == dimensions);
        MPI_Comm twin;
        MPI_Comm_dup(comm, &twin);
        int got_dims[4], got_periods[4], coords[4], other[4];
        MPI_Cart_get(twin, dimensions, got_dims, got_periods, coords);
        const int own = rank_in(comm);
        for (int i = 0; i < dimensions; ++i) {
            EXPECT(got_dims[i] == dims[static_cast<std::size_t>(i)]);
            EXPECT(got_periods[i] == periods[static_cast<std::size_t>(i)]);
            int below, above;
            MPI_Cart_shift(twin, i, 1, &below, &above);
            // Tell the one above; hear from the one below.
            int said = -1;
            MPI_Sendrecv(&own, 1, MPI_INT, above, i, &said, 1, MPI_INT, below, i, twin,
                         MPI_STATUS_IGNORE);
            EXPECT(said == below || (below == MPI_PROC_NULL && said == -1));
            EXPECT((below == MPI_PROC_NULL) == (got_periods[i] == 0 && coords[i] == 0));
            MPI_Cart_shift(twin, i, 0, &below, &above);
            EXPECT(below == own && above == own);
        }
        for (int rank = 0; rank < ranks; ++rank) {
            int back;
            MPI_Cart_coords(comm, rank, dimensions, other);
            MPI_Cart_rank(comm, other, &back);
            EXPECT(back == rank);
        }
        parts(comm, dims, periods, dimensions, coords);
        MPI_Comm_free(&twin);
        MPI_Comm_free(&comm);
    }
}

void wrong_grids() {
    MPI_Comm comm;
    int dims[2] = {world_size + 1, 1}, periods[2] = {}, value;
    EXPECT(class_of(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm)) == MPI_ERR_DIMS);
    EXPECT(comm == MPI_COMM_NULL);
    dims[0] = 0;
    EXPECT(class_of(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm)) == MPI_ERR_DIMS);
    EXPECT(class_of(MPI_Cartdim_get(MPI_COMM_WORLD, &value)) == MPI_ERR_TOPOLOGY);
    EXPECT(class_of(MPI_Graphdims_get(MPI_COMM_WORLD, &value, &value)) == MPI_ERR_TOPOLOGY);
    EXPECT(class_of(MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &value, &value, &value)) ==
           MPI_ERR_TOPOLOGY);
    dims[0] = world_size;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm);
    int outside[2] = {0, 1};
    EXPECT(class_of(MPI_Cart_rank(comm, outside, &value)) == MPI_ERR_ARG);
    EXPECT(class_of(MPI_Cart_shift(comm, 2, 1, &value, &value)) == MPI_ERR_ARG);
    EXPECT(class_of(MPI_Cart_coords(comm, world_size, 2, outside)) == MPI_ERR_RANK);
    MPI_Cart_map(comm, 2, dims, periods, &value);
    EXPECT(value == world_rank);
    MPI_Comm_free(&comm);
    int three[1] = {7};
    EXPECT(class_of(MPI_Dims_create(6, 1, three)) == MPI_ERR_DIMS);
    MPI_Topo_test(MPI_COMM_WORLD, &value);
    EXPECT(value == MPI_UNDEFINED);
}

// A ring of all but the last rank, if there are three.
void graphs() {
    const int nodes = world_size > 2 ? world_size - 1 : world_size;
    std::vector<int> index, edges;
    for (int r = 0; r < nodes; ++r) {
        edges.push_back((r + 1) % nodes);
        edges.push_back((r + nodes - 1) % nodes);
        index.push_back(2 * (r + 1));
    }
    int mapped;
    MPI_Graph_map(MPI_COMM_WORLD, nodes, index.data(), edges.data(), &mapped);
    EXPECT(mapped == (world_rank < nodes ? world_rank : MPI_UNDEFINED));
    MPI_Comm comm;
    EXPECT(MPI_Graph_create(MPI_COMM_WORLD, nodes, index.data(), edges.data(), 0, &comm) ==
           MPI_SUCCESS);
    EXPECT((comm == MPI_COMM_NULL) == (world_rank >= nodes));
    if (comm != MPI_COMM_NULL) {
        MPI_Comm twin;
        MPI_Comm_dup(comm, &twin);
        int kind, got_nodes, got_edges;
        MPI_Topo_test(twin, &kind);
        EXPECT(kind == MPI_GRAPH);
        MPI_Graphdims_get(twin, &got_nodes, &got_edges);
        EXPECT(got_nodes == nodes && got_edges == 2 * nodes);
        std::vector<int> i(index.size()), e(edges.size());
        MPI_Graph_get(twin, got_nodes, got_edges, i.data(), e.data());
        EXPECT(i == index && e == edges);
        for (int r = 0; r < nodes; ++r) {
            int count, neighbours[2];
            MPI_Graph_neighbors_count(twin, r, &count);
            EXPECT(count == 2);
            MPI_Graph_neighbors(twin, r, 2, neighbours);
            EXPECT(neighbours[0] == (r + 1) % nodes && neighbours[1] == (r + nodes - 1) % nodes);
        }
        int count;
        MPI_Comm_set_errhandler(twin, MPI_ERRORS_RETURN);
        EXPECT(class_of(MPI_Graph_neighbors_count(twin, nodes, &count)) == MPI_ERR_RANK);
        MPI_Comm_free(&twin);
        MPI_Comm_free(&comm);
    }
    index[0] = -1;
    EXPECT(class_of(MPI_Graph_create(MPI_COMM_WORLD, nodes, index.data(), edges.data(), 0,
                                     &comm)) == MPI_ERR_ARG);
    index[0] = 2;
    edges[0] = nodes;
    EXPECT(class_of(MPI_Graph_create(MPI_COMM_WORLD, nodes, index.data(), edges.data(), 0,
                                     &comm)) == MPI_ERR_RANK);
    EXPECT(MPI_Graph_create(MPI_COMM_WORLD, 0, nullptr, nullptr, 0, &comm) == MPI_SUCCESS);
    EXPECT(comm == MPI_COMM_NULL);
}

// Edges from every rank r to r + 1, r + 2 and r + 3 (modulo the size), weight 10 · from + to.
int weight(int from, int to) {
    return 10 * from + to;
}

void check_distributed(MPI_Comm comm, bool weighted) {
    int in, out, has_weights;
    MPI_Dist_graph_neighbors_count(comm, &in, &out, &has_weights);
    EXPECT(in == 3 && out == 3 && (has_weights != 0) == weighted);
    int sources[3], source_weights[3] = {}, destinations[3], weights[3] = {};
    MPI_Dist_graph_neighbors(comm, in, sources, weighted ? source_weights : MPI_UNWEIGHTED, out,
                             destinations, weighted ? weights : MPI_UNWEIGHTED);
    std::vector<int> expected_in, expected_out;
    for (int step = 1; step <= 3; ++step) {
        expected_out.push_back((world_rank + step) % world_size);
        expected_in.push_back((world_rank + 3 * world_size - step) % world_size);
    }
    for (int i = 0; i < 3; ++i) {
        if (weighted) {
            EXPECT(source_weights[i] == weight(sources[i], world_rank));
            EXPECT(weights[i] == weight(world_rank, destinations[i]));
        }
    }
    std::sort(expected_in.begin(), expected_in.end());
    std::sort(expected_out.begin(), expected_out.end());
    std::sort(sources, sources + 3);
    std::sort(destinations, destinations + 3);
    EXPECT(std::equal(sources, sources + 3, expected_in.begin()));
    EXPECT(std::equal(destinations, destinations + 3, expected_out.begin()));
}

void distributed_graphs() {
    for (const bool weighted : {true, false}) {
        int sources[3], destinations[3], source_weights[3], weights[3];
        for (int i = 0; i < 3; ++i) {
            sources[i] = (world_rank + 3 * world_size - 1 - i) % world_size;
            destinations[i] = (world_rank + 1 + i) % world_size;
            source_weights[i] = weight(sources[i], world_rank);
            weights[i] = weight(world_rank, destinations[i]);
        }
        MPI_Comm comm;
        EXPECT(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, sources,
                                              weighted ? source_weights : MPI_UNWEIGHTED, 3,
                                              destinations, weighted ? weights : MPI_UNWEIGHTED,
                                              MPI_INFO_NULL, 0, &comm) == MPI_SUCCESS);
        int kind;
        MPI_Topo_test(comm, &kind);
        EXPECT(kind == MPI_DIST_GRAPH);
        check_distributed(comm, weighted);
        MPI_Comm twin;
        MPI_Comm_dup(comm, &twin);
        MPI_Comm_free(&comm);
        check_distributed(twin, weighted);
        MPI_Comm_free(&twin);

        // Every rank specifies the edges of the next one but one; then rank 0 all of them.
        const int other = (world_rank + 2) % world_size, degree = 3;
        for (int i = 0; i < 3; ++i) {
            destinations[i] = (other + 1 + i) % world_size;
            weights[i] = weight(other, destinations[i]);
        }
        EXPECT(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &other, &degree, destinations,
                                     weighted ? weights : MPI_UNWEIGHTED, MPI_INFO_NULL, 1,
                                     &comm) == MPI_SUCCESS);
        check_distributed(comm, weighted);
        MPI_Comm_free(&comm);
        std::vector<int> all, degrees, ends, all_weights;
        if (world_rank == 0) {
            for (int r = 0; r < world_size; ++r) {
                all.push_back(r);
                degrees.push_back(3);
                for (int i = 1; i <= 3; ++i) {
                    ends.push_back((r + i) % world_size);
                    all_weights.push_back(weight(r, ends.back()));
                }
            }
        }
        int* given = world_rank == 0 ? all_weights.data() : MPI_WEIGHTS_EMPTY;
        MPI_Dist_graph_create(MPI_COMM_WORLD, static_cast<int>(all.size()), all.data(),
                              degrees.data(), ends.data(), weighted ? given : MPI_UNWEIGHTED,
                              MPI_INFO_NULL, 0, &comm);
        check_distributed(comm, weighted);
        MPI_Comm_free(&comm);
    }
    MPI_Comm comm;
    const int beyond = world_size;
    EXPECT(class_of(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &beyond, MPI_UNWEIGHTED, 0,
                                                   nullptr, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                                   &comm)) == MPI_ERR_RANK);
    EXPECT(class_of(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, -1, nullptr, MPI_UNWEIGHTED, 0,
                                                   nullptr, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                                   &comm)) == MPI_ERR_ARG);
}

} // namespace

int main(int argc, char** argv) {
    start(&argc, &argv);
    grids();
    wrong_grids();
    graphs();
    distributed_graphs();
    return finish();
}
