#include "mpi/comm/topology.hpp"

#include <algorithm>
#include <cstdint>

namespace warren::comm {

Topology make_grid(int dimensions, const int dims[], const int periods[], int own_rank) {
    Topology made(Topology::Kind::grid);
    made.dims.assign(dims, dims + dimensions);
    for (int i = 0; i < dimensions; ++i) {
        made.periods.push_back(periods[i] != 0 ? 1 : 0);
    }
    made.coords.resize(made.dims.size());
    coordinates_of(made, own_rank, made.coords.data());
    for (int i = 0; i < dimensions; ++i) {
        made.sources.push_back(rank_along(made, i, -1));
        made.sources.push_back(rank_along(made, i, 1));
    }
    made.destinations = made.sources;
    return made;
}

Topology make_graph(int nodes, const int index[], const int edges[], int own_rank) {
    Topology made(Topology::Kind::graph);
    made.index.assign(index, index + nodes);
    made.edges.assign(edges, edges + (nodes > 0 ? index[nodes - 1] : 0));
    const int first = own_rank == 0 ? 0 : index[own_rank - 1];
    made.sources.assign(edges + first, edges + index[own_rank]);
    made.destinations = made.sources;
    return made;
}

void coordinates_of(const Topology& grid, int rank, int coords[]) {
    for (std::size_t i = grid.dims.size(); i-- > 0;) {
        coords[i] = rank % grid.dims[i];
        rank /= grid.dims[i];
    }
}

namespace {

// A coordinate inside the dimension. False: beyond an edge.
bool wrap(const Topology& grid, std::size_t dimension, std::int64_t& coordinate) {
    const std::int64_t size = grid.dims[dimension];
    if (coordinate >= 0 && coordinate < size) {
        return true;
    }
    if (grid.periods[dimension] == 0) {
        return false;
    }
    coordinate = (coordinate % size + size) % size;
    return true;
}

} // namespace

int rank_at(const Topology& grid, const int coords[]) {
    int rank = 0;
    for (std::size_t i = 0; i < grid.dims.size(); ++i) {
        std::int64_t coordinate = coords[i];
        if (!wrap(grid, i, coordinate)) {
            return MPI_PROC_NULL;
        }
        rank = rank * grid.dims[i] + static_cast<int>(coordinate);
    }
    return rank;
}

int rank_along(const Topology& grid, int dimension, std::int64_t steps) {
    const auto along = static_cast<std::size_t>(dimension);
    std::int64_t moved = grid.coords[along] + steps;
    if (!wrap(grid, along, moved)) {
        return MPI_PROC_NULL;
    }
    std::vector<int> coords = grid.coords;
    coords[along] = static_cast<int>(moved);
    return rank_at(grid, coords.data());
}

Error grid_size(int dimensions, const int dims[], int limit, int* ranks) {
    std::int64_t product = 1;
    for (int i = 0; i < dimensions; ++i) {
        if (dims[i] <= 0) {
            return fail(MPI_ERR_DIMS, "dims[%d] = %d is not positive", i, dims[i]);
        }
        product *= dims[i];
        if (product > limit) {
            return fail(MPI_ERR_DIMS, "the grid has more than the communicator's %d ranks", limit);
        }
    }
    *ranks = static_cast<int>(product);
    return {};
}

Error check_graph(int nodes, const int index[], const int edges[]) {
    int before = 0;
    for (int node = 0; node < nodes; ++node) {
        if (index[node] < before) {
            return fail(MPI_ERR_ARG, "index[%d] = %d is less than what comes before, %d", node,
                        index[node], before);
        }
        before = index[node];
    }
    if (before > 0 && edges == nullptr) {
        return fail(MPI_ERR_ARG, "edges is a null pointer");
    }
    for (int edge = 0; edge < before; ++edge) {
        if (edges[edge] < 0 || edges[edge] >= nodes) {
            return fail(MPI_ERR_RANK, "edges[%d] = %d is not in 0 … %d", edge, edges[edge],
                        nodes - 1);
        }
    }
    return {};
}

namespace {

std::vector<std::int64_t> divisors_of(std::int64_t number) {
    std::vector<std::int64_t> small, large;
    for (std::int64_t divisor = 1; divisor * divisor <= number; ++divisor) {
        if (number % divisor == 0) {
            small.push_back(divisor);
            if (divisor * divisor != number) {
                large.push_back(number / divisor);
            }
        }
    }
    small.insert(small.end(), large.rbegin(), large.rend());
    return small;
}

// The factors of a number, falling, that are as close to each other as can be: the largest less the
// smallest is least; then the smallest is the largest, then the second smallest, and so on.
class ClosestFactors {
  public:
    ClosestFactors(std::int64_t number, int factors)
        : divisors_(divisors_of(number)), chosen_(static_cast<std::size_t>(factors)) {
        if (factors > 0) {
            choose(0, number, number);
        }
    }

    const std::vector<std::int64_t>& result() const { return best_; }

  private:
    // Whether `factors` factors of at most `factor` can make the number.
    static bool reaches(std::int64_t factor, std::size_t factors, std::int64_t number) {
        std::int64_t product = 1;
        for (std::size_t i = 0; i < factors && product < number; ++i) {
            product *= factor;
        }
        return product >= number;
    }

    // All ways to write a number as the factors from position `at` on, none above `limit`, but
    // those that are no closer than the best so far. The smallest come first, so the first way is
    // good.
    void choose(std::size_t at, std::int64_t number, std::int64_t limit) {
        if (at == chosen_.size()) {
            if (number == 1) {
                compare();
            }
            return;
        }
        for (const std::int64_t factor : divisors_) {
            if (factor > limit || factor > number) {
                return;
            }
            // The smallest is not above the root, so later ones are no closer.
            if (at == 0 && factor > spread_ &&
                reaches(factor - spread_, chosen_.size(), number + 1)) {
                return;
            }
            const std::int64_t first = at == 0 ? factor : chosen_[0];
            if (number % factor == 0 && first - factor <= spread_ &&
                reaches(factor, chosen_.size() - at, number)) {
                chosen_[at] = factor;
                choose(at + 1, number / factor, factor);
            }
        }
    }

    // Among factorings with the same distance between the ends, the one whose smaller factors are
    // larger.
    void compare() {
        const std::int64_t spread = chosen_.front() - chosen_.back();
        if (best_.empty() || spread < spread_ ||
            (spread == spread_ && std::lexicographical_compare(best_.rbegin(), best_.rend(),
                                                               chosen_.rbegin(), chosen_.rend()))) {
            best_ = chosen_;
            spread_ = spread;
        }
    }

    const std::vector<std::int64_t> divisors_;
    std::vector<std::int64_t> chosen_, best_;
    std::int64_t spread_ = INT64_MAX - 1; // of the best
};

} // namespace

Error balance_dims(int nodes, int dimensions, int dims[]) {
    if (nodes <= 0) {
        return fail(MPI_ERR_ARG, "nnodes = %d is not positive", nodes);
    }
    std::int64_t given = 1;
    int open = 0;
    for (int i = 0; i < dimensions; ++i) {
        if (dims[i] < 0) {
            return fail(MPI_ERR_DIMS, "dims[%d] = %d is negative", i, dims[i]);
        }
        if (dims[i] == 0) {
            ++open;
        } else if (given *= dims[i]; given > nodes) {
            return fail(MPI_ERR_DIMS, "the given dimensions have more than %d nodes", nodes);
        }
    }
    if (nodes % given != 0 || (open == 0 && given != nodes)) {
        return fail(MPI_ERR_DIMS, "the given dimensions' product %lld does not %s %d",
                    static_cast<long long>(given), open == 0 ? "make" : "divide", nodes);
    }
    const ClosestFactors factors(nodes / given, open);
    auto next = factors.result().begin();
    for (int i = 0; i < dimensions; ++i) {
        if (dims[i] == 0) {
            dims[i] = static_cast<int>(*next++);
        }
    }
    return {};
}

} // namespace warren::comm
