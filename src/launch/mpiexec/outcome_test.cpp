#include "launch/mpiexec/outcome.hpp"

#include <csignal>
#include <cstdio>

#include <gtest/gtest.h>

namespace warren::launch {
namespace {

constexpr int exited(int code) {
    return code << 8;
}

EndedRanks ended(int wait_status, node::RankStage state, bool others_initialised = false) {
    return {.ranks = {3},
            .pid = 77,
            .wait_status = wait_status,
            .state = state,
            .program = "./solver",
            .others_initialised = others_initialised,
            .forwarded_signal = 0};
}

TEST(Outcome, RanksAreWrittenAsRanges) {
    EXPECT_EQ(describe_ranks({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
    EXPECT_EQ(describe_ranks({}), "");
}

TEST(Outcome, OfRanksThatEndTogetherThoseCountThatOthersWaitFor) {
    node::Segment segment;
    Error error = node::Segment::create({.ranks = 4, .cores = 4}, segment);
    ASSERT_FALSE(error);
    segment.slot(0).state = node::RankStage::finalised;
    segment.slot(2).state = node::RankStage::initialised;
    segment.slot(3).state = node::RankStage::initialised;
    EXPECT_EQ(gravest({0, 1, 2, 3}, segment, false).ranks, (std::vector<std::uint32_t>{2, 3}));
    EXPECT_EQ(gravest({0, 1}, segment, false).ranks, (std::vector<std::uint32_t>{1}));
    EXPECT_EQ(gravest({0, 1}, segment, false).state, node::RankStage::not_started);
    EndedRanks ended = gravest({0, 1, 2, 3}, segment, true);
    ended.wait_status = SIGKILL;
    EXPECT_TRUE(judge(ended).message.starts_with("ranks 0-3 (")) << judge(ended).message;
}

TEST(Outcome, ASuccessIsFine) {
    EXPECT_EQ(judge(ended(exited(0), node::RankStage::finalised, true)).verdict, Verdict::fine);
    EXPECT_EQ(judge(ended(exited(0), node::RankStage::not_started)).verdict, Verdict::fine);
}

TEST(Outcome, AFailureAfterFinalizeLetsTheOthersFinish) {
    const Outcome outcome = judge(ended(exited(9), node::RankStage::finalised, true));
    EXPECT_EQ(outcome.verdict, Verdict::failed);
    EXPECT_EQ(outcome.exit_code, 9);
}

TEST(Outcome, AnEndWithoutFinalizeEndsTheJobEvenWithCodeZero) {
    const Outcome outcome = judge(ended(exited(0), node::RankStage::initialised));
    EXPECT_EQ(outcome.verdict, Verdict::ends_job);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.message.find("MPI_Finalize"), std::string::npos);
}

TEST(Outcome, AnEndWithoutInitEndsTheJobOnlyWhenOthersWait) {
    EXPECT_EQ(judge(ended(exited(0), node::RankStage::not_started, true)).verdict,
              Verdict::ends_job);
    EXPECT_EQ(judge(ended(exited(4), node::RankStage::not_started, false)).verdict,
              Verdict::failed);
}

TEST(Outcome, ASignalIsNamedWithRankProgramAndProcess) {
    const Outcome outcome = judge(ended(SIGSEGV, node::RankStage::initialised));
    EXPECT_EQ(outcome.verdict, Verdict::ends_job);
    EXPECT_EQ(outcome.exit_code, 128 + SIGSEGV);
    for (const char* part : {"rank 3", "./solver", "77", "SIGSEGV"}) {
        EXPECT_NE(outcome.message.find(part), std::string::npos) << part;
    }
}

TEST(Outcome, AForwardedSignalIsNoCrash) {
    EndedRanks rank = ended(SIGINT, node::RankStage::initialised);
    rank.forwarded_signal = SIGINT;
    EXPECT_EQ(judge(rank).verdict, Verdict::failed);
    EXPECT_EQ(judge(rank).exit_code, 130);
}

TEST(Outcome, ARankThatAnotherOnesAbortEndsHasNotFailed) {
    EndedRanks rank = {};
    rank.wait_status = SIGKILL;
    rank.state = node::RankStage::doomed;
    EXPECT_EQ(judge(rank).verdict, Verdict::fine);
    rank.state = node::RankStage::initialised;
    EXPECT_EQ(judge(rank).verdict, Verdict::ends_job);
}

TEST(Outcome, AnAbortHasItsCodeAndText) {
    node::SegmentHeader header = {};
    header.job_end = node::JobEnd::aborted;
    header.end_rank = 5;
    header.end_code = 256; // would be a success
    std::snprintf(header.end_text, sizeof header.end_text, "negative density");
    const Outcome outcome = recorded_end(header, header.end_rank, "./solver");
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.message.find("rank 5"), std::string::npos);
    EXPECT_NE(outcome.message.find("code 256: negative density"), std::string::npos);
}

} // namespace
} // namespace warren::launch
