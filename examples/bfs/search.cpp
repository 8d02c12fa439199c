#include "bfs/search.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace bfs {

namespace {

struct Found {
    Vertex vertex;
    Vertex parent;
};

int ranks_of(MPI_Comm comm) {
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    return ranks;
}

} // namespace

int search(const Graph& graph, Vertex root, Tree& tree, MPI_Comm comm) {
    std::fill(tree.parents.begin(), tree.parents.end(), nobody);
    std::fill(tree.levels.begin(), tree.levels.end(), -1);
    std::vector<Vertex> frontier; // by place
    if (root >= graph.first && root < graph.first + graph.own) {
        const auto place = static_cast<std::size_t>(root - graph.first);
        tree.parents[place] = root;
        tree.levels[place] = 0;
        frontier.push_back(static_cast<Vertex>(place));
    }
    // What was told once need not be told again.
    std::vector<bool> told(static_cast<std::size_t>(graph.vertices));
    std::vector<std::vector<Found>> outgoing(static_cast<std::size_t>(ranks_of(comm)));
    for (int level = 1;; ++level) {
        for (const Vertex place : frontier) {
            const auto at = static_cast<std::size_t>(place);
            for (std::int64_t i = graph.offsets[at]; i < graph.offsets[at + 1]; ++i) {
                const Vertex neighbour = graph.neighbours[static_cast<std::size_t>(i)];
                if (!told[static_cast<std::size_t>(neighbour)]) {
                    told[static_cast<std::size_t>(neighbour)] = true;
                    outgoing[static_cast<std::size_t>(graph.owner(neighbour))].push_back(
                        {neighbour, graph.first + place});
                }
            }
        }
        frontier.clear();
        for (const Found& found : exchange(outgoing, comm)) {
            const auto place = static_cast<std::size_t>(found.vertex - graph.first);
            if (tree.parents[place] == nobody) {
                tree.parents[place] = found.parent;
                tree.levels[place] = level;
                frontier.push_back(static_cast<Vertex>(place));
            }
        }
        auto going_on = static_cast<std::int64_t>(frontier.size());
        MPI_Allreduce(MPI_IN_PLACE, &going_on, 1, MPI_INT64_T, MPI_SUM, comm);
        if (going_on == 0) {
            return level;
        }
    }
}

std::int64_t edges_reached(const Graph& graph, const Tree& tree, MPI_Comm comm) {
    std::int64_t ends = 0;
    for (std::size_t vertex = 0; vertex < tree.parents.size(); ++vertex) {
        if (tree.parents[vertex] != nobody) {
            ends += graph.offsets[vertex + 1] - graph.offsets[vertex];
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &ends, 1, MPI_INT64_T, MPI_SUM, comm);
    return ends / 2;
}

std::string wrong_with(const Graph& graph, Vertex root, const Tree& tree, MPI_Comm comm) {
    struct Seen {
        Vertex vertex; // of the rank that is told
        Vertex other;
        std::int64_t level; // the other's
    };
    std::string wrong;
    const auto note = [&](bool condition, Vertex vertex, const char* what) {
        if (!condition && wrong.empty()) {
            wrong = "vertex " + std::to_string(vertex) + ": " + what;
        }
    };
    std::vector<std::vector<Seen>> to_parents(static_cast<std::size_t>(ranks_of(comm)));
    for (std::size_t place = 0; place < tree.parents.size(); ++place) {
        const Vertex vertex = graph.first + static_cast<Vertex>(place);
        const Vertex parent = tree.parents[place];
        const std::int32_t level = tree.levels[place];
        note((parent == nobody) == (level < 0), vertex, "it has a parent or a level, not both");
        note((vertex == root) == (level == 0), vertex, "it is on level 0, or the root is not");
        if (vertex == root) {
            note(parent == root, vertex, "the root has a parent");
        } else if (parent != nobody) {
            if (parent < 0 || parent >= graph.vertices) {
                note(false, vertex, "its parent is no vertex");
                continue;
            }
            to_parents[static_cast<std::size_t>(graph.owner(parent))].push_back(
                {parent, vertex, level});
        }
    }
    for (const Seen& child : exchange(to_parents, comm)) {
        const auto place = static_cast<std::size_t>(child.vertex - graph.first);
        note(tree.levels[place] >= 0 && tree.levels[place] == child.level - 1, child.other,
             "it is not one level below its parent");
        note(std::binary_search(graph.neighbours.begin() + graph.offsets[place],
                                graph.neighbours.begin() + graph.offsets[place + 1], child.other),
             child.other, "there is no edge to its parent");
    }
    // All edges, a part at a time so that they need not be there twice.
    constexpr std::size_t vertices_at_once = 1 << 14;
    const auto per_rank = static_cast<std::size_t>(graph.per_rank);
    for (std::size_t begin = 0; begin < per_rank; begin += vertices_at_once) {
        std::vector<std::vector<Seen>> to_neighbours(static_cast<std::size_t>(ranks_of(comm)));
        for (std::size_t place = begin;
             place < std::min(begin + vertices_at_once, tree.parents.size()); ++place) {
            for (std::int64_t i = graph.offsets[place]; i < graph.offsets[place + 1]; ++i) {
                const Vertex neighbour = graph.neighbours[static_cast<std::size_t>(i)];
                to_neighbours[static_cast<std::size_t>(graph.owner(neighbour))].push_back(
                    {neighbour, graph.first + static_cast<Vertex>(place), tree.levels[place]});
            }
        }
        for (const Seen& end : exchange(to_neighbours, comm)) {
            const std::int64_t level =
                tree.levels[static_cast<std::size_t>(end.vertex - graph.first)];
            note((level < 0) == (end.level < 0), end.vertex,
                 "one end of an edge was reached, the other was not");
            note(std::abs(level - end.level) <= 1, end.vertex,
                 "an edge leads over more than one level");
        }
    }
    return wrong;
}

} // namespace bfs
