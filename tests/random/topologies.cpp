// Steps that make communicators with virtual topologies.
#include "creation.hpp"

#include <algorithm>

namespace programs {

namespace {

// A product of at most `limit`.
std::vector<int> draw_dims(Draw& draw, int limit) {
    std::vector<int> dims;
    const int dimensions = draw.between(1, 3);
    for (int d = 0; d < dimensions; ++d) {
        dims.push_back(draw.between(1, std::max(1, limit)));
        limit /= dims.back();
    }
    draw.shuffle(dims);
    return dims;
}

void place_neighbours(Communicator& grid) {
    const int size = static_cast<int>(grid.groups[0].size());
    grid.sources.assign(static_cast<std::size_t>(size), {});
    for (int rank = 0; rank < size; ++rank) {
        int weight = size;
        for (std::size_t d = 0; d < grid.dims.size(); ++d) {
            weight /= grid.dims[d];
            const int place = rank / weight % grid.dims[d];
            for (int direction : {-1, 1}) {
                int to = place + direction;
                if (grid.periods[d] != 0) {
                    to = (to + grid.dims[d]) % grid.dims[d];
                }
                const bool out = to < 0 || to >= grid.dims[d];
                grid.sources[static_cast<std::size_t>(rank)].push_back(
                    out ? MPI_PROC_NULL : rank + (to - place) * weight);
            }
        }
    }
    grid.destinations = grid.sources;
}

} // namespace

void make_grid(Program& program, Draw& draw) {
    const CommPtr parent = program.any_intracommunicator(draw);
    const CommPtr made = model(program, "cart_create");
    const Ranks& group = parent->groups[0];
    made->topology = Communicator::Topology::grid;
    made->dims = draw_dims(draw, static_cast<int>(group.size()));
    int size = 1;
    for (int length : made->dims) {
        size *= length;
        made->periods.push_back(draw.one_in(2) && !(length < 3 && program.without("twins")) ? 1
                                                                                            : 0);
    }
    const int reorder = draw.one_in(4) ? 1 : 0;
    made->groups[0].assign(group.begin(), group.begin() + size);
    program.at(made->text, parent.get());
    MPI_Comm handle = MPI_COMM_NULL;
    if (mine(program, *parent)) {
        MUST(MPI_Cart_create(parent->handle, static_cast<int>(made->dims.size()), made->dims.data(),
                             made->periods.data(), reorder, &handle));
    }
    if (reorder != 0 && program.executes()) {
        learn(program, made, handle, group);
    }
    place_neighbours(*made);
    if (mine(program, *parent)) {
        adopt(program, made, handle);
    }
    add(program, made);
}

void make_subgrid(Program& program, Draw& draw) {
    std::vector<CommPtr> grids;
    for (const CommPtr& comm : program.live) {
        if (comm->topology == Communicator::Topology::grid) {
            grids.push_back(comm);
        }
    }
    if (grids.empty()) {
        make_grid(program, draw);
        return;
    }
    const CommPtr parent = draw.of(grids);
    std::vector<int> kept, lost_weights, lost_dims, dims, periods;
    int weight = static_cast<int>(parent->groups[0].size()), slices = 1;
    std::vector<int> colours(parent->groups[0].size());
    for (std::size_t d = 0; d < parent->dims.size(); ++d) {
        weight /= parent->dims[d];
        kept.push_back(draw.below(2));
        if (kept[d] != 0) {
            dims.push_back(parent->dims[d]);
            periods.push_back(parent->periods[d]);
            continue;
        }
        for (std::size_t rank = 0; rank < colours.size(); ++rank) {
            colours[rank] =
                colours[rank] * parent->dims[d] + static_cast<int>(rank) / weight % parent->dims[d];
        }
        slices *= parent->dims[d];
    }
    program.at("cart_sub", parent.get());
    MPI_Comm handle = MPI_COMM_NULL;
    const bool member = mine(program, *parent);
    if (member) {
        MUST(MPI_Cart_sub(parent->handle, kept.data(), &handle));
    }
    const int most = draw.between(1, 3); // all are made, not all are used
    for (int slice = 0; slice < slices; ++slice) {
        const CommPtr made = model(program, "cart_sub");
        made->topology = Communicator::Topology::grid;
        made->dims = dims;
        made->periods = periods;
        for (std::size_t rank = 0; rank < colours.size(); ++rank) {
            if (colours[rank] == slice) {
                made->groups[0].push_back(parent->groups[0][rank]);
            }
        }
        place_neighbours(*made);
        const bool in = place_of(made->groups[0], program.rank()) >= 0;
        if (member && in) {
            adopt(program, made, handle);
        }
        if (slice < most) {
            add(program, made);
        } else if (member && in) {
            MUST(MPI_Comm_free(&made->handle));
        }
    }
}

// Every edge both ways, as neighbourhood collectives on graphs need it.
void make_graph(Program& program, Draw& draw) {
    const CommPtr parent = program.any_intracommunicator(draw);
    const CommPtr made = model(program, "graph_create");
    const Ranks& group = parent->groups[0];
    const int size = draw.between(1, static_cast<int>(group.size()));
    made->topology = Communicator::Topology::graph;
    made->groups[0].assign(group.begin(), group.begin() + size);
    made->sources.resize(static_cast<std::size_t>(size));
    for (int edge = draw.between(0, 2 * size); edge > 0; --edge) {
        const int a = draw.below(size), b = draw.below(size);
        Ranks& of_a = made->sources[static_cast<std::size_t>(a)];
        if (place_of(of_a, b) < 0) {
            of_a.insert(of_a.begin() + draw.below(static_cast<long>(of_a.size()) + 1), b);
            if (a != b) {
                made->sources[static_cast<std::size_t>(b)].push_back(a);
            }
        }
    }
    made->destinations = made->sources;
    const int reorder = draw.one_in(4) ? 1 : 0;
    program.at(made->text, parent.get());
    MPI_Comm handle = MPI_COMM_NULL;
    if (mine(program, *parent)) {
        std::vector<int> index, edges;
        for (const Ranks& list : made->sources) {
            edges.insert(edges.end(), list.begin(), list.end());
            index.push_back(static_cast<int>(edges.size()));
        }
        edges.push_back(0); // so that its address is one
        MUST(MPI_Graph_create(parent->handle, size, index.data(), edges.data(), reorder, &handle));
    }
    if (reorder != 0 && program.executes()) {
        learn(program, made, handle, group);
    }
    if (mine(program, *parent)) {
        adopt(program, made, handle);
    }
    add(program, made);
}

void make_edges(Program& program, Draw& draw) {
    const CommPtr parent = program.any_intracommunicator(draw);
    const bool adjacent = draw.one_in(2);
    const CommPtr made =
        model(program, adjacent ? "dist_graph_create_adjacent" : "dist_graph_create");
    made->topology = Communicator::Topology::edges;
    made->groups[0] = parent->groups[0];
    made->edges_in_any_order = !adjacent;
    const int size = static_cast<int>(made->groups[0].size());
    made->sources.resize(static_cast<std::size_t>(size));
    made->destinations.resize(static_cast<std::size_t>(size));
    std::vector<std::pair<int, int>> edges;
    for (int edge = draw.between(0, 3 * size); edge > 0; --edge) {
        edges.emplace_back(draw.below(size), draw.below(size));
        made->destinations[static_cast<std::size_t>(edges.back().first)].push_back(
            edges.back().second);
    }
    std::vector<std::pair<int, int>> shuffled = edges;
    draw.shuffle(shuffled);
    for (const auto& [from, to] : shuffled) {
        made->sources[static_cast<std::size_t>(to)].push_back(from);
    }
    const int weighted = draw.below(2);
    program.at(made->text, parent.get());
    if (mine(program, *parent)) {
        const View view(*parent, program.rank());
        MPI_Comm handle = MPI_COMM_NULL;
        std::vector<int> weights(edges.size() + 1, 3);
        int* weight = weighted != 0 ? weights.data() : MPI_UNWEIGHTED;
        if (adjacent) {
            Ranks in = made->sources[static_cast<std::size_t>(view.me)];
            Ranks out = made->destinations[static_cast<std::size_t>(view.me)];
            const int indegree = static_cast<int>(in.size());
            const int outdegree = static_cast<int>(out.size());
            in.push_back(0);
            out.push_back(0);
            MUST(MPI_Dist_graph_create_adjacent(parent->handle, indegree, in.data(), weight,
                                                outdegree, out.data(), weight, MPI_INFO_NULL, 0,
                                                &handle));
        } else { // each edge is named by some rank
            Ranks from, degrees, to;
            for (std::size_t edge = 0; edge < edges.size(); ++edge) {
                if (static_cast<int>(hash(program.key(), edge) % static_cast<Bits>(size)) ==
                    view.me) {
                    from.push_back(edges[edge].first);
                    degrees.push_back(1);
                    to.push_back(edges[edge].second);
                }
            }
            const int n = static_cast<int>(from.size());
            for (Ranks* list : {&from, &degrees, &to}) {
                list->push_back(0);
            }
            MUST(MPI_Dist_graph_create(parent->handle, n, from.data(), degrees.data(), to.data(),
                                       weight, MPI_INFO_NULL, 0, &handle));
        }
        adopt(program, made, handle);
    }
    add(program, made);
}

} // namespace programs
