#include "launch/mpiexec/report.hpp"

#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "launch/mpiexec/errors.hpp"

namespace warren::launch {
namespace {

// Returns the text that the function has written to the standard error.
template <typename Function>
std::string said(bool verbose, Function function) {
    testing::internal::CaptureStderr();
    RankOutput output;
    Report report(output, verbose);
    function(report);
    output.update_sinks();
    return testing::internal::GetCapturedStderr();
}

TEST(Report, TheFirstFailureDecides) {
    EXPECT_EQ(said(false,
                   [](Report& report) {
                       EXPECT_FALSE(report.failed());
                       EXPECT_EQ(report.exit_code(), 0);
                       report.fail(7, "first");
                       report.fail(8, "second");
                       EXPECT_TRUE(report.failed());
                       EXPECT_EQ(report.exit_code(), 7);
                   }),
              "mpiexec: first\n");
}

TEST(Report, AFailureThatExplainsMoreTakesItsPlace) {
    EXPECT_EQ(said(false,
                   [](Report& report) {
                       report.fail(7, "first");
                       report.take_back();
                       report.fail(8, "second");
                       EXPECT_EQ(report.exit_code(), 8);
                   }),
              "mpiexec: first\nmpiexec: second\n");
}

TEST(Report, TheLaunchersErrorsAreExitCodes) {
    EXPECT_EQ(said(false,
                   [](Report& report) {
                       report.fail(warren::fail(exit_not_found, "program '%s'", "x"));
                       EXPECT_EQ(report.exit_code(), exit_not_found);
                   }),
              "mpiexec: program 'x'\n");
    EXPECT_EQ(said(false,
                   [](Report& report) {
                       report.fail(exit_failure, warren::fail(34, "memory"));
                       EXPECT_EQ(report.exit_code(), exit_failure);
                   }),
              "mpiexec: memory\n");
}

TEST(Report, ExplainsWhenAsked) {
    const auto explain = [](Report& report) { report.explain("why"); };
    EXPECT_EQ(said(false, explain), "");
    EXPECT_EQ(said(true, explain), "mpiexec: why\n");
}

} // namespace
} // namespace warren::launch
