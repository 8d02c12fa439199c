// A Kronecker graph over the ranks of a job, as Graph500 describes it: 2^scale vertices, 16 edges
// per vertex, made by choosing a quarter of the adjacency matrix again and again with probabilities
// 0.57, 0.19, 0.19 and 0.05, and vertices renamed so that numbers say nothing of degrees. The same
// for any number of ranks. Rank r has the vertices [first(r), first(r + 1)) with all their
// neighbours. Buffers are in memory by attribute.
#pragma once

#include <cstdint>
#include <mpi.h>
#include <vector>

#include "support/buffer.hpp"

namespace bfs {

using Vertex = std::int64_t;

struct Edge {
    Vertex one;
    Vertex other;
};

struct Graph {
    unsigned scale = 0;
    Vertex vertices = 0;
    Vertex first = 0; // of this rank
    Vertex own = 0;   // how many are this rank's
    Vertex per_rank = 0;
    examples::Buffer<Edge> edges;           // those that this rank has made
    examples::Buffer<std::int64_t> offsets; // own + 1, into neighbours
    examples::Buffer<Vertex> neighbours;    // sorted; without loops, with repeated edges

    int owner(Vertex vertex) const { return static_cast<int>(vertex / per_rank); }
};

inline constexpr unsigned edges_per_vertex = 16;

// The number of an edge to the edge, without a table.
Edge kronecker_edge(unsigned scale, std::uint64_t number);

// Collective. `seconds`: how long making the edges took, and the graph of them.
Graph make_graph(unsigned scale, const examples::Criteria& graph_memory,
                 const examples::Criteria& edge_memory, MPI_Comm comm, double (&seconds)[2]);

// Exchanges items by owner: `outgoing[rank]` becomes what all ranks had for this one. Collective.
template <typename Item>
std::vector<Item> exchange(std::vector<std::vector<Item>>& outgoing, MPI_Comm comm);

} // namespace bfs

#include "bfs/exchange.hpp"
