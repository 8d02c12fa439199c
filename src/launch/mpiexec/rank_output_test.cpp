#include "launch/mpiexec/rank_output.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace warren::launch {
namespace {

// The output of a job of two writers on its way to a file.
class TwoWriters {
  public:
    TwoWriters() {
        EXPECT_TRUE(job_.open());
        EXPECT_TRUE(output.open(job_));
        output.set_streams(2);
        for (std::uint32_t number = 0; number < 2; ++number) {
            EXPECT_TRUE(output.add(number, "", ends_[number][0], ends_[number][1]));
        }
    }
    ~TwoWriters() {
        for (const auto& ends : ends_) {
            close(ends[0]);
            close(ends[1]);
        }
    }
    void write(std::uint32_t number, std::string_view text) {
        EXPECT_EQ(::write(ends_[number][0], text.data(), text.size()),
                  static_cast<ssize_t>(text.size()));
        output.read_some();
    }

  private:
    Events job_;
    int ends_[2][2] = {};

  public:
    RankOutput output;
};

// Returns the text that reaches mpiexec's standard output.
std::string passed_on(const std::function<void(TwoWriters&)>& deeds) {
    testing::internal::CaptureStdout();
    {
        TwoWriters writers;
        deeds(writers);
        writers.output.update_sinks();
    }
    return testing::internal::GetCapturedStdout();
}

TEST(RankOutput, PassesOnAnUnfinishedLineAfterAWhile) {
    EXPECT_EQ(passed_on([](TwoWriters& writers) {
                  writers.write(0, "half");
                  const std::uint64_t until = writers.output.deadline_ns();
                  writers.output.pass_on_held(until - 1);
                  writers.write(1, "other\n");
                  writers.output.pass_on_held(until);
                  EXPECT_EQ(writers.output.deadline_ns(), 0);
              }),
              "other\nhalf");
}

TEST(RankOutput, HoldsALineFromItsOwnBeginning) {
    EXPECT_EQ(passed_on([](TwoWriters& writers) {
                  writers.write(0, "first ");
                  const std::uint64_t of_first = writers.output.deadline_ns();
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                  writers.write(0, "line\nsecond ");
                  writers.output.pass_on_held(of_first);
                  const std::uint64_t of_second = writers.output.deadline_ns();
                  EXPECT_GT(of_second, of_first);
                  writers.write(1, "other\n");
                  writers.write(0, "line\nthird ");
                  writers.output.pass_on_held(of_second);
                  writers.output.pass_on_held(writers.output.deadline_ns());
                  EXPECT_EQ(writers.output.deadline_ns(), 0);
              }),
              "first line\nother\nsecond line\nthird ");
}

TEST(RankOutput, WhatAFullBufferCutOffWaitsForItsLine) {
    const std::string block = "line\n" + std::string(4091, 'x');
    EXPECT_EQ(passed_on([&](TwoWriters& writers) {
                  writers.write(0, block);
                  EXPECT_EQ(writers.output.deadline_ns(), 0);
                  writers.output.pass_on_held(UINT64_MAX);
                  writers.write(1, "other\n");
                  writers.write(0, "y\nhalf");
                  EXPECT_NE(writers.output.deadline_ns(), 0);
                  writers.output.pass_on_held(writers.output.deadline_ns());
              }),
              "line\nother\n" + block.substr(5) + "y\nhalf");
}

} // namespace
} // namespace warren::launch
