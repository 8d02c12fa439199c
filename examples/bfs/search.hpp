// Breadth-first search over the ranks of a job, level by level: each rank follows the edges of its
// vertices on the frontier, and tells the owners of what it finds. And the check of what comes out,
// by the rules of Graph500.
#pragma once

#include <cstdint>
#include <string>

#include "bfs/graph.hpp"

namespace bfs {

inline constexpr Vertex nobody = -1;

struct Tree {
    examples::Buffer<Vertex> parents;      // of this rank's vertices; nobody: not reached
    examples::Buffer<std::int32_t> levels; // -1: not reached

    Tree(const Graph& graph, const examples::Criteria& memory)
        : parents(static_cast<std::size_t>(graph.own), memory),
          levels(static_cast<std::size_t>(graph.own), memory) {}
};

// Collective. Returns how many levels there are.
int search(const Graph& graph, Vertex root, Tree& tree, MPI_Comm comm);

// Edges of the graph whose ends were reached, repeated ones as often. Collective.
std::int64_t edges_reached(const Graph& graph, const Tree& tree, MPI_Comm comm);

// What is wrong with the tree, in one rank's words; "" when it is right. Collective.
//  1. The root is its own parent, on level 0, and nobody else is.
//  2. A vertex is one level below its parent, so there are no cycles.
//  3. It has an edge to its parent.
//  4. Ends of an edge are reached both or not at all, and are at most one level apart; so the tree
//     has all that can be reached.
std::string wrong_with(const Graph& graph, Vertex root, const Tree& tree, MPI_Comm comm);

} // namespace bfs
