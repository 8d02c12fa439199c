#include "launch/mpiexec/process_manager.hpp"

#include <gtest/gtest.h>

namespace warren::launch {
namespace {

// The only reply, to the rank itself.
std::string answer(ProcessManager& manager, std::uint32_t rank, const std::string& line) {
    const auto replies = manager.take(rank, 7, line + "\n");
    EXPECT_EQ(replies.size(), 1U) << line;
    return replies.size() == 1 && replies[0].rank == rank ? replies[0].line : "";
}

TEST(ProcessManager, TellsARankWhoItIs) {
    ProcessManager manager(3, "job");
    EXPECT_EQ(answer(manager, 0, "cmd=init pmi_version=1 pmi_subversion=1"),
              "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    EXPECT_EQ(answer(manager, 1, "cmd=get_my_kvsname"), "cmd=my_kvsname kvsname=job\n");
    EXPECT_EQ(answer(manager, 1, "cmd=get_appnum"), "cmd=appnum appnum=7\n");
    EXPECT_EQ(answer(manager, 1, "cmd=get_universe_size"), "cmd=universe_size size=3\n");
    EXPECT_EQ(answer(manager, 2, "cmd=get kvsname=job key=PMI_process_mapping"),
              "cmd=get_result rc=0 msg=success value=(vector,(0,1,3))\n");
    EXPECT_EQ(answer(manager, 2, "cmd=finalize"), "cmd=finalize_ack\n");
}

TEST(ProcessManager, KeepsWhatRanksPut) {
    ProcessManager manager(2, "job");
    EXPECT_EQ(answer(manager, 0, "cmd=get kvsname=job key=card-1").find("cmd=get_result rc=-1"),
              0U);
    EXPECT_EQ(answer(manager, 1, "cmd=put kvsname=job key=card-1 value=a=b#c"),
              "cmd=put_result rc=0 msg=success\n");
    EXPECT_EQ(answer(manager, 0, "cmd=get kvsname=job key=card-1"),
              "cmd=get_result rc=0 msg=success value=a=b#c\n");
}

TEST(ProcessManager, LinesMayComeInPartsAndTogether) {
    ProcessManager manager(1, "job");
    EXPECT_TRUE(manager.take(0, 0, "cmd=get_").empty());
    const auto replies = manager.take(0, 0, "maxes\ncmd=finalize\ncmd=");
    ASSERT_EQ(replies.size(), 2U);
    EXPECT_EQ(replies[0].line.find("cmd=maxes kvsname_max="), 0U);
    EXPECT_EQ(replies[1].line, "cmd=finalize_ack\n");
}

TEST(ProcessManager, TheBarrierIsLeftWhenAllAreIn) {
    ProcessManager manager(3, "job");
    for (int turn = 0; turn < 2; ++turn) {
        EXPECT_TRUE(manager.take(2, 0, "cmd=barrier_in\n").empty());
        EXPECT_TRUE(manager.take(2, 0, "cmd=barrier_in\n").empty()); // once more counts for nothing
        EXPECT_TRUE(manager.take(0, 0, "cmd=barrier_in\n").empty());
        EXPECT_EQ(manager.take(1, 0, "cmd=barrier_in\n").size(), 3U);
    }
}

TEST(ProcessManager, AnAbortHasItsCodeAndMessage) {
    ProcessManager manager(2, "job");
    EXPECT_FALSE(manager.abort().asked);
    manager.take(1, 0, "cmd=abort exitcode=9 message=went wrong there\n");
    EXPECT_TRUE(manager.abort().asked);
    EXPECT_EQ(manager.abort().code, 9);
    EXPECT_EQ(manager.abort().message, "went wrong there");
}

TEST(ProcessManager, WhatItDoesNotKnowIsRefused) {
    ProcessManager manager(1, "job");
    EXPECT_NE(answer(manager, 0, "cmd=spawn").find("rc=-1"), std::string::npos);
    EXPECT_NE(answer(manager, 0, "nonsense").find("rc=-1"), std::string::npos);
    EXPECT_TRUE(manager.take(0, 0, std::string(100'000, 'x')).empty()); // forgotten
    EXPECT_EQ(answer(manager, 0, "cmd=finalize"), "cmd=finalize_ack\n");
}

} // namespace
} // namespace warren::launch
