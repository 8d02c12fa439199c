#include "mpi/comm/topology.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <utility>
#include <vector>

namespace warren::comm {
namespace {

std::vector<int> balanced(int nodes, std::vector<int> dims) {
    Error error = balance_dims(nodes, static_cast<int>(dims.size()), dims.data());
    EXPECT_FALSE(error);
    error.drop();
    return dims;
}

int refused(int nodes, std::vector<int> dims) {
    Error error = balance_dims(nodes, static_cast<int>(dims.size()), dims.data());
    const int error_class = error.error_class();
    error.drop();
    return error_class;
}

TEST(Dims, AreBalancedAndFall) {
    EXPECT_EQ(balanced(6, {0, 0}), (std::vector<int>{3, 2}));
    EXPECT_EQ(balanced(7, {0, 0}), (std::vector<int>{7, 1}));
    EXPECT_EQ(balanced(6, {0, 3, 0}), (std::vector<int>{2, 3, 1}));
    EXPECT_EQ(balanced(16, {0, 0, 0}), (std::vector<int>{4, 2, 2}));
    EXPECT_EQ(balanced(36, {0, 0, 0}), (std::vector<int>{4, 3, 3}));
    EXPECT_EQ(balanced(1, {0, 0, 0}), (std::vector<int>{1, 1, 1}));
    EXPECT_EQ(balanced(1024, {0, 0, 0, 0, 0}), (std::vector<int>{4, 4, 4, 4, 4}));
    EXPECT_EQ(balanced(12, {4, 3}), (std::vector<int>{4, 3}));
    EXPECT_EQ(balanced(2147483647, {0, 0, 0}), (std::vector<int>{2147483647, 1, 1}));
    EXPECT_EQ(balanced(1, {}), (std::vector<int>{}));
}

TEST(Dims, EveryProductIsRight) {
    for (int nodes = 1; nodes <= 3000; ++nodes) {
        for (int dimensions = 1; dimensions <= 5; ++dimensions) {
            const auto dims = balanced(nodes, std::vector<int>(dimensions, 0));
            EXPECT_EQ(std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>()), nodes);
            EXPECT_TRUE(std::is_sorted(dims.rbegin(), dims.rend()));
        }
    }
}

// All ways to write a number as falling factors, and of them the closest: by what lies between the
// largest and the smallest, then the one whose smallest, second smallest … are larger.
void find_closest(std::vector<int>& chosen, std::size_t at, int number, std::vector<int>& best) {
    if (at == chosen.size()) {
        const auto key = [](const std::vector<int>& dims) {
            return std::pair(dims.back() - dims.front(), std::vector(dims.rbegin(), dims.rend()));
        };
        if (number == 1 && (best.empty() || key(chosen) > key(best))) {
            best = chosen;
        }
        return;
    }
    for (int factor = 1; factor <= number && (at == 0 || factor <= chosen[at - 1]); ++factor) {
        if (number % factor == 0) {
            chosen[at] = factor;
            find_closest(chosen, at + 1, number / factor, best);
        }
    }
}

TEST(Dims, AreTheClosestOfAll) {
    EXPECT_EQ(balanced(5040, {0, 0, 0}), (std::vector<int>{21, 16, 15}));
    EXPECT_EQ(balanced(7488, {0, 0, 0}), (std::vector<int>{26, 18, 16}));
    EXPECT_EQ(balanced(590520, {0, 0, 0, 0}), (std::vector<int>{38, 37, 21, 20}));
    EXPECT_EQ(balanced(98784, std::vector<int>(5, 0)), (std::vector<int>{14, 14, 9, 8, 7}));
    EXPECT_EQ(balanced(1102701600, std::vector<int>(5, 0)),
              (std::vector<int>{68, 66, 65, 63, 60})); // quickly, with many divisors
    for (int nodes = 1; nodes <= 2000; ++nodes) {
        for (std::size_t dimensions = 1; dimensions <= 4; ++dimensions) {
            std::vector<int> chosen(dimensions), best;
            find_closest(chosen, 0, nodes, best);
            ASSERT_EQ(balanced(nodes, std::vector<int>(dimensions, 0)), best) << nodes;
        }
    }
}

TEST(Dims, RefuseWhatDoesNotDivide) {
    EXPECT_EQ(refused(7, {2, 0}), MPI_ERR_DIMS);
    EXPECT_EQ(refused(8, {2, 2}), MPI_ERR_DIMS);
    EXPECT_EQ(refused(8, {-2, 0}), MPI_ERR_DIMS);
    EXPECT_EQ(refused(8, {16, 0}), MPI_ERR_DIMS);
    EXPECT_EQ(refused(2, {2147483647, 2147483647, 0}), MPI_ERR_DIMS);
    EXPECT_EQ(refused(0, {0}), MPI_ERR_ARG);
}

TEST(Grid, CoordinatesAndBack) {
    const int dims[] = {2, 3, 4};
    const int periods[] = {0, 1, 0};
    const Topology grid = make_grid(3, dims, periods, 17);
    EXPECT_EQ(grid.coords, (std::vector<int>{1, 1, 1}));
    for (int rank = 0; rank < 24; ++rank) {
        int coords[3];
        coordinates_of(grid, rank, coords);
        EXPECT_EQ(rank_at(grid, coords), rank);
    }
    const int wrapped[] = {1, -2, 1};
    EXPECT_EQ(rank_at(grid, wrapped), 17);
    const int outside[] = {2, 0, 0};
    EXPECT_EQ(rank_at(grid, outside), MPI_PROC_NULL);
    EXPECT_EQ(grid.sources, (std::vector<int>{5, MPI_PROC_NULL, 13, 21, 16, 18}));
    EXPECT_EQ(rank_along(grid, 1, 2147483647), 21); // 2^31 - 1 is 1 modulo 3
}

TEST(Graph, OwnNeighbours) {
    const int index[] = {2, 3, 4, 6};
    const int edges[] = {1, 3, 0, 3, 0, 2};
    EXPECT_EQ(make_graph(4, index, edges, 3).destinations, (std::vector<int>{0, 2}));
    EXPECT_EQ(make_graph(4, index, edges, 0).sources, (std::vector<int>{1, 3}));
    EXPECT_FALSE(check_graph(4, index, edges));
    const int wrong[] = {1, 3, 0, 4, 0, 2};
    Error error = check_graph(4, index, wrong);
    EXPECT_EQ(error.error_class(), MPI_ERR_RANK);
    error.drop();
}

} // namespace
} // namespace warren::comm
