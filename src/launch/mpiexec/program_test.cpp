#include "launch/mpiexec/program.hpp"

#include <cstdlib>
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "launch/mpiexec/errors.hpp"
#include "launch/rank_variables.hpp"

namespace warren::launch {
namespace {

std::set<std::string> environment_of(ResolvedProgram& program) {
    std::set<std::string> made;
    for (char* const* entry = program.environment(); *entry != nullptr; ++entry) {
        made.insert(*entry);
    }
    return made;
}

TEST(Program, IsFoundInPath) {
    ResolvedProgram program;
    Error error = ResolvedProgram::resolve({.arguments = {"sh", "-c", "x"}}, program);
    EXPECT_FALSE(error);
    EXPECT_TRUE(program.path().ends_with("/sh"));
    EXPECT_STREQ(program.arguments()[0], "sh"); // as written
    EXPECT_STREQ(program.arguments()[2], "x");
    EXPECT_EQ(program.arguments()[3], nullptr);
    EXPECT_STREQ(program.shell_arguments()[1], program.path().c_str());
    EXPECT_STREQ(program.shell_arguments()[2], "-c");
}

TEST(Program, MistakesHaveTheShellsCodes) {
    const std::pair<const char*, int> mistakes[] = {{"no-such-program", exit_not_found},
                                                    {"/no/such/program", exit_not_found},
                                                    {"/etc/passwd", exit_not_executable},
                                                    {"/etc", exit_not_executable},
                                                    {"", exit_not_found}};
    for (const auto& [name, expected] : mistakes) {
        ResolvedProgram program;
        Error error = ResolvedProgram::resolve({.arguments = {name}}, program);
        const std::unique_ptr<ErrorRecord> record(error.take());
        ASSERT_NE(record, nullptr) << name;
        EXPECT_NE(record->text.find(name), std::string::npos);
        EXPECT_EQ(record->error_class, expected) << name;
    }
}

TEST(Program, ItsOwnSettingsWinOverGlobalAndInheritedOnes) {
    ResolvedProgram program;
    Error error = ResolvedProgram::resolve(
        {.arguments = {"sh"}, .environment = {{"A", "own"}, {"NEW", ""}}}, program);
    ASSERT_FALSE(error);
    char a[] = "A=inherited";
    char b[] = "B=inherited";
    char c[] = "C=inherited";
    char outer[] = "WARREN_RANK=77";
    char here[] = "WARREN_RANKS_HERE=2";
    char other[] = "OMPI_COMM_WORLD_LOCAL_RANK=3";
    char* inherited[] = {a, b, c, outer, here, other, nullptr};
    program.build_environment(
        {{"A", "global"}, {"B", "global"}},
        {.size = 5, .size_on_node = 2, .segment = 6, .lifeline = 7, .job = "8"}, inherited);
    for (std::size_t index = 0; index < rank_variable_count; ++index) {
        EXPECT_EQ(program.environment()[index], std::string(rank_variables[index].name) + "=");
    }
    std::set<std::string> expected = {"WARREN_RANK=",
                                      "OMPI_COMM_WORLD_RANK=",
                                      "OMPI_COMM_WORLD_LOCAL_RANK=",
                                      "OMPI_COMM_WORLD_NODE_RANK=",
                                      "MPI_LOCALRANKID=",
                                      "WARREN_SIZE=5",
                                      "OMPI_COMM_WORLD_SIZE=5",
                                      "OMPI_COMM_WORLD_LOCAL_SIZE=2",
                                      "MPI_LOCALNRANKS=2",
                                      "WARREN_JOB=8",
                                      "C=inherited",
                                      "NEW="};
    std::set<std::string> with_segment = expected;
    with_segment.insert({"A=own", "B=global", "WARREN_SEGMENT=6", "WARREN_LIFELINE=7"});
    EXPECT_EQ(environment_of(program), with_segment);
    program.build_environment({}, {.size = 5, .size_on_node = 2, .job = "8"}, inherited);
    expected.insert({"A=own", "B=inherited"});
    EXPECT_EQ(environment_of(program), expected);
}

TEST(ResolvedProgram, folders_of_libraries_come_before_those_of_the_user) {
    ResolvedProgram program;
    Error error = ResolvedProgram::resolve({.arguments = {"sh"}}, program);
    ASSERT_FALSE(error);
    EXPECT_EQ(program.foreign().abi, Abi::unknown);
    char none[] = "C=1";
    char* without[] = {none, nullptr};
    program.build_environment({}, {.size = 1, .job = "8", .libraries = "/w/a:/w/b"}, without);
    EXPECT_TRUE(environment_of(program).contains("LD_LIBRARY_PATH=/w/a:/w/b"));
    char path[] = "LD_LIBRARY_PATH=/usr/lib/other";
    char* inherited[] = {path, nullptr};
    program.build_environment({}, {.size = 1, .job = "8", .libraries = "/w/a"}, inherited);
    EXPECT_TRUE(environment_of(program).contains("LD_LIBRARY_PATH=/w/a:/usr/lib/other"));
    program.build_environment({{"LD_LIBRARY_PATH", "/x"}},
                              {.size = 1, .job = "8", .libraries = "/w/a"}, inherited);
    EXPECT_TRUE(environment_of(program).contains("LD_LIBRARY_PATH=/w/a:/x"));
}

} // namespace
} // namespace warren::launch
