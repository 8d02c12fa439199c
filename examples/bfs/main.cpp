// Breadth-first search in a Kronecker graph on the ranks of a job, as Graph500 describes it, with
// all that is large in memory by attribute.
//     mpiexec -n 16 bfs [--scale N] [--roots N] [--memory CRITERIA] [--edge-memory CRITERIA]
//                       [--where] [--least PERCENT]
// Each search begins at another vertex with edges; its tree is validated. TEPS are the edges that
// were reached per second. --where says what share of each buffer's pages is on the node that the
// criteria want, asked of the kernel; with --least the program fails when a rank has less.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "bfs/search.hpp"

namespace {

struct Options {
    unsigned scale = 16;
    unsigned roots = 8;
    std::string memory;      // of the graph and the tree
    std::string edge_memory; // of the list of edges; as the graph's if it is not given
    bool where = false;
    double least = -1;
};

// Ranks all read the same words, so all of them end.
[[noreturn]] void usage(int rank) {
    if (rank == 0) {
        std::fputs("usage: bfs [--scale N] [--roots N] [--memory CRITERIA]\n"
                   "           [--edge-memory CRITERIA] [--where] [--least PERCENT]\n",
                   stderr);
    }
    MPI_Finalize();
    std::exit(2);
}

double number_of(int rank, const char* text, double least, double most) {
    char* end = nullptr;
    const double value = text != nullptr ? std::strtod(text, &end) : 0;
    if (text == nullptr || end == text || *end != '\0' || !(value >= least && value <= most)) {
        usage(rank);
    }
    return value;
}

Options read(int rank, int count, char** words) {
    Options options;
    bool edges = false;
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        const char* value = i + 1 < count ? words[i + 1] : nullptr;
        if (word == "--where") {
            options.where = true;
            continue;
        }
        if (word == "--scale") {
            options.scale = static_cast<unsigned>(number_of(rank, value, 4, 30));
        } else if (word == "--roots") {
            options.roots = static_cast<unsigned>(number_of(rank, value, 1, 1000));
        } else if (word == "--least") {
            options.least = number_of(rank, value, 0, 100);
        } else if (word == "--memory" && value != nullptr) {
            options.memory = value;
        } else if (word == "--edge-memory" && value != nullptr) {
            options.edge_memory = value;
            edges = true;
        } else {
            usage(rank);
        }
        ++i;
    }
    if (!edges) {
        options.edge_memory = options.memory;
    }
    return options;
}

// The next vertex with edges from a random one on, the same for all ranks.
bfs::Vertex choose_root(const bfs::Graph& graph, unsigned which, MPI_Comm comm) {
    const bfs::Vertex start = bfs::kronecker_edge(graph.scale, 0x5eed0000U + which).one;
    bfs::Vertex best = 2 * graph.vertices;
    for (bfs::Vertex place = 0; place < graph.own; ++place) {
        const auto at = static_cast<std::size_t>(place);
        if (graph.offsets[at + 1] > graph.offsets[at]) {
            const bfs::Vertex vertex = graph.first + place;
            best = std::min(best, vertex >= start ? vertex : vertex + graph.vertices);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_INT64_T, MPI_MIN, comm);
    return best % graph.vertices;
}

// Says where a buffer is, of all ranks together; false when a rank has too little in its place.
template <typename Element>
bool show(const char* name, const examples::Buffer<Element>& buffer, const Options& options,
          int rank, MPI_Comm comm) {
    const examples::Placement placement = buffer.placement();
    double least = placement.percent();
    std::int64_t pages[2] = {static_cast<std::int64_t>(placement.pages_there),
                             static_cast<std::int64_t>(placement.pages)};
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_DOUBLE, MPI_MIN, comm);
    MPI_Allreduce(MPI_IN_PLACE, pages, 2, MPI_INT64_T, MPI_SUM, comm);
    const bool enough = least >= options.least;
    if (rank == 0) {
        std::printf("%-11s %8.2f MiB, %.2f %% of its pages where they are wanted, %.2f %% of the "
                    "worst rank's%s\n",
                    name, static_cast<double>(pages[1]) / 256,
                    pages[1] != 0
                        ? 100.0 * static_cast<double>(pages[0]) / static_cast<double>(pages[1])
                        : 100.0,
                    least, enough ? "" : ": TOO FEW");
    }
    return enough;
}

int run(const Options& options, int rank, MPI_Comm comm) {
    const examples::Criteria memory(options.memory);
    const examples::Criteria edge_memory(options.edge_memory);
    double making[2];
    const bfs::Graph graph = bfs::make_graph(options.scale, memory, edge_memory, comm, making);
    bfs::Tree tree(graph, memory);
    if (rank == 0) {
        std::printf("scale %u: %lld vertices, %lld edges, made in %.3f s, a graph after %.3f s\n",
                    options.scale, static_cast<long long>(graph.vertices),
                    static_cast<long long>(graph.vertices * bfs::edges_per_vertex), making[0],
                    making[1]);
    }
    int wrong_trees = 0;
    double inverse_sum = 0;
    double best = 0;
    for (unsigned which = 0; which < options.roots; ++which) {
        const bfs::Vertex root = choose_root(graph, which, comm);
        MPI_Barrier(comm);
        const double start = MPI_Wtime();
        const int levels = bfs::search(graph, root, tree, comm);
        double seconds = MPI_Wtime() - start;
        MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm);
        const auto edges = static_cast<double>(bfs::edges_reached(graph, tree, comm));
        const std::string wrong = bfs::wrong_with(graph, root, tree, comm);
        if (!wrong.empty()) {
            std::printf("WRONG tree of root %lld: %s\n", static_cast<long long>(root),
                        wrong.c_str());
        }
        int is_wrong = !wrong.empty();
        MPI_Allreduce(MPI_IN_PLACE, &is_wrong, 1, MPI_INT, MPI_MAX, comm);
        wrong_trees += is_wrong;
        inverse_sum += seconds / edges;
        best = std::max(best, edges / seconds);
        if (rank == 0) {
            std::printf("root %8lld: %2d levels, %.0f edges in %.4f s, %.3f MTEPS\n",
                        static_cast<long long>(root), levels, edges, seconds,
                        edges / seconds * 1e-6);
        }
    }
    if (rank == 0) {
        std::printf("harmonic mean %.3f MTEPS, best %.3f; %d of %u trees are right\n",
                    options.roots / inverse_sum * 1e-6, best * 1e-6,
                    static_cast<int>(options.roots) - wrong_trees, options.roots);
    }
    bool good = wrong_trees == 0;
    if (options.where || options.least >= 0) {
        good = show("edges", graph.edges, options, rank, comm) && good;
        good = show("offsets", graph.offsets, options, rank, comm) && good;
        good = show("neighbours", graph.neighbours, options, rank, comm) && good;
        good = show("parents", tree.parents, options, rank, comm) && good;
        good = show("levels", tree.levels, options, rank, comm) && good;
    }
    return good ? 0 : 1;
}

} // namespace

int main(int count, char** words) {
    MPI_Init(&count, &words);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const Options options = read(rank, count, words);
    int status = 1;
    try {
        status = run(options, rank, MPI_COMM_WORLD);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "bfs: rank %d: %s\n", rank, problem.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return status;
}
