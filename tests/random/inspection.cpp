// Steps that ask communicators what they are: comparisons, names, attributes, topologies.
#include "program.hpp"

#include <algorithm>

namespace programs {

namespace {

using Topology = Communicator::Topology;

void compare(const Communicator& a, const Communicator& b, int rank) {
    int result = -1;
    MUST(MPI_Comm_compare(a.handle, b.handle, &result));
    int expected = MPI_UNEQUAL;
    if (&a == &b) {
        expected = MPI_IDENT;
    } else if (a.inter == b.inter) {
        const View one(a, rank), other(b, rank);
        const auto sorted = [](Ranks list) {
            std::sort(list.begin(), list.end());
            return list;
        };
        if (one.mine() == other.mine() && one.others() == other.others()) {
            expected = MPI_CONGRUENT;
        } else if (sorted(one.mine()) == sorted(other.mine()) &&
                   sorted(one.others()) == sorted(other.others())) {
            expected = MPI_SIMILAR;
        }
    }
    if (result != expected) {
        fail("MPI_Comm_compare with %s: expected %d, got %d", b.describe().c_str(), expected,
             result);
    }
}

void expect_list(const char* what, const std::vector<int>& got, const std::vector<int>& expected) {
    if (got != expected) {
        std::string text;
        for (const auto* list : {&expected, &got}) {
            text += list == &got ? "; got" : "expected";
            for (int value : *list) {
                text += " " + std::to_string(value);
            }
        }
        fail("%s: %s", what, text.c_str());
    }
}

void inspect_grid(Draw& draw, const View& view) {
    const Communicator& grid = view.of;
    const int dimensions = static_cast<int>(grid.dims.size());
    int got = -1;
    MUST(MPI_Cartdim_get(view.comm, &got));
    expect_list("MPI_Cartdim_get", {got}, {dimensions});
    std::vector<int> dims(grid.dims.size()), periods(dims), coordinates(dims), of_rank(dims);
    MUST(MPI_Cart_get(view.comm, dimensions, dims.data(), periods.data(), coordinates.data()));
    expect_list("MPI_Cart_get, dims", dims, grid.dims);
    expect_list("MPI_Cart_get, periods", periods, grid.periods);
    const int rank = draw.below(view.size());
    MUST(MPI_Cart_coords(view.comm, rank, dimensions, of_rank.data()));
    int weight = view.size();
    std::vector<int> expected(dims.size()), mine(dims.size());
    for (std::size_t d = 0; d < dims.size(); ++d) {
        weight /= dims[d];
        expected[d] = rank / weight % dims[d];
        mine[d] = view.me / weight % dims[d];
    }
    expect_list("MPI_Cart_get, coordinates", coordinates, mine);
    expect_list("MPI_Cart_coords", of_rank, expected);
    for (std::size_t d = 0; d < dims.size(); ++d) {
        of_rank[d] += periods[d] != 0 ? dims[d] * draw.between(-2, 2) : 0;
    }
    MUST(MPI_Cart_rank(view.comm, of_rank.data(), &got));
    expect_list("MPI_Cart_rank", {got}, {rank});
    if (dimensions > 0) {
        const int along = draw.below(dimensions);
        int neighbours[2] = {-7, -7};
        MUST(MPI_Cart_shift(view.comm, along, 1, &neighbours[0], &neighbours[1]));
        const Ranks& list = grid.sources[static_cast<std::size_t>(view.me)];
        expect_list("MPI_Cart_shift", {neighbours[0], neighbours[1]},
                    {list[static_cast<std::size_t>(2 * along)],
                     list[static_cast<std::size_t>(2 * along + 1)]});
    }
}

void inspect_topology(Draw& draw, const View& view) {
    const Communicator& comm = view.of;
    int status = -1;
    MUST(MPI_Topo_test(view.comm, &status));
    const int expected = comm.topology == Topology::grid    ? MPI_CART
                         : comm.topology == Topology::graph ? MPI_GRAPH
                         : comm.topology == Topology::edges ? MPI_DIST_GRAPH
                                                            : MPI_UNDEFINED;
    expect_list("MPI_Topo_test", {status}, {expected});
    if (comm.topology == Topology::grid) {
        inspect_grid(draw, view);
    } else if (comm.topology == Topology::graph) {
        const int rank = draw.below(view.size());
        const Ranks& neighbours = comm.sources[static_cast<std::size_t>(rank)];
        int count = -1;
        MUST(MPI_Graph_neighbors_count(view.comm, rank, &count));
        expect_list("MPI_Graph_neighbors_count", {count}, {static_cast<int>(neighbours.size())});
        Ranks got(neighbours.size() + 1);
        MUST(MPI_Graph_neighbors(view.comm, rank, count, got.data()));
        got.pop_back();
        expect_list("MPI_Graph_neighbors", got, neighbours);
    } else if (comm.topology == Topology::edges) {
        const auto me = static_cast<std::size_t>(view.me);
        int indegree = -1, outdegree = -1, weighted = -1;
        MUST(MPI_Dist_graph_neighbors_count(view.comm, &indegree, &outdegree, &weighted));
        expect_list("MPI_Dist_graph_neighbors_count", {indegree, outdegree},
                    {static_cast<int>(comm.sources[me].size()),
                     static_cast<int>(comm.destinations[me].size())});
        Ranks sources(comm.sources[me].size() + 1), destinations(comm.destinations[me].size() + 1);
        Ranks weights[2] = {sources, destinations};
        MUST(MPI_Dist_graph_neighbors(
            view.comm, indegree, sources.data(), weighted != 0 ? weights[0].data() : MPI_UNWEIGHTED,
            outdegree, destinations.data(), weighted != 0 ? weights[1].data() : MPI_UNWEIGHTED));
        sources.pop_back();
        destinations.pop_back();
        Ranks expected_sources = comm.sources[me], expected_destinations = comm.destinations[me];
        if (comm.edges_in_any_order) {
            for (Ranks* list :
                 {&sources, &destinations, &expected_sources, &expected_destinations}) {
                std::sort(list->begin(), list->end());
            }
        }
        expect_list("MPI_Dist_graph_neighbors, sources", sources, expected_sources);
        expect_list("MPI_Dist_graph_neighbors, destinations", destinations, expected_destinations);
    }
}

} // namespace

void inspect_communicators(Program& program, Draw& draw) {
    const CommPtr comm = program.any_communicator(draw);
    const CommPtr other = program.any_communicator(draw);
    const bool names = draw.one_in(3);
    program.at("inspection", comm.get());
    if (!program.executes() || comm->handle == MPI_COMM_NULL) {
        return;
    }
    const View view(*comm, program.rank());
    if (other->handle != MPI_COMM_NULL) {
        compare(*comm, *other, program.rank());
    }
    inspect_topology(program.own(), view);
    if (names && comm != program.live[0]) {
        const std::string name = "step " + std::to_string(program.step());
        char got[MPI_MAX_OBJECT_NAME];
        int length = -1;
        MUST(MPI_Comm_set_name(view.comm, name.c_str()));
        MUST(MPI_Comm_get_name(view.comm, got, &length));
        if (name != got || length != static_cast<int>(name.size())) {
            fail("MPI_Comm_get_name: expected %s, got %s", name.c_str(), got);
        }
        comm->attribute = program.step() * 100L + 1; // the same at all its members
        MUST(MPI_Comm_set_attr(view.comm, program.attribute_key,
                               reinterpret_cast<void*>(comm->attribute)));
    }
    void* value = nullptr;
    int found = 0;
    MUST(MPI_Comm_get_attr(view.comm, program.attribute_key, static_cast<void*>(&value), &found));
    if ((found != 0) != (comm->attribute != 0) ||
        (found != 0 && reinterpret_cast<long>(value) != comm->attribute)) {
        fail("MPI_Comm_get_attr: expected %ld, got %ld (flag %d)", comm->attribute,
             reinterpret_cast<long>(value), found);
    }
}

} // namespace programs
