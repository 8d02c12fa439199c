#include "bfs/graph.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace bfs {

namespace {

// A number that looks random, from a seed: the mixing function of SplitMix64.
std::uint64_t mixed(std::uint64_t seed) {
    seed += 0x9e3779b97f4a7c15;
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
    seed = (seed ^ seed >> 27) * 0x94d049bb133111eb;
    return seed ^ seed >> 31;
}

// Another name for each of 2^scale vertices: each step can be undone, so no two share one.
Vertex renamed(Vertex vertex, unsigned scale) {
    const std::uint64_t mask = (std::uint64_t{1} << scale) - 1;
    auto name = static_cast<std::uint64_t>(vertex);
    for (std::uint64_t round = 1; round <= 3; ++round) {
        name = (name * (mixed(round) | 1) + mixed(round + 10)) & mask;
        name ^= name >> (scale / 2 + 1);
    }
    return static_cast<Vertex>(name);
}

// Of 2^32: the chances of the matrix's quarters.
constexpr std::uint64_t whole = std::uint64_t{1} << 32;
constexpr std::uint64_t up_to_a = whole * 57 / 100;
constexpr std::uint64_t up_to_b = whole * 76 / 100;
constexpr std::uint64_t up_to_c = whole * 95 / 100;

} // namespace

Edge kronecker_edge(unsigned scale, std::uint64_t number) {
    Vertex one = 0;
    Vertex other = 0;
    for (unsigned level = 0; level < scale; ++level) {
        const std::uint64_t chance = mixed(number * 64 + level) >> 32;
        const bool lower = chance >= up_to_b;
        const bool right = lower ? chance >= up_to_c : chance >= up_to_a;
        one = one * 2 + lower;
        other = other * 2 + right;
    }
    return {renamed(one, scale), renamed(other, scale)};
}

Graph make_graph(unsigned scale, const examples::Criteria& graph_memory,
                 const examples::Criteria& edge_memory, MPI_Comm comm, double (&seconds)[2]) {
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    Graph graph;
    graph.scale = scale;
    graph.vertices = Vertex{1} << scale;
    graph.per_rank = (graph.vertices + ranks - 1) / ranks;
    graph.first = std::min(graph.per_rank * rank, graph.vertices);
    graph.own = std::min(graph.per_rank, graph.vertices - graph.first);

    MPI_Barrier(comm);
    double start = MPI_Wtime();
    const std::uint64_t all = static_cast<std::uint64_t>(graph.vertices) * edges_per_vertex;
    const auto part = [&](int which) {
        return all / static_cast<unsigned>(ranks) * static_cast<unsigned>(which) +
               std::min<std::uint64_t>(static_cast<unsigned>(which),
                                       all % static_cast<unsigned>(ranks));
    };
    graph.edges = examples::Buffer<Edge>(part(rank + 1) - part(rank), edge_memory);
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
        graph.edges[i] = kronecker_edge(scale, part(rank) + i);
    }
    seconds[0] = MPI_Wtime() - start;

    start = MPI_Wtime();
    std::vector<std::vector<Edge>> outgoing(static_cast<std::size_t>(ranks));
    for (const Edge& edge : graph.edges) {
        if (edge.one != edge.other) {
            outgoing[static_cast<std::size_t>(graph.owner(edge.one))].push_back(edge);
            outgoing[static_cast<std::size_t>(graph.owner(edge.other))].push_back(
                {edge.other, edge.one});
        }
    }
    const std::vector<Edge> received = exchange(outgoing, comm);
    const auto own = static_cast<std::size_t>(graph.own);
    graph.offsets = examples::Buffer<std::int64_t>(own + 1, graph_memory);
    graph.neighbours = examples::Buffer<Vertex>(received.size(), graph_memory);
    std::fill(graph.offsets.begin(), graph.offsets.end(), 0);
    const auto place = [&](Vertex vertex) {
        return static_cast<std::size_t>(vertex - graph.first);
    };
    for (const Edge& edge : received) {
        ++graph.offsets[place(edge.one) + 1];
    }
    std::partial_sum(graph.offsets.begin(), graph.offsets.end(), graph.offsets.begin());
    std::vector<std::int64_t> next(graph.offsets.begin(), graph.offsets.end());
    for (const Edge& edge : received) {
        graph.neighbours[static_cast<std::size_t>(next[place(edge.one)]++)] = edge.other;
    }
    for (std::size_t vertex = 0; vertex < own; ++vertex) {
        std::sort(graph.neighbours.begin() + graph.offsets[vertex],
                  graph.neighbours.begin() + graph.offsets[vertex + 1]);
    }
    MPI_Barrier(comm);
    seconds[1] = MPI_Wtime() - start;
    return graph;
}

} // namespace bfs
