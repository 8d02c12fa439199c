#include "launch/mpiexec/command_line.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unistd.h>

#include <gtest/gtest.h>

#include "launch/mpiexec/hosts.hpp"
#include "launch/mpiexec/options.hpp"
#include "mpi/job/segment.hpp"

namespace warren::launch {
namespace {

CommandLine parsed(const std::vector<std::string>& words) {
    CommandLine line;
    Error error = parse_command_line(words, line);
    const std::unique_ptr<ErrorRecord> record(error.take());
    EXPECT_EQ(record, nullptr) << record->text;
    return line;
}

std::string refused(const std::vector<std::string>& words) {
    CommandLine line;
    Error error = parse_command_line(words, line);
    const std::unique_ptr<ErrorRecord> record(error.take());
    return record ? record->text : "";
}

TEST(CommandLine, EverythingAfterTheProgramIsTheProgram) {
    const CommandLine line = parsed({"-n", "4", "./a.out", "-n", "7", "--", "-l"});
    ASSERT_EQ(line.programs.size(), 1U);
    EXPECT_EQ(line.programs[0].ranks, 4U);
    EXPECT_EQ(line.programs[0].arguments,
              (std::vector<std::string>{"./a.out", "-n", "7", "--", "-l"}));
    EXPECT_FALSE(line.tag_output);
}

TEST(CommandLine, RanksKeepGoingWhenAsked) {
    EXPECT_FALSE(parsed({"a"}).keeps_going);
    EXPECT_TRUE(parsed({"--keep-going", "a"}).keeps_going);
    EXPECT_TRUE(parsed({"-disable-auto-cleanup", "a"}).keeps_going); // MPICH's name
}

TEST(CommandLine, TopologiesOfHwlocAreSharedAsAsked) {
    EXPECT_FALSE(parsed({"a"}).hwloc.asked);
    const CommandLine plain = parsed({"--hwloc-shmem", "a"});
    EXPECT_TRUE(plain.hwloc.asked);
    EXPECT_EQ(plain.hwloc.way, HwlocWay::automatic);
    EXPECT_EQ(plain.programs[0].arguments, std::vector<std::string>{"a"}); // not its value
    const HwlocSharing asked =
        parsed({"-hwloc-shmem=xml,io,at=0x200000000000,copies=7", "a"}).hwloc;
    EXPECT_EQ(asked.way, HwlocWay::xml);
    EXPECT_TRUE(asked.devices);
    EXPECT_EQ(asked.address, 0x200000000000U);
    EXPECT_EQ(asked.copies, 7U);
    EXPECT_EQ(parsed({"--hwloc-shmem=xml,io,xml,io", "a"}).hwloc.way, HwlocWay::xml);
    EXPECT_NE(refused({"--hwloc-shmem=shmem,io,xml", "a"}).find("'shmem' and 'xml'"),
              std::string::npos);
    EXPECT_EQ(parsed({"--hwloc-shmem=at=before-heap", "a"}).hwloc.place, HolePlace::before_heap);
    EXPECT_EQ(parsed({"--hwloc-shmem", "--topology", "synthetic:pu:2", "a"}).topology,
              "synthetic:pu:2");
    for (const char* wrong :
         {"", "shm", "xml,", "at=", "at=0x", "at=0x123", "at=12", "at=0x0", "at=0x1000z",
          "at=0xfffffffffffffffff000", "shmem,xml", "xml,io,auto", "at=largest,at=0x200000000000",
          "copies=2,copies=3", "copies=0", "copies=65", "copies=-1", "copies=x"}) {
        EXPECT_NE(refused({std::string("--hwloc-shmem=") + wrong, "a"}).find("--hwloc-shmem"),
                  std::string::npos)
            << wrong;
    }
    EXPECT_NE(refused({"--topology", "", "a"}), "");
}

TEST(CommandLine, ColonsSeparatePrograms) {
    const CommandLine line =
        parsed({"-n", "2", "a", "x", ":", "-np", "3", "-wdir", "/tmp", "b", ":", "c"});
    ASSERT_EQ(line.programs.size(), 3U);
    EXPECT_EQ(line.ranks(), 6U);
    EXPECT_EQ(line.programs[1].directory, "/tmp");
    EXPECT_EQ(line.programs[2].ranks, 1U);
    EXPECT_TRUE(line.programs[2].directory.empty());
}

TEST(CommandLine, OptionsWorkWithOneDashOrTwoAndWithEquals) {
    EXPECT_EQ(parsed({"--np=3", "a"}).programs[0].ranks, 3U);
    EXPECT_EQ(parsed({"--n", "3", "a"}).programs[0].ranks, 3U);
    EXPECT_EQ(parsed({"-bind-to", "numa", "a"}).bind_to, BindTo::numa);
    EXPECT_EQ(parsed({"--bind-to=none", "a"}).bind_to, BindTo::none);
    EXPECT_TRUE(parsed({"-l", "a"}).tag_output);
    EXPECT_DOUBLE_EQ(parsed({"--timeout", "1.5", "a"}).timeout_s, 1.5);
}

TEST(CommandLine, EnvironmentInBothStyles) {
    const CommandLine line = parsed({"-env", "A", "1", "-genv", "B=2", "-x", "C=3=4", "-x", "D",
                                     "a", ":", "-env", "E", "", "b"});
    ASSERT_EQ(line.programs[0].environment.size(), 1U);
    EXPECT_EQ(line.programs[0].environment[0].name, "A");
    EXPECT_EQ(line.programs[0].environment[0].value, "1");
    ASSERT_EQ(line.environment.size(), 2U);
    EXPECT_EQ(line.environment[0].value, "2");
    EXPECT_EQ(line.environment[1].value, "3=4");
    EXPECT_EQ(line.programs[1].environment[0].value, "");
}

TEST(CommandLine, KindsOfMemoryGoToTheProgramThatAsksForThem) {
    const CommandLine line = parsed({"-memory-alloc-kinds", "system,mpi:alloc_mem", "a", ":", "b"});
    ASSERT_EQ(line.programs[0].environment.size(), 1U);
    EXPECT_EQ(line.programs[0].environment[0].value, "system,mpi:alloc_mem");
    EXPECT_TRUE(line.programs[1].environment.empty());
    for (const char* wrong : {"", ",", "system,", ":alloc_mem", "mpi:", "mpi::a", "mpi alloc"}) {
        EXPECT_NE(refused({"-memory-alloc-kinds", wrong, "a"}).find("-memory-alloc-kinds"),
                  std::string::npos)
            << wrong;
    }
}

TEST(CommandLine, TwoDashesEndTheOptions) {
    EXPECT_EQ(parsed({"-n", "2", "--", "-odd-name", "x"}).programs[0].arguments[0], "-odd-name");
}

TEST(CommandLine, WhatOtherLaunchersNeedIsAccepted) {
    EXPECT_EQ(parsed({"--oversubscribe", "--allow-run-as-root", "-n", "2", "a"}).ranks(), 2U);
}

TEST(CommandLine, ErrorsNameTheOptionAndTheValue) {
    EXPECT_NE(refused({"-n", "zero", "a"}).find("'zero'"), std::string::npos);
    EXPECT_NE(refused({"-n", "0", "a"}).find("-n"), std::string::npos);
    EXPECT_NE(refused({"-n", "99999999999999999999", "a"}).find(std::to_string(world_limit)),
              std::string::npos);
    EXPECT_NE(refused({"-n"}).find("needs a value"), std::string::npos);
    EXPECT_NE(refused({"--frobnicate", "a"}).find("--frobnicate"), std::string::npos);
    EXPECT_NE(refused({"--bind-to", "moon", "a"}).find("'moon'"), std::string::npos);
    EXPECT_NE(refused({"--timeout", "-3", "a"}).find("'-3'"), std::string::npos);
    EXPECT_NE(refused({"--timeout", "nan", "a"}).find("'nan'"), std::string::npos);
    EXPECT_NE(refused({"-env", "A"}).find("needs a value"), std::string::npos);
    EXPECT_NE(refused({"-genv", "WARREN_RANK=3", "a"}).find("mpiexec's own"), std::string::npos);
    EXPECT_NE(refused({"-l=3", "a"}).find("takes no value"), std::string::npos);
}

TEST(CommandLine, RanksAreProcessesOrThreads) {
    EXPECT_EQ(parsed({"a"}).rank_kind, RankKind::process);
    EXPECT_EQ(parsed({"--ranks", "threads", "a"}).rank_kind, RankKind::thread);
    EXPECT_EQ(parsed({"--ranks=processes", "a"}).rank_kind, RankKind::process);
    EXPECT_EQ(parsed({"--ranks", "fibres", "a"}).rank_kind, RankKind::fibre);
    EXPECT_NE(refused({"--ranks", "green", "a"}).find("'green'"), std::string::npos);
    EXPECT_EQ(parsed({"--ranks-per-process", "4", "-n", "8", "a"}).ranks_per_process, 4U);
    EXPECT_NE(refused({"--ranks-per-process", "0", "a"}).find("'0'"), std::string::npos);
}

std::string combination(const std::vector<std::string>& words) {
    const CommandLine line = parsed(words);
    Error error = check_combinations(line);
    const std::unique_ptr<ErrorRecord> record(error.take());
    return record ? record->text : "";
}

TEST(CommandLine, WhatDoesNotGoTogetherIsRefused) {
    EXPECT_EQ(combination({"--ranks-per-process", "2", "-n", "4", "a", ":", "-n", "2", "b"}), "");
    EXPECT_NE(combination({"--ranks-per-process", "2", "-n", "4", "a", ":", "-n", "3", "b"})
                  .find("3 ranks of b"),
              std::string::npos);
    EXPECT_NE(combination({"--ranks", "threads", "--keep-going", "a"}).find("--keep-going"),
              std::string::npos);
    EXPECT_NE(combination({"--ranks", "threads", "--ranks-per-process", "2", "-n", "2", "a"})
                  .find("in one process already"),
              std::string::npos);
}

TEST(CommandLine, FibresHaveWorkersAndStacks) {
    EXPECT_EQ(parsed({"--ranks", "fibres", "--workers", "3", "a"}).workers, 3U);
    EXPECT_EQ(parsed({"--ranks", "fibres", "--stack-size", "65536", "a"}).stack_bytes, 65536U);
    EXPECT_EQ(parsed({"--ranks", "fibres", "--stack-size=512k", "a"}).stack_bytes, 512U << 10);
    EXPECT_EQ(parsed({"--ranks", "threads", "--stack-size=2M", "a"}).stack_bytes, 2U << 20);
    for (const char* size : {"", "k", "63k", "2Mi", "-1M", "2000G", "99999999999999999999999"}) {
        EXPECT_NE(refused({"--stack-size", size, "a"}).find("64k to"), std::string::npos) << size;
    }
    EXPECT_NE(refused({"--workers", "0", "a"}).find("'0'"), std::string::npos);
    EXPECT_EQ(combination({"--ranks", "fibres", "--workers", "2", "--bind-to", "none", "a"}), "");
    EXPECT_NE(combination({"--workers", "2", "a"}).find("--ranks fibres"), std::string::npos);
    EXPECT_NE(combination({"--stack-size", "1M", "a"}).find("ulimit"), std::string::npos);
    EXPECT_NE(combination({"--ranks", "fibres", "--bind-to", "core", "a"}).find("--bind-to"),
              std::string::npos);
    EXPECT_NE(combination({"--ranks", "fibres", "-wdir", "/", "a", ":", "-wdir", "/tmp", "b"})
                  .find("working directory"),
              std::string::npos);
    EXPECT_NE(combination({"--ranks", "fibres", "--library", "/l/libmpi_abi.so.1", "a"})
                  .find("--library"),
              std::string::npos);
}

TEST(CommandLine, PagesFollowRanksThatBalancersMove) {
    EXPECT_FALSE(parsed({"--ranks", "fibres", "--balance", "refine", "a"}).migrates_pages);
    const std::vector<std::string> words{"--ranks", "fibres",          "--balance",
                                         "refine",  "--migrate-pages", "a"};
    EXPECT_TRUE(parsed(words).migrates_pages);
    EXPECT_EQ(combination(words), "");
    EXPECT_NE(combination({"--ranks", "fibres", "--migrate-pages", "a"}).find("--balance"),
              std::string::npos);
    EXPECT_NE(combination({"--ranks", "fibres", "--balance", "none", "--migrate-pages", "a"})
                  .find("--migrate-pages"),
              std::string::npos);
    EXPECT_NE(combination({"--migrate-pages", "a"}).find("--ranks fibres"), std::string::npos);
}

TEST(CommandLine, AnotherLibraryIsForThreads) {
    const std::string path = "/mpich/lib/libmpi_abi.so.1";
    EXPECT_EQ(combination({"--ranks", "threads", "--library", path, "a"}), "");
    EXPECT_NE(combination({"--library", path, "a"}).find("for --ranks threads"), std::string::npos);
    EXPECT_NE(
        combination({"--ranks", "threads", "--library", "/mpich/lib", "a"}).find("'/mpich/lib'"),
        std::string::npos);
}

TEST(CommandLine, AProgramMustBeThere) {
    EXPECT_NE(refused({}).find("no program"), std::string::npos);
    EXPECT_NE(refused({"-n", "3"}).find("no program"), std::string::npos);
    EXPECT_NE(refused({"a", ":"}).find("no program"), std::string::npos);
    EXPECT_NE(refused({":", "a"}).find("no program"), std::string::npos);
}

TEST(CommandLine, TheNumberOfRanksIsGivenOnce) {
    const std::string error = refused({"-n", "2", "-n", "3", "a"});
    EXPECT_NE(error.find("option -n 3: the number of ranks is 2 already"), std::string::npos)
        << error;
    EXPECT_NE(refused({"-n", "1", "-np", "3", "a"}), "");
    EXPECT_EQ(parsed({"-n", "2", "-np", "2", "a"}).ranks(), 2U);
    EXPECT_EQ(parsed({"-n", "2", "a", ":", "-n", "3", "b"}).ranks(), 5U);
}

// "ranks: host=ranks …"; no hosts: this node alone.
std::string planned(const std::vector<std::string>& words) {
    CommandLine line = parsed(words);
    std::vector<Host> hosts;
    Error error = plan_hosts(line, hosts);
    const std::unique_ptr<ErrorRecord> record(error.take());
    std::string text = record ? record->text : std::to_string(line.ranks()) + ":";
    for (const Host& host : hosts) {
        text += " " + host.name + "=" + std::to_string(host.ranks);
    }
    return text;
}

TEST(CommandLine, HostsMayBeThisNode) {
    EXPECT_EQ(planned({"-host", "localhost", "-n", "2", "a"}), "2:");
    EXPECT_EQ(planned({"--hosts=localhost:2,127.0.0.1", "-n", "3", "a"}), "3:");
    EXPECT_EQ(planned({"-H", "192.0.2.1", "a"}), "1: 192.0.2.1=1");
    EXPECT_EQ(planned({"-hosts", "a:2,b:2", "a"}), "4: a=2 b=2");
    EXPECT_EQ(planned({"-hosts", "a,b", "-ppn", "3", "a"}), "6: a=3 b=3");
    EXPECT_EQ(planned({"-hosts", "a:2,b:2", "-n", "3", "--map-by", "node", "a"}), "3: a=2 b=1");
    EXPECT_EQ(planned({"-host", "localhost", "--launcher", "fork", "a"}), "1: localhost=1");
    EXPECT_NE(planned({"-hostfile", "/nonexistent", "a"}).find("No such file"), std::string::npos);
    EXPECT_NE(refused({"-host", "a", "b", ":", "-host", "c", "d"}).find("programs share them"),
              std::string::npos);
}

TEST(CommandLine, RanksPerNodeAreThoseOfOneNode) {
    EXPECT_EQ(planned({"-ppn", "2", "-n", "2", "a"}), "2:");
    EXPECT_EQ(planned({"-n", "2", "-ppn", "4", "a"}), "2:");
    EXPECT_EQ(planned({"-npernode", "3", "a"}), "3:");
    EXPECT_EQ(planned({"--map-by", "ppr:3:node", "a"}), "3:");
    EXPECT_NE(planned({"-ppn", "1", "-n", "4", "a"}).find("need 4 nodes, and there is one"),
              std::string::npos);
    EXPECT_NE(refused({"-ppn", "0", "a"}).find("needs a number"), std::string::npos);
}

TEST(CommandLine, OptionsOfOtherLaunchersAreUnderstoodOrAnswered) {
    const CommandLine line = parsed({"-c",
                                     "4",
                                     "--map-by",
                                     "core",
                                     "--rank-by",
                                     "slot",
                                     "--mca",
                                     "btl_tcp_if_include",
                                     "eth1",
                                     "-soft",
                                     "1:4",
                                     "-iface",
                                     "ib0",
                                     "-path",
                                     "/opt/bin",
                                     "-initial-errhandler",
                                     "mpi_errors_are_fatal",
                                     "-bootstrap",
                                     "slurm",
                                     "a"});
    EXPECT_EQ(line.ranks(), 4U);
    ASSERT_EQ(line.notes.size(), 1U);
    EXPECT_NE(line.notes[0].find("-iface eth1"), std::string::npos);
    EXPECT_EQ(line.environment[0].value, "tcp,ib0");
    EXPECT_EQ(line.programs[0].search, "/opt/bin");
    EXPECT_EQ(line.launcher, "srun");
    EXPECT_EQ(parsed({"-soft", "1:9:3", "-n", "6", "a"}).ranks(), 4U);
    EXPECT_NE(refused({"-n", "2", "-soft", "3,4", "a"}).find("none of the numbers"),
              std::string::npos);
    EXPECT_EQ(parsed({"--launcher", "ip netns exec {host}", "a"}).launcher, "ip netns exec {host}");
    EXPECT_NE(refused({"--launcher", "rsh", "a"}).find("'rsh'"), std::string::npos);
    EXPECT_NE(refused({"--map-by", "socket:PE=4", "a"}).find("--bind-to"), std::string::npos);
    EXPECT_NE(refused({"-arch", "vax", "a"}).find("this node is"), std::string::npos);
    EXPECT_NE(refused({"-file", "x", "a"}).find("-configfile"), std::string::npos);
    EXPECT_NE(refused({"--output-filename", "x", "a"}).find("WARREN_RANK"), std::string::npos);
    EXPECT_EQ(parsed({"-initial-errhandler", "mpi_errors_return", "a"}).initial_handler,
              InitialHandler::returns);
    EXPECT_NE(refused({"-initial-errhandler", "mine", "a"}).find("'mine'"), std::string::npos);
}

TEST(CommandLine, ConfigurationFilesHaveAProgramPerLine) {
    char name[] = "/tmp/mpi-test-configfile-test-XXXXXX";
    close(mkstemp(name));
    std::ofstream(name) << "# both\n-n 2 a x\n\n-n 3 \\\nb y\n";
    std::vector<std::string> words{"-l", "-configfile", name};
    EXPECT_FALSE(expand_config_file(words));
    EXPECT_EQ(words,
              (std::vector<std::string>{"-l", "-n", "2", "a", "x", ":", "-n", "3", "b", "y"}));
    words = {"-configfile", name, "c"};
    Error error = expand_config_file(words);
    EXPECT_NE(std::unique_ptr<ErrorRecord>(error.take()), nullptr);
    words = {"program", "-configfile", name};
    EXPECT_FALSE(expand_config_file(words));
    EXPECT_EQ(words.size(), 3U);
    std::remove(name);
}

TEST(CommandLine, HelpNamesTheVariablesOfARank) {
    EXPECT_NE(usage().find("WARREN_RANK"), std::string::npos);
    EXPECT_NE(usage().find("WARREN_SIZE"), std::string::npos);
}

TEST(CommandLine, TheSumOfAllProgramsIsLimited) {
    const std::string most = std::to_string(node::rank_limit);
    EXPECT_NE(planned({"-n", most, "a", ":", "b"}).find("at most"), std::string::npos);
}

TEST(CommandLine, HelpHasEveryOptionOfTheTable) {
    std::string help = usage();
    for (char& letter : help) {
        letter = std::string_view("\n,[").find(letter) == std::string_view::npos ? letter : ' ';
    }
    std::set<std::string_view> names;
    for (const Option& option : options()) {
        EXPECT_FALSE(option.help.empty()) << option.names[0];
        for (const std::string_view name : option.names) {
            if (name.empty()) {
                continue;
            }
            EXPECT_NE(help.find(" " + std::string(name) + " "), std::string::npos) << name;
            EXPECT_TRUE(names.insert(name.substr(name.find_first_not_of('-'))).second) << name;
        }
    }
    EXPECT_TRUE(names.contains("np") && names.contains("help"));
}

TEST(CommandLine, TakesEveryOptionWithOneDashAndTwo) {
    for (const Option& option : options()) {
        for (const std::string_view name : option.names) {
            if (name.empty()) {
                continue;
            }
            const std::string bare(name.substr(name.find_first_not_of('-')));
            for (const std::string& word : {"-" + bare, "--" + bare}) {
                const std::string error = refused({word});
                EXPECT_EQ(error.find("unknown"), std::string::npos) << error;
                EXPECT_EQ(error.ends_with("needs a value"), option.takes == Takes::value) << error;
                EXPECT_EQ(refused({word + "=x", "a"}).ends_with("takes no value"),
                          option.takes == Takes::nothing)
                    << word;
            }
        }
    }
}

TEST(CommandLine, HelpFitsIntoATerminal) {
    const std::string help = usage();
    std::size_t longest = 0;
    for (std::size_t begin = 0, end = 0; begin < help.size(); begin = end + 1) {
        end = help.find('\n', begin);
        longest = std::max(longest, end - begin);
    }
    EXPECT_LE(longest, 90U);
}

TEST(CommandLine, HelpAndVersionNeedNoProgram) {
    EXPECT_EQ(parsed({"--help"}).request, CommandLine::Request::help);
    EXPECT_EQ(parsed({"--version"}).request, CommandLine::Request::version);
}

} // namespace
} // namespace warren::launch
