#include "launch/mpiexec/state_report.hpp"

#include <algorithm>
#include <memory>
#include <unistd.h>

#include <gtest/gtest.h>

#include "mpi.h"
#include "mpi/calls.hpp"

namespace warren::launch {
namespace {

class StateReport : public testing::Test {
  protected:
    void SetUp() override {
        Error error = node::Segment::create({.ranks = 4, .cores = 4}, segment_);
        const std::unique_ptr<ErrorRecord> record(error.take());
        ASSERT_EQ(record, nullptr) << record->text;
    }

    void wait_for(std::uint32_t rank, std::int32_t peer, std::int32_t tag, std::uint64_t since_ns) {
        node::RankSlot& slot = segment_.slot(rank);
        slot.state = node::RankStage::initialised;
        slot.activity.call = mpi::calls::MPI_Recv;
        slot.activity.peer = peer;
        slot.activity.tag = tag;
        slot.activity.context = 17;
        slot.activity.since_ns = since_ns;
    }

    std::string report(std::uint64_t now_ns) {
        return report_states(segment_, std::vector<ObservedRank>(4), now_ns);
    }

    node::Segment segment_;
};

constexpr std::uint64_t second = 1'000'000'000;

TEST_F(StateReport, RanksThatDoTheSameShareALine) {
    EXPECT_EQ(report(second), "  ranks 0-3: not initialised; process unknown\n");
    segment_.slot(2).state = node::RankStage::finalised;
    EXPECT_EQ(report(second), "  ranks 0-1,3: not initialised; process unknown\n"
                              "  rank 2: finalised; process unknown\n");
}

TEST_F(StateReport, AWaitNamesPeerTagCommunicatorAndTime) {
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        wait_for(rank, 3, 99, (2 + rank) * second);
    }
    const std::string text = report(12 * second);
    for (const char* part : {"ranks 0-3: waits in MPI_Recv, ", "peer 3", "tag 99",
                             "communicator number 17", "for 7.0 to 10 s"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
    }
}

TEST_F(StateReport, WildcardsAreWords) {
    wait_for(0, MPI_ANY_SOURCE, MPI_ANY_TAG, second);
    EXPECT_NE(describe(segment_.slot(0)).find("any source, any tag"), std::string::npos);
}

TEST_F(StateReport, ACollectiveCallHasNoPeerAndNoTag) {
    wait_for(0, MPI_PROC_NULL, MPI_ANY_TAG, second);
    EXPECT_EQ(describe(segment_.slot(0)).find("any"), std::string::npos);
    EXPECT_EQ(describe(segment_.slot(0)).find("tag"), std::string::npos);
}

TEST_F(StateReport, ANameOfFullLengthIsNotOverrun) {
    wait_for(0, 1, 1, second);
    char(&name)[32] = segment_.slot(0).activity.communicator_name;
    std::fill(std::begin(name), std::end(name), 'x');
    EXPECT_NE(describe(segment_.slot(0)).find("communicator " + std::string(32, 'x') + ";"),
              std::string::npos);
}

TEST_F(StateReport, AnInitialisedRankThatDoesNotWaitComputes) {
    segment_.slot(1).state = node::RankStage::initialised;
    segment_.slot(1).pid = getpid();
    const std::string text = report(second);
    EXPECT_NE(text.find("rank 1 (pid " + std::to_string(getpid()) + "): computing"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("process running"), std::string::npos) << text;
}

} // namespace
} // namespace warren::launch
