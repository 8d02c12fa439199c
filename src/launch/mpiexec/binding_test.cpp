#include "launch/mpiexec/binding.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "topology/discovery/hwloc_library.hpp"

namespace warren::launch {
namespace {

std::vector<Place> cores(std::size_t count) {
    std::vector<Place> made;
    for (std::size_t index = 0; index < count; ++index) {
        Place place{.name = "core " + std::to_string(index), .processors = {}};
        place.processors.add(index);
        place.processors.add(index + count); // the second hardware thread
        made.push_back(place);
    }
    return made;
}

std::vector<std::string> texts(const BindingPlan& plan) {
    std::vector<std::string> made;
    for (const CpuSet& set : plan.sets) {
        made.push_back(set.text());
    }
    return made;
}

// Who forks a child that discovers holds what hwloc's calls hold.
TEST(Binding, PlacesAreLookedForWhenNobodyElseDiscovers) {
    std::string problem;
    if (discovery::HwlocLibrary::get(problem) == nullptr) {
        GTEST_SKIP() << problem;
    }
    CpuSet allowed;
    allowed.add(0);
    std::vector<Place> places;
    std::atomic<bool> begun = false;
    std::atomic<bool> found = false;
    std::unique_lock others(discovery::HwlocLibrary::calls());
    std::thread looks([&] {
        begun = true;
        Error error = find_places(BindTo::hwthread, allowed, places);
        delete error.take();
        found = true;
    });
    while (!begun) {
        std::this_thread::yield();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_FALSE(found);
    others.unlock();
    looks.join();
    EXPECT_TRUE(found);
}

TEST(Binding, SharesAreEqualNeighbouringAndComplete) {
    BindingPlan plan;
    assign_places(cores(8), 4, Spread::share, plan);
    EXPECT_EQ(texts(plan),
              (std::vector<std::string>{"0,1,8,9", "2,3,10,11", "4,5,12,13", "6,7,14,15"}));
    EXPECT_EQ(plan.names[1], "core 2 to core 3");
    for (std::uint32_t ranks = 1; ranks <= 8; ++ranks) {
        BindingPlan any;
        assign_places(cores(8), ranks, Spread::share, any);
        CpuSet all;
        std::uint32_t sum = 0;
        for (const CpuSet& set : any.sets) {
            all |= set;
            sum += set.count();
        }
        EXPECT_EQ(all.count(), 16U); // nothing is idle,
        EXPECT_EQ(sum, 16U);         // nothing is shared
    }
}

TEST(Binding, OneByOneStartsOver) {
    BindingPlan plan;
    assign_places(cores(2), 5, Spread::one_by_one, plan);
    EXPECT_EQ(texts(plan), (std::vector<std::string>{"0,2", "1,3", "0,2", "1,3", "0,2"}));
}

TEST(Binding, BlocksKeepNeighboursTogether) {
    BindingPlan plan;
    assign_places(cores(2), 5, Spread::block, plan);
    EXPECT_EQ(plan.names,
              (std::vector<std::string>{"core 0", "core 0", "core 0", "core 1", "core 1"}));
}

TEST(Binding, AutomaticBindsNothingWhenItCouldHurt) {
    CpuSet two;
    two.add(0);
    two.add(1);
    for (const auto& [ranks, quota] : {std::pair{1U, 0U}, {3U, 0U}, {2U, 1U}}) {
        BindingPlan plan;
        Error error = plan_bindings(BindTo::automatic, ranks, two, quota, plan);
        EXPECT_FALSE(error);
        EXPECT_TRUE(plan.sets.empty());
        EXPECT_FALSE(plan.reason.empty());
    }
}

TEST(Binding, PlacesStayWithinWhatIsAllowed) {
    const CpuSet allowed = CpuSet::allowed();
    for (const BindTo kind : {BindTo::core, BindTo::hwthread, BindTo::numa, BindTo::socket}) {
        std::vector<Place> places;
        Error error = find_places(kind, allowed, places);
        if (error) {
            const std::unique_ptr<ErrorRecord> record(error.take());
            EXPECT_FALSE(record->text.empty());
            continue;
        }
        for (const Place& place : places) {
            CpuSet outside = place.processors;
            outside &= allowed;
            EXPECT_EQ(outside, place.processors) << place.name;
            EXPECT_FALSE(place.processors.empty()) << place.name;
        }
    }
}

TEST(Binding, SetsAreWrittenAsTheKernelDoes) {
    CpuSet set;
    EXPECT_EQ(set.text(), "");
    for (const std::size_t processor : {0U, 1U, 2U, 3U, 63U, 64U, 65U, 200U, 8191U}) {
        set.add(processor);
    }
    EXPECT_EQ(set.text(), "0-3,63-65,200,8191");
    EXPECT_EQ(set.count(), 9U);
}

TEST(Binding, RanksOfOneProcessShareTheirPlaces) {
    BindingPlan plan;
    const Place core_0{.name = "core 0", .processors = {}};
    const Place core_1{.name = "core 1", .processors = {}};
    assign_places({core_0, core_1}, 4, Spread::one_by_one, plan);
    plan.sets[0].add(0);
    plan.sets[1].add(1);
    plan.sets[3].add(3);
    join_places(2, plan);
    EXPECT_EQ(plan.sets[0].text(), "0,1");
    EXPECT_EQ(plan.sets[1].text(), "0,1");
    EXPECT_EQ(plan.sets[2].text(), "3");
    EXPECT_EQ(plan.names[1], "core 0, core 1");
}

} // namespace
} // namespace warren::launch
