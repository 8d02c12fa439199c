#include "runtime/balance/balancer.hpp"

#include <algorithm>
#include <ctime>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <random>

namespace warren::balance {
namespace {

// Workers in `nodes` NUMA nodes; ranks in blocks on them.
Matrix machine(std::uint32_t workers, std::uint32_t nodes, std::vector<double> loads) {
    Matrix matrix;
    matrix.workers = workers;
    matrix.loads = std::move(loads);
    for (std::uint32_t from = 0; from < workers; ++from) {
        for (std::uint32_t to = 0; to < workers; ++to) {
            const std::uint32_t per_node = workers / nodes;
            matrix.distances.push_back(from == to ? 0 : from / per_node == to / per_node ? 2 : 4);
        }
    }
    for (std::uint32_t rank = 0; rank < matrix.ranks(); ++rank) {
        matrix.placement.push_back(rank * workers / matrix.ranks());
    }
    matrix.memory = matrix.placement;
    return matrix;
}

// The loads of a hot spot: the heaviest is `lambda` above the mean.
std::vector<double> hot_spot(std::uint32_t ranks, double lambda) {
    std::vector<double> loads(ranks, 1.0);
    for (std::uint32_t rank = 0; rank < ranks / 4; ++rank) {
        loads[rank] += lambda * 4 / 3 * (1 + lambda / 3);
    }
    return loads;
}

std::vector<double> random_loads(std::uint32_t ranks, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::exponential_distribution<double> distribution(1.0);
    std::vector<double> loads(ranks);
    for (double& load : loads) {
        load = distribution(random);
    }
    return loads;
}

double imbalance_after(const Matrix& matrix, const Placement& placement) {
    return imbalance(worker_loads(matrix, placement));
}

TEST(BalancerTest, all_have_names_of_their_own) {
    for (const Balancer& balancer : balancers()) {
        EXPECT_EQ(find_balancer(balancer.name), &balancer);
    }
    EXPECT_EQ(find_balancer("best"), nullptr);
    EXPECT_EQ(find_balancer(""), nullptr);
}

TEST(BalancerTest, imbalance_is_what_the_most_is_above_the_mean) {
    EXPECT_DOUBLE_EQ(imbalance({3, 1}), 0.5);
    EXPECT_DOUBLE_EQ(imbalance({2, 2, 2}), 0.0);
    EXPECT_DOUBLE_EQ(imbalance({0, 0}), 0.0);
    EXPECT_DOUBLE_EQ(imbalance({}), 0.0);
}

TEST(BalancerTest, none_moves_nobody) {
    const Matrix matrix = machine(4, 2, random_loads(32, 1));
    EXPECT_EQ(place_none(matrix), matrix.placement);
}

TEST(BalancerTest, skewed_loads_become_even) {
    for (const std::uint32_t workers : {2U, 4U, 8U}) {
        for (const double lambda : {0.4, 2.0}) {
            const Matrix matrix = machine(workers, 2, hot_spot(workers * 16, lambda));
            EXPECT_GT(imbalance_after(matrix, matrix.placement), 0.05);
            for (const Balancer& balancer : balancers()) {
                if (balancer.place != place_none) {
                    EXPECT_LT(imbalance_after(matrix, balancer.place(matrix)), 0.05)
                        << balancer.name << " " << workers << " " << lambda;
                }
            }
        }
    }
}

TEST(BalancerTest, random_loads_become_even_and_nobody_is_lost) {
    for (std::uint32_t seed = 0; seed < 50; ++seed) {
        const Matrix matrix = machine(8, 2, random_loads(128 + seed, seed));
        for (const Balancer& balancer : balancers()) {
            const Placement placement = balancer.place(matrix);
            ASSERT_EQ(placement.size(), matrix.loads.size());
            for (const std::uint32_t worker : placement) {
                ASSERT_LT(worker, matrix.workers);
            }
            if (balancer.place != place_none) {
                EXPECT_LT(imbalance_after(matrix, placement), 0.05) << balancer.name << seed;
            }
        }
    }
}

TEST(BalancerTest, refine_leaves_what_is_even_and_moves_few) {
    const Matrix even = machine(4, 2, std::vector<double>(64, 1.0));
    EXPECT_EQ(place_refined(even), even.placement);
    Matrix nearly = even;
    nearly.loads[0] = 3.0;
    EXPECT_LE(moves(nearly, place_refined(nearly)), 6U);
    EXPECT_GT(moves(nearly, place_greedy(nearly)), 20U);
}

TEST(BalancerTest, one_rank_that_is_too_large_is_left_alone) {
    const Matrix matrix = machine(2, 1, {10, 1, 1, 1});
    for (const Balancer& balancer : balancers()) {
        if (balancer.place != place_none) {
            EXPECT_DOUBLE_EQ(worker_loads(matrix, balancer.place(matrix))[0], 10.0)
                << balancer.name;
        }
    }
}

TEST(BalancerTest, odd_matrices_are_no_trouble) {
    for (const Balancer& balancer : balancers()) {
        EXPECT_EQ(balancer.place(machine(1, 1, {1, 2, 3})), Placement(3, 0));
        EXPECT_EQ(balancer.place(machine(4, 1, std::vector<double>(8, 0.0))).size(), 8U);
        EXPECT_EQ(balancer.place(machine(4, 1, {5.0})).size(), 1U);
        EXPECT_EQ(balancer.place(machine(4, 1, {})).size(), 0U);
    }
}

// Two grids of ranks that talk within themselves only, mixed up among the workers of two nodes.
TEST(BalancerTest, the_topology_aware_one_brings_those_together_that_talk) {
    Matrix matrix = machine(8, 2, std::vector<double>(64, 0.001));
    std::mt19937 random(7);
    std::vector<std::uint32_t> name(64); // whom chance takes for a rank of the grids
    std::iota(name.begin(), name.end(), 0U);
    std::shuffle(name.begin(), name.end(), random);
    for (std::uint32_t rank = 0; rank < 64; ++rank) {
        for (const std::uint32_t other : {rank ^ 1, (rank & 32) | ((rank + 8) & 31)}) {
            matrix.exchanges.push_back({name[rank], name[other], 10, 1 << 20});
        }
    }
    const Placement placement = place_by_topology(matrix);
    EXPECT_LT(imbalance_after(matrix, placement), 0.05);
    EXPECT_LT(traffic(matrix, placement), 0.6 * traffic(matrix, matrix.placement));
    EXPECT_LT(traffic(matrix, placement), traffic(matrix, place_greedy(matrix)));
}

// Ten thousand ranks with 32 peers each on a large machine: a full search would take many times as
// long as this.
TEST(BalancerTest, the_topology_aware_one_comes_to_an_end_soon) {
    constexpr std::uint32_t ranks = 10'000;
    Matrix matrix = machine(256, 8, random_loads(ranks, 11));
    std::mt19937 random(12);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        for (std::uint32_t peer = 1; peer <= 32; ++peer) {
            const std::uint32_t other =
                peer <= 16 ? (rank + peer) % ranks : static_cast<std::uint32_t>(random() % ranks);
            matrix.exchanges.push_back({rank, other, 10, 80'000});
        }
    }
    const std::clock_t begin = std::clock();
    const Placement placement = place_by_topology(matrix);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, 2.5); // 0.1, and 4 if all moves are considered
    EXPECT_LT(imbalance_after(matrix, placement), 0.05);
    EXPECT_LT(traffic(matrix, placement), traffic(matrix, place_refined(matrix)));
}

TEST(BalancerTest, the_topology_aware_one_keeps_ranks_near_their_memory) {
    Matrix matrix = machine(4, 2, std::vector<double>(32, 1.0));
    for (std::uint32_t rank = 0; rank < 32; ++rank) {
        matrix.placement[rank] = rank % 4; // all over the machine
    }
    const Placement placement = place_by_topology(matrix);
    EXPECT_LT(imbalance_after(matrix, placement), 0.05);
    for (std::uint32_t rank = 0; rank < 32; ++rank) {
        EXPECT_LE(matrix.distance(placement[rank], matrix.memory[rank]), 2U) << rank;
    }
}

TEST(MatrixTest, is_read_as_written) {
    Matrix matrix = machine(4, 2, random_loads(9, 3));
    matrix.exchanges = {{0, 8, 5, 4096}, {8, 0, 1, 0}};
    Matrix read;
    ASSERT_FALSE(parse("# a comment\n\n" + text_of(matrix), read));
    EXPECT_EQ(text_of(read), text_of(matrix));
    EXPECT_EQ(read.placement, matrix.placement);
    EXPECT_EQ(read.exchanges[0].bytes, 4096U);
}

TEST(MatrixTest, what_is_damaged_is_refused_with_its_line) {
    const std::string begin = "warren-balance 1\nworkers 2\ndistance 0 1\ndistance 1 0\n";
    for (const auto& [text, reason] : std::vector<std::pair<std::string, std::string>>{
             {"", "a matrix has"},
             {"workers 2\n", "line 1"},
             {"warren-balance 2\n", "line 1"},
             {"warren-balance 1\nworkers 0\n", "line 2"},
             {"warren-balance 1\nworkers 99999999\n", "line 2"},
             {"warren-balance 1\nworkers 2\ndistance 0\n", "line 3"},
             {"warren-balance 1\nworkers 2\ndistance 0 1\nrank 1 0 0\n", "a matrix has"},
             {begin, "a matrix has"},
             {begin + "distance 0 1\n", "line 5"},
             {begin + "rank 1 2 0\n", "line 5"},
             {begin + "rank -1 0 0\n", "line 5"},
             {begin + "rank nan 0 0\n", "line 5"},
             {begin + "rank 1 0 0\nexchange 0 1 1 1\n", "line 6"},
             {begin + "rank 1 0 0\nnonsense\n", "line 6"}}) {
        Matrix matrix;
        Error error = parse(text, matrix);
        const std::unique_ptr<ErrorRecord> record(error.take());
        ASSERT_TRUE(record) << text;
        EXPECT_NE(record->text.find(reason), std::string::npos) << text << record->text;
        EXPECT_TRUE(matrix.loads.empty());
    }
}

} // namespace
} // namespace warren::balance
