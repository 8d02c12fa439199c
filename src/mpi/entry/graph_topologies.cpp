// Graphs, and distributed graphs.

#include <algorithm>

#include "mpi/coll/choice.hpp"
#include "mpi/coll/immediate.hpp"
#include "mpi/comm/topology.hpp"
#include "mpi/entry/new_communicator.hpp"
#include "mpi/entry/topologies.hpp"

namespace warren::mpi {

using comm::Topology;

namespace {

Error topology_of(const comm::Communicator& comm, Topology::Kind kind, const Topology*& found) {
    found = comm.topology.get();
    if (found == nullptr || found->kind != kind) {
        return fail(MPI_ERR_TOPOLOGY, "the communicator has no %sgraph topology",
                    kind == Topology::Kind::distributed ? "distributed " : "");
    }
    return {};
}

Error no_topology_on_inter() {
    return fail(MPI_ERR_COMM, "an intercommunicator has no topology");
}

Error check_graph(const comm::Communicator& comm, int nnodes, const int indx[], const int edges[]) {
    if (comm.inter()) {
        return no_topology_on_inter();
    }
    if (nnodes < 0 || nnodes > comm.size()) {
        return fail(MPI_ERR_ARG, "nnodes = %d is not in 0 … %d", nnodes, comm.size());
    }
    if (nnodes > 0 && indx == nullptr) {
        return fail(MPI_ERR_ARG, "index is a null pointer");
    }
    return comm::check_graph(nnodes, indx, edges);
}

// The edges of a rank of a graph.
Error edges_of(const Topology& graph, int rank, const int*& begin, const int*& end) {
    if (rank < 0 || static_cast<std::size_t>(rank) >= graph.index.size()) {
        return fail(MPI_ERR_RANK, "rank = %d is not in 0 … %zu", rank, graph.index.size() - 1);
    }
    const auto node = static_cast<std::size_t>(rank);
    begin = graph.edges.data() + (node == 0 ? 0 : graph.index[node - 1]);
    end = graph.edges.data() + graph.index[node];
    return {};
}

// As many elements as fit.
void give(const std::vector<int>& from, int room, int to[]) {
    std::copy_n(from.begin(), std::clamp(room, 0, static_cast<int>(from.size())), to);
}

} // namespace

Error graph_create(Context& context, comm::Communicator& comm_old, int nnodes, const int indx[],
                   const int edges[], int, MPI_Comm* comm_graph) {
    *comm_graph = MPI_COMM_NULL;
    if (Error error = check_graph(comm_old, nnodes, indx, edges)) {
        return error;
    }
    if (comm_old.rank() >= nnodes) {
        return {};
    }
    comm::Communicator* made = nullptr;
    if (Error error = make_of_first(context, comm_old, nnodes, made)) {
        return error;
    }
    made->topology =
        std::make_shared<const Topology>(comm::make_graph(nnodes, indx, edges, made->rank()));
    *comm_graph = context.communicators.handle_of(*made);
    return {};
}

Error graphdims_get(Context&, comm::Communicator& comm, int* nnodes, int* nedges) {
    const Topology* graph = nullptr;
    if (Error error = topology_of(comm, Topology::Kind::graph, graph)) {
        return error;
    }
    *nnodes = static_cast<int>(graph->index.size());
    *nedges = static_cast<int>(graph->edges.size());
    return {};
}

Error graph_get(Context&, comm::Communicator& comm, int maxindex, int maxedges, int indx[],
                int edges[]) {
    const Topology* graph = nullptr;
    if (Error error = topology_of(comm, Topology::Kind::graph, graph)) {
        return error;
    }
    if (indx == nullptr && maxindex > 0) {
        return fail(MPI_ERR_ARG, "index is a null pointer");
    }
    give(graph->index, maxindex, indx);
    give(graph->edges, maxedges, edges);
    return {};
}

Error graph_neighbors_count(Context&, comm::Communicator& comm, int rank, int* nneighbors) {
    const Topology* graph = nullptr;
    if (Error error = topology_of(comm, Topology::Kind::graph, graph)) {
        return error;
    }
    const int* begin = nullptr;
    const int* end = nullptr;
    if (Error error = edges_of(*graph, rank, begin, end)) {
        return error;
    }
    *nneighbors = static_cast<int>(end - begin);
    return {};
}

Error graph_neighbors(Context&, comm::Communicator& comm, int rank, int maxneighbors,
                      int neighbors[]) {
    const Topology* graph = nullptr;
    if (Error error = topology_of(comm, Topology::Kind::graph, graph)) {
        return error;
    }
    const int* begin = nullptr;
    const int* end = nullptr;
    if (Error error = edges_of(*graph, rank, begin, end)) {
        return error;
    }
    std::copy_n(begin, std::clamp(maxneighbors, 0, static_cast<int>(end - begin)), neighbors);
    return {};
}

Error graph_map(Context&, comm::Communicator& comm, int nnodes, const int indx[], const int edges[],
                int* newrank) {
    if (Error error = check_graph(comm, nnodes, indx, edges)) {
        return error;
    }
    if (nnodes == 0) {
        return fail(MPI_ERR_ARG, "nnodes is 0");
    }
    *newrank = comm.rank() < nnodes ? comm.rank() : MPI_UNDEFINED;
    return {};
}

// --- Distributed graphs

namespace {

Error check_degree(const char* name, int degree) {
    return degree < 0 ? fail(MPI_ERR_ARG, "%s = %d is negative", name, degree) : Error();
}

Error check_ranks(const comm::Communicator& comm, const char* name, int count, const int ranks[]) {
    for (int i = 0; i < count; ++i) {
        if (ranks[i] < 0 || ranks[i] >= comm.size()) {
            return fail(MPI_ERR_RANK, "%s[%d] = %d is not in 0 … %d", name, i, ranks[i],
                        comm.size() - 1);
        }
    }
    return {};
}

Error check_weights(const char* name, int count, const int weights[]) {
    if (weights == MPI_UNWEIGHTED || count == 0) {
        return {};
    }
    if (weights == nullptr) {
        return fail(MPI_ERR_ARG, "%s is a null pointer", name);
    }
    if (weights == MPI_WEIGHTS_EMPTY) {
        return fail(MPI_ERR_ARG, "%s is MPI_WEIGHTS_EMPTY, but there are %d edges", name, count);
    }
    for (int i = 0; i < count; ++i) {
        if (weights[i] < 0) {
            return fail(MPI_ERR_ARG, "%s[%d] = %d is negative", name, i, weights[i]);
        }
    }
    return {};
}

Error make_distributed(Context& context, comm::Communicator& parent, comm::Info* info,
                       Topology&& topology, MPI_Comm* newcomm) {
    comm::Communicator* made = nullptr;
    if (Error error = make_of_first(context, parent, parent.size(), made)) {
        return error;
    }
    made->topology = std::make_shared<const Topology>(std::move(topology));
    if (info != nullptr) {
        made->info = new comm::Info(*info);
    }
    *newcomm = context.communicators.handle_of(*made);
    return {};
}

// An end of an edge, as the process that specifies the edge tells the one that has it.
struct End {
    int peer;
    int weight;
    int outgoing;
};

// Sends everybody the ends that others have specified for it; gives those for this rank, in the
// order of the ranks that specified them.
Error exchange_ends(Context& context, comm::Communicator& comm,
                    const std::vector<std::vector<End>>& told, std::vector<End>& heard) {
    const auto size = static_cast<std::size_t>(comm.size());
    std::vector<int> sent(size), received(size);
    for (std::size_t rank = 0; rank < size; ++rank) {
        sent[rank] = static_cast<int>(told[rank].size());
    }
    coll::Immediate counts(context.messages, comm);
    coll::alltoall(counts, coll::Blocks(coll::bytes_of(sent.data(), sizeof(int))),
                   coll::Blocks(coll::bytes_of(received.data(), sizeof(int))));
    if (Error error = counts.end()) {
        return error;
    }
    std::size_t total = 0;
    for (const int count : received) {
        total += static_cast<std::size_t>(count);
    }
    heard.resize(total);
    std::vector<message::Buffer> out(size), in(size);
    End* place = heard.data();
    for (std::size_t rank = 0; rank < size; ++rank) {
        const auto bytes = [](int count) { return static_cast<MPI_Count>(sizeof(End)) * count; };
        out[rank] = coll::bytes_of(told[rank].data(), bytes(sent[rank]));
        in[rank] = coll::bytes_of(place, bytes(received[rank]));
        place += received[rank];
    }
    coll::Immediate steps(context.messages, comm);
    coll::alltoall(steps, coll::Blocks(out.data()), coll::Blocks(in.data()));
    return steps.end();
}

} // namespace

Error dist_graph_create_adjacent(Context& context, comm::Communicator& comm_old, int indegree,
                                 const int sources[], const int sourceweights[], int outdegree,
                                 const int destinations[], const int destweights[],
                                 comm::Info* info, int, MPI_Comm* comm_dist_graph) {
    *comm_dist_graph = MPI_COMM_NULL;
    if (comm_old.inter()) {
        return no_topology_on_inter();
    }
    Error error = check_degree("indegree", indegree);
    if (!error) {
        error = check_degree("outdegree", outdegree);
    }
    if (!error) {
        error = check_ranks(comm_old, "sources", indegree, sources);
    }
    if (!error) {
        error = check_ranks(comm_old, "destinations", outdegree, destinations);
    }
    if (!error) {
        error = check_weights("sourceweights", indegree, sourceweights);
    }
    if (!error) {
        error = check_weights("destweights", outdegree, destweights);
    }
    if (!error && (sourceweights == MPI_UNWEIGHTED) != (destweights == MPI_UNWEIGHTED)) {
        error = fail(MPI_ERR_ARG, "only one of sourceweights and destweights is MPI_UNWEIGHTED");
    }
    if (error) {
        return error;
    }
    Topology made(Topology::Kind::distributed);
    made.sources.assign(sources, sources + indegree);
    made.destinations.assign(destinations, destinations + outdegree);
    made.weighted = sourceweights != MPI_UNWEIGHTED;
    if (made.weighted && indegree > 0) {
        made.source_weights.assign(sourceweights, sourceweights + indegree);
    }
    if (made.weighted && outdegree > 0) {
        made.destination_weights.assign(destweights, destweights + outdegree);
    }
    return make_distributed(context, comm_old, info, std::move(made), comm_dist_graph);
}

Error dist_graph_create(Context& context, comm::Communicator& comm_old, int n, const int sources[],
                        const int degrees[], const int destinations[], const int weights[],
                        comm::Info* info, int, MPI_Comm* comm_dist_graph) {
    *comm_dist_graph = MPI_COMM_NULL;
    if (comm_old.inter()) {
        return no_topology_on_inter();
    }
    if (Error error = check_ranks(comm_old, "sources", n, sources)) {
        return error;
    }
    std::int64_t edges = 0;
    for (int i = 0; i < n; ++i) {
        if (Error error = check_degree("degrees[i]", degrees[i])) {
            return error;
        }
        edges += degrees[i];
    }
    if (edges > INT32_MAX) {
        return fail(MPI_ERR_ARG, "%lld edges are more than an int counts",
                    static_cast<long long>(edges));
    }
    if (edges > 0 && destinations == nullptr) {
        return fail(MPI_ERR_ARG, "destinations is a null pointer");
    }
    Error error = check_ranks(comm_old, "destinations", static_cast<int>(edges), destinations);
    if (!error) {
        error = check_weights("weights", static_cast<int>(edges), weights);
    }
    if (error) {
        return error;
    }
    const bool weighted = weights != MPI_UNWEIGHTED;
    std::vector<std::vector<End>> told(static_cast<std::size_t>(comm_old.size()));
    int edge = 0;
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < degrees[i]; ++j, ++edge) {
            const int weight = weighted ? weights[edge] : 1;
            const int source = sources[i];
            const int destination = destinations[edge];
            told[static_cast<std::size_t>(source)].push_back({destination, weight, 1});
            told[static_cast<std::size_t>(destination)].push_back({source, weight, 0});
        }
    }
    std::vector<End> heard;
    if (Error failed = exchange_ends(context, comm_old, told, heard)) {
        return failed;
    }
    Topology made(Topology::Kind::distributed);
    made.weighted = weighted;
    for (const End& end : heard) {
        (end.outgoing != 0 ? made.destinations : made.sources).push_back(end.peer);
        (end.outgoing != 0 ? made.destination_weights : made.source_weights).push_back(end.weight);
    }
    return make_distributed(context, comm_old, info, std::move(made), comm_dist_graph);
}

Error dist_graph_neighbors_count(Context&, comm::Communicator& comm, int* indegree, int* outdegree,
                                 int* weighted) {
    const Topology* graph = nullptr;
    if (Error error = topology_of(comm, Topology::Kind::distributed, graph)) {
        return error;
    }
    *indegree = static_cast<int>(graph->sources.size());
    *outdegree = static_cast<int>(graph->destinations.size());
    *weighted = graph->weighted ? 1 : 0;
    return {};
}

Error dist_graph_neighbors(Context&, comm::Communicator& comm, int maxindegree, int sources[],
                           int sourceweights[], int maxoutdegree, int destinations[],
                           int destweights[]) {
    const Topology* graph = nullptr;
    if (Error error = topology_of(comm, Topology::Kind::distributed, graph)) {
        return error;
    }
    const auto wanted = [&](const int* weights) {
        return graph->weighted && weights != nullptr && weights != MPI_UNWEIGHTED &&
               weights != MPI_WEIGHTS_EMPTY;
    };
    give(graph->sources, maxindegree, sources);
    give(graph->destinations, maxoutdegree, destinations);
    if (wanted(sourceweights)) {
        give(graph->source_weights, maxindegree, sourceweights);
    }
    if (wanted(destweights)) {
        give(graph->destination_weights, maxoutdegree, destweights);
    }
    return {};
}

} // namespace warren::mpi
