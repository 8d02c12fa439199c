// Parts of distributed arrays, against a walk over all elements that asks for each who has it.
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "mpi/datatype/construct.hpp"

namespace warren::datatype {
namespace {

struct Case {
    std::vector<int> sizes;
    std::vector<int> distributions;
    std::vector<int> arguments;
    std::vector<int> processes;
    int order = MPI_ORDER_C;

    int dimensions() const { return static_cast<int>(sizes.size()); }
};

// The process that has element `index` of a dimension.
int owner(const Case& made, std::size_t dimension, int index) {
    const int size = made.sizes[dimension];
    const int processes = made.processes[dimension];
    int argument = made.arguments[dimension];
    switch (made.distributions[dimension]) {
    case MPI_DISTRIBUTE_BLOCK:
        if (argument == MPI_DISTRIBUTE_DFLT_DARG) {
            argument = (size + processes - 1) / processes;
        }
        return index / argument;
    case MPI_DISTRIBUTE_CYCLIC:
        return index / (argument == MPI_DISTRIBUTE_DFLT_DARG ? 1 : argument) % processes;
    default:
        return 0;
    }
}

// The elements of the array that a rank has, as places in memory in their order there.
std::vector<int> naive(const Case& made, int rank) {
    const std::size_t dimensions = made.sizes.size();
    const int total = std::accumulate(made.sizes.begin(), made.sizes.end(), 1, std::multiplies<>());
    std::vector<int> found;
    for (int place = 0; place < total; ++place) {
        std::vector<int> index(dimensions);
        int left = place;
        for (std::size_t i = 0; i < dimensions; ++i) {
            const std::size_t d = made.order == MPI_ORDER_C ? dimensions - 1 - i : i;
            index[d] = left % made.sizes[d];
            left /= made.sizes[d];
        }
        int who = 0;
        for (std::size_t d = 0; d < dimensions; ++d) {
            who = who * made.processes[d] + owner(made, d, index[d]);
        }
        if (who == rank) {
            found.push_back(place);
        }
    }
    return found;
}

Error make(const Case& made, int size, int rank, const Datatype& element, Draft& draft) {
    return make_darray({.size = size,
                        .rank = rank,
                        .dimensions = made.dimensions(),
                        .processes = made.processes.data()},
                       {.values = made.sizes.data(), .wide = false}, made.distributions.data(),
                       made.arguments.data(), made.order, element, draft);
}

class DistributedArrays : public testing::TestWithParam<unsigned> {};

TEST_P(DistributedArrays, AreWhereTheirOwnersAre) {
    std::mt19937 random(GetParam());
    const auto number = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };
    const int kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    for (int round = 0; round < 40; ++round) {
        Case made;
        made.order = number(0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
        int ranks = 1;
        const int dimensions = number(1, 4);
        for (int d = 0; d < dimensions; ++d) {
            const int size = number(1, 9);
            const int kind = kinds[number(0, 2)];
            const int processes = kind == MPI_DISTRIBUTE_NONE ? 1 : number(1, 4);
            int argument = MPI_DISTRIBUTE_DFLT_DARG;
            if (kind == MPI_DISTRIBUTE_CYCLIC && number(0, 1) == 0) {
                argument = number(1, 4);
            } else if (kind == MPI_DISTRIBUTE_BLOCK && number(0, 1) == 0) {
                argument = number((size + processes - 1) / processes, size);
            }
            made.sizes.push_back(size);
            made.distributions.push_back(kind);
            made.processes.push_back(processes);
            made.arguments.push_back(argument);
            ranks *= processes;
        }
        const int total =
            std::accumulate(made.sizes.begin(), made.sizes.end(), 1, std::multiplies<>());
        std::vector<int> array(static_cast<std::size_t>(total));
        std::iota(array.begin(), array.end(), 0);
        for (int rank = 0; rank < ranks; ++rank) {
            const std::vector<int> expected = naive(made, rank);
            Draft draft;
            ASSERT_FALSE(make(made, ranks, rank, basic(MPI_INT), draft));
            ASSERT_EQ(draft.type.size, 4 * static_cast<MPI_Count>(expected.size()));
            ASSERT_EQ(draft.type.lower_bound, 0);
            ASSERT_EQ(draft.type.extent, 4 * total);
            std::vector<int> packed(expected.size());
            draft.type.pack(array.data(), 1, packed.data());
            ASSERT_EQ(packed, expected) << "rank " << rank << " of " << ranks;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DistributedArrays, testing::Range(0U, 8U));

TEST(DistributedArraysErrors, RefuseGridsAndBlocksThatDoNotFit) {
    const Case right{.sizes = {10, 6},
                     .distributions = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE},
                     .arguments = {5, MPI_DISTRIBUTE_DFLT_DARG},
                     .processes = {2, 1},
                     .order = MPI_ORDER_C};
    Draft draft;
    EXPECT_FALSE(make(right, 2, 1, basic(MPI_INT), draft));
    const auto refused = [&](int size, int rank, auto change) {
        Case wrong = right;
        change(wrong);
        Error error = make(wrong, size, rank, basic(MPI_INT), draft);
        const bool as_expected = error && error.error_class() == MPI_ERR_ARG;
        error.drop();
        return as_expected;
    };
    EXPECT_TRUE(refused(2, 2, [](Case&) {}));
    EXPECT_TRUE(refused(3, 0, [](Case&) {}));
    EXPECT_TRUE(refused(2, 0, [](Case& c) { c.arguments[0] = 4; })) << "2 · 4 < 10";
    EXPECT_TRUE(refused(2, 0, [](Case& c) { c.arguments[0] = -1; }));
    EXPECT_TRUE(refused(2, 0, [](Case& c) { c.sizes[1] = 0; }));
    EXPECT_TRUE(refused(2, 0, [](Case& c) { c.distributions[0] = MPI_DISTRIBUTE_NONE; }));
    EXPECT_TRUE(refused(2, 0, [](Case& c) { c.distributions[1] = 99; }));
    EXPECT_TRUE(refused(2, 0, [](Case& c) { c.order = 99; }));
    EXPECT_TRUE(refused(2, 0, [](Case& c) { c.processes[1] = 0; }));
}

} // namespace
} // namespace warren::datatype
