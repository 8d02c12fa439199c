#include "launch/mpiexec/heap_arenas.hpp"

#include <gtest/gtest.h>

namespace warren::launch {
namespace {

TEST(HeapArenas, RanksHaveOneEachWhileMappingsLast) {
    constexpr std::uint64_t usual = 65530;
    EXPECT_EQ(heap_arenas(1, usual), 65);
    EXPECT_EQ(heap_arenas(6000, usual), 6064);
    for (const std::uint64_t ranks : {7000U, 7500U, 9000U, 10000U}) {
        const auto arenas = static_cast<std::uint64_t>(heap_arenas(ranks, usual));
        EXPECT_LT(arenas, ranks);
        EXPECT_GE(arenas, 64U);
        EXPECT_LE(6 * ranks + 3 * arenas, usual - usual / 16) << ranks;
    }
    EXPECT_EQ(heap_arenas(10000, 1'000'000), 10064);
}

TEST(HeapArenas, ThereAreAlwaysSome) {
    EXPECT_EQ(heap_arenas(20000, 65530), 64);
    EXPECT_EQ(heap_arenas(100, 0), 64);
    EXPECT_EQ(heap_arenas(UINT32_MAX, UINT64_MAX), INT_MAX);
}

} // namespace
} // namespace warren::launch
