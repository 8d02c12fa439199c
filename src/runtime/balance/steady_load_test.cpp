#include "runtime/balance/steady_load.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace warren::balance {
namespace {

std::vector<std::uint64_t> expected_after(const std::vector<std::uint64_t>& loads) {
    SteadyLoad steady;
    std::vector<std::uint64_t> expected;
    for (const std::uint64_t load : loads) {
        expected.push_back(steady.after(load));
    }
    return expected;
}

TEST(SteadyLoad, WhatHappensOnceIsNotExpectedAgain) {
    EXPECT_EQ(expected_after({100, 102, 150, 101, 30, 100, 99}),
              (std::vector<std::uint64_t>{100, 100, 102, 102, 101, 100, 99}));
    EXPECT_EQ(expected_after({5000, 100, 100}), (std::vector<std::uint64_t>{5000, 100, 100}));
}

TEST(SteadyLoad, WhatHasChangedCountsFromTheSecondTimeOn) {
    EXPECT_EQ(expected_after({10, 10, 10, 90, 95, 92, 5, 6}),
              (std::vector<std::uint64_t>{10, 10, 10, 10, 90, 92, 92, 6}));
}

TEST(SteadyLoad, WhatGrowsOrShrinksIsOneBehind) {
    EXPECT_EQ(expected_after({0, 10, 20, 30, 40, 30, 20}),
              (std::vector<std::uint64_t>{0, 0, 10, 20, 30, 30, 30}));
}

} // namespace
} // namespace warren::balance
