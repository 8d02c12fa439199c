// Work in a child process: what comes back from it, and what becomes of one that is killed.
#include "topology/discovery/isolated.hpp"

#include <csignal>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "warren/topology.h"

namespace warren::discovery {

namespace {

std::string reason(Error error, int error_class) {
    EXPECT_EQ(error.error_class(), error_class);
    const std::unique_ptr<ErrorRecord> record(error.take());
    return record != nullptr ? record->text : "";
}

TEST(Isolated, work_hands_over_what_it_makes_and_nothing_else) {
    int seen = 0;
    const auto make = [&seen](Made& made) {
        seen = 1;
        made.image.assign(300'000, std::byte{7}); // more than a pipe holds
        made.note = "a note";
        return Error{};
    };
    Made made;
    ASSERT_FALSE(make_isolated("it", make, made));
    EXPECT_EQ(made.image, std::vector<std::byte>(300'000, std::byte{7}));
    EXPECT_EQ(made.note, "a note");
    EXPECT_EQ(seen, 0);
}

TEST(Isolated, work_that_fails_says_why) {
    const auto make = [](Made& made) {
        made.image.resize(5);
        return fail(WARREN_TOPOLOGY_ERR_LIMIT, "%d too many", 3);
    };
    Made made;
    EXPECT_EQ(reason(make_isolated("it", make, made), WARREN_TOPOLOGY_ERR_LIMIT), "3 too many");
    EXPECT_TRUE(made.image.empty());
}

TEST(Isolated, work_that_is_killed_is_an_error_whatever_the_program_does_with_signals) {
    const auto refusal = [](int number) {
        Made made;
        const auto make = [number](Made&) {
            std::raise(number);
            _exit(3);
            return Error{};
        };
        return reason(make_isolated("it", make, made), WARREN_TOPOLOGY_ERR_DAMAGED);
    };
    EXPECT_EQ(refusal(SIGSEGV), "it: hwloc does not survive it (Segmentation fault)");
    EXPECT_EQ(refusal(SIGABRT), "it: hwloc does not survive it (Aborted)");
    EXPECT_EQ(refusal(SIGCHLD), "it: hwloc does not survive it (it ends the process)");
    std::signal(SIGSEGV, [](int) { _exit(0); });
    EXPECT_EQ(refusal(SIGSEGV), "it: hwloc does not survive it (Segmentation fault)");
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGCHLD, SIG_IGN); // nobody can wait for children then
    EXPECT_EQ(refusal(SIGSEGV), "it: hwloc does not survive it (it ends the process)");
    std::signal(SIGCHLD, SIG_DFL);
}

TEST(Isolated, work_that_never_ends_is_not_called_damage) {
    const auto make = [](Made&) {
        std::raise(SIGALRM); // as the limit does
        return Error{};
    };
    Made made;
    sigset_t alarm_set; // though the program blocks it
    sigset_t before;
    sigemptyset(&alarm_set);
    sigaddset(&alarm_set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_set, &before);
    EXPECT_EQ(reason(make_isolated("it", make, made), WARREN_TOPOLOGY_ERR_DISCOVERY),
              "it: hwloc is not ready within a minute");
    sigset_t after;
    pthread_sigmask(SIG_SETMASK, &before, &after);
    EXPECT_EQ(sigismember(&after, SIGALRM), 1);
    EXPECT_EQ(sigismember(&after, SIGTERM), 0);
}

TEST(Isolated, work_that_throws_ends_there) {
    const auto make = [](Made&) -> Error { throw 1; };
    Made made;
    EXPECT_EQ(reason(make_isolated("it", make, made), WARREN_TOPOLOGY_ERR_DAMAGED),
              "it: hwloc does not survive it (it ends the process)");
}

TEST(Isolated, programs_without_standard_output_and_error_get_what_is_made) {
    const pid_t child = fork();
    if (child == 0) {
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        Made made;
        const auto make = [](Made& own) {
            own.note = "a note";
            return Error{};
        };
        const bool good = !make_isolated("it", make, made) && made.note == "a note";
        _exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(Isolated, threads_work_at_once_and_leave_no_children) {
    const auto work = [] {
        for (int round = 0; round < 50; ++round) {
            Made made;
            const auto make = [round](Made& own) {
                own.note = std::to_string(round);
                return Error{};
            };
            EXPECT_EQ(reason(make_isolated("it", make, made), 0), "");
            EXPECT_EQ(made.note, std::to_string(round));
        }
    };
    std::thread one(work);
    std::thread other(work);
    one.join();
    other.join();
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

} // namespace

} // namespace warren::discovery
