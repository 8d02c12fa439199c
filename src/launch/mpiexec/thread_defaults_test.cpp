#include "launch/mpiexec/thread_defaults.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <map>

namespace warren::launch {
namespace {

std::string defaults(const ThreadShare& share, const std::map<std::string, std::string>& set = {}) {
    return text_of(thread_defaults(share, [&](const char* name) -> const char* {
        const auto found = set.find(name);
        return found == set.end() ? nullptr : found->second.c_str();
    }));
}

constexpr const char* passive = "OMP_WAIT_POLICY=passive KMP_BLOCKTIME=0 OPENBLAS_THREAD_TIMEOUT=4";

TEST(ThreadDefaults, CrowdedRanksGetOneThreadThatWaitsPassively) {
    const std::string one_thread = "OMP_NUM_THREADS=1 ";
    EXPECT_EQ(defaults({.ranks = 8, .processors = 2, .visible = 2}), one_thread + passive);
}

TEST(ThreadDefaults, WhatTheUserHasSetStays) {
    EXPECT_EQ(defaults({.ranks = 8, .processors = 2, .visible = 2}, {{"OMP_NUM_THREADS", "2"}}),
              passive);
    EXPECT_EQ(defaults({.ranks = 8, .processors = 2, .visible = 2},
                       {{"OMP_NUM_THREADS", "2"}, {"OMP_WAIT_POLICY", "active"}}),
              "OPENBLAS_THREAD_TIMEOUT=4");
    EXPECT_EQ(
        defaults({.ranks = 8, .processors = 2, .visible = 2}, {{"OMP_NUM_THREADS", "2"},
                                                               {"OMP_WAIT_POLICY", "active"},
                                                               {"OPENBLAS_THREAD_TIMEOUT", "20"}}),
        "");
}

TEST(ThreadDefaults, RanksWithProcessorsOfTheirOwnAreLeftAlone) {
    EXPECT_EQ(defaults({.ranks = 4, .processors = 16, .visible = 4}), "");
    EXPECT_EQ(defaults({.ranks = 1, .processors = 16, .visible = 16}), "");
    EXPECT_EQ(defaults({.ranks = 4, .processors = 16, .visible = 4}, {{"OMP_NUM_THREADS", "4,2"}}),
              "");
}

TEST(ThreadDefaults, UnboundRanksGetTheirShareOfTheProcessors) {
    EXPECT_EQ(defaults({.ranks = 4, .processors = 16, .visible = 16}), "OMP_NUM_THREADS=4");
}

TEST(ThreadDefaults, AQuotaCountsAsTheProcessorsThatItGrants) {
    EXPECT_EQ(defaults({.ranks = 1, .processors = 4, .visible = 64}), "OMP_NUM_THREADS=4");
    EXPECT_EQ(defaults({.ranks = 2, .processors = 4, .visible = 64}), "OMP_NUM_THREADS=2");
}

TEST(ThreadDefaults, MoreThreadsThanProcessorsWaitPassively) {
    EXPECT_EQ(defaults({.ranks = 4, .processors = 16, .visible = 4}, {{"OMP_NUM_THREADS", "8,2"}}),
              passive);
    EXPECT_EQ(defaults({.ranks = 1, .processors = 2, .visible = 2}, {{"OMP_NUM_THREADS", "3"}}),
              passive);
}

TEST(ThreadDefaults, AValueThatIsNoNumberCountsAsNone) {
    for (const char* const text : {"", "many", "-3"}) {
        EXPECT_EQ(
            defaults({.ranks = 4, .processors = 16, .visible = 4}, {{"OMP_NUM_THREADS", text}}), "")
            << text;
    }
}

TEST(ThreadDefaults, AProgramThatMakesItsRanksKeepsItsNumberOfThreads) {
    EXPECT_EQ(defaults({.ranks = 8, .processors = 2, .visible = 2, .makes_its_ranks = true}),
              passive);
}

} // namespace
} // namespace warren::launch
