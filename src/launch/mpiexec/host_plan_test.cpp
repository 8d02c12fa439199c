#include "launch/mpiexec/host_plan.hpp"

#include <memory>
#include <unistd.h>

#include <gtest/gtest.h>

namespace warren::launch {
namespace {

HostPlan small_plan() {
    HostPlan plan;
    plan.first_rank = 5;
    plan.reports = 7;
    plan.stack_bytes = 1 << 20;
    plan.verbose = true;
    plan.segment = 21;
    plan.loads_offset = 1 << 20;
    plan.balancer = "greedy";
    plan.balance_period_ns = 1'000'000'000'000;
    plan.balance_collectives = 17;
    plan.balance_record = "file";
    plan.distances = {0, 1, 1, 0};
    plan.nodes = {0, -1, 1};
    plan.steals = false;
    plan.workers = {3, -1, 0};
    plan.library = "/lib/libmpi";
    plan.kept = {4, 9};
    plan.programs = {{"./a", "/tmp", {"a", "", "two words"}, {"WARREN_RANK=", "A=1"}},
                     {"/bin/b", "", {"b"}, {"WARREN_RANK="}}};
    plan.programs[1].own_allocator = true;
    plan.programs[1].preloaded = {"/lib/tool.so"};
    plan.ranks.resize(3);
    plan.ranks[0] = {.program = 0, .input = 0, .output = 11, .errors = 12, .manager = 20};
    plan.ranks[1] = {.program = 1, .output = 13, .errors = 14};
    CpuSet processors;
    processors.add(0);
    processors.add(200);
    plan.ranks[1].processors = std::make_shared<const CpuSet>(processors);
    plan.ranks[2] = {.program = 1, .output = 15, .errors = 16};
    return plan;
}

std::string refusal(int descriptor) {
    HostPlan plan;
    Error error = HostPlan::read(descriptor, plan);
    const std::unique_ptr<ErrorRecord> record(error.take());
    return record ? record->text : "";
}

TEST(HostPlan, IsReadAsWritten) {
    const HostPlan plan = small_plan();
    int descriptor = -1;
    ASSERT_FALSE(plan.write(descriptor));
    HostPlan read;
    ASSERT_FALSE(HostPlan::read(descriptor, read));
    close(descriptor);
    EXPECT_EQ(read.first_rank, 5U);
    EXPECT_EQ(read.reports, 7);
    EXPECT_EQ(read.stack_bytes, 1U << 20);
    EXPECT_EQ(read.workers, plan.workers);
    EXPECT_TRUE(read.verbose);
    EXPECT_EQ(read.segment, 21);
    EXPECT_EQ(read.loads_offset, 1U << 20);
    EXPECT_EQ(read.balancer, "greedy");
    EXPECT_EQ(read.balance_period_ns, plan.balance_period_ns);
    EXPECT_EQ(read.balance_collectives, 17U);
    EXPECT_EQ(read.balance_record, "file");
    EXPECT_EQ(read.distances, plan.distances);
    EXPECT_EQ(read.nodes, plan.nodes);
    EXPECT_FALSE(read.steals);
    EXPECT_EQ(read.library, plan.library);
    EXPECT_EQ(read.kept, plan.kept);
    ASSERT_EQ(read.programs.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(read.programs[i].path, plan.programs[i].path);
        EXPECT_EQ(read.programs[i].preloaded, plan.programs[i].preloaded);
        EXPECT_EQ(read.programs[i].directory, plan.programs[i].directory);
        EXPECT_EQ(read.programs[i].own_allocator, plan.programs[i].own_allocator);
        EXPECT_EQ(read.programs[i].arguments, plan.programs[i].arguments);
        EXPECT_EQ(read.programs[i].environment, plan.programs[i].environment);
    }
    ASSERT_EQ(read.ranks.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(read.ranks[i].program, plan.ranks[i].program);
        EXPECT_EQ(read.ranks[i].input, plan.ranks[i].input);
        EXPECT_EQ(read.ranks[i].output, plan.ranks[i].output);
        EXPECT_EQ(read.ranks[i].errors, plan.ranks[i].errors);
        EXPECT_EQ(read.ranks[i].manager, plan.ranks[i].manager);
        ASSERT_EQ(read.ranks[i].processors != nullptr, plan.ranks[i].processors != nullptr);
        if (plan.ranks[i].processors != nullptr) {
            EXPECT_EQ(*read.ranks[i].processors, *plan.ranks[i].processors);
        }
    }
}

TEST(HostPlan, IsRefusedWhenCutOrLongerOrSomethingElse) {
    int descriptor = -1;
    ASSERT_FALSE(small_plan().write(descriptor));
    const off_t size = lseek(descriptor, 0, SEEK_END);
    for (off_t cut = size - 1; cut >= 0; --cut) {
        ASSERT_EQ(ftruncate(descriptor, cut), 0);
        EXPECT_NE(refusal(descriptor), "") << cut;
    }
    close(descriptor);
    ASSERT_FALSE(small_plan().write(descriptor));
    ASSERT_EQ(write(descriptor, "x", 1), 1);
    EXPECT_NE(refusal(descriptor).find("damaged"), std::string::npos);
    const std::uint64_t huge = ~std::uint64_t{0};
    for (off_t at = 0; at + 8 <= size; at += 8) { // counts that are beyond all bounds
        ASSERT_EQ(ftruncate(descriptor, size), 0);
        ASSERT_EQ(pwrite(descriptor, &huge, sizeof huge, at), 8);
        refusal(descriptor); // one way or the other, but not a crash
    }
    close(descriptor);
    EXPECT_NE(refusal(descriptor).find("for mpiexec only"), std::string::npos);
}

} // namespace
} // namespace warren::launch
