#include "analyser/recorder/perf_events.hpp"

#include <csignal>
#include <gtest/gtest.h>
#include <memory>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace warren::locality {
namespace {

bool is_ready(int descriptor) {
    pollfd one{descriptor, POLLIN, 0};
    return poll(&one, 1, 0) == 1;
}

TEST(PerfEvents, AnEndedThreadIsNotReadyForEver) {
    int go[2];
    ASSERT_EQ(pipe(go), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        char byte = 0;
        if (read(go[0], &byte, 1) == 1) {
            execl("/bin/sh", "sh", "-c", ":", nullptr);
        }
        _exit(127);
    }
    PerfEvents events;
    if (Error error = events.open(child, {})) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        GTEST_SKIP() << record->text;
    }
    ASSERT_EQ(write(go[1], "g", 1), 1);
    siginfo_t about{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &about, WEXITED | WNOWAIT), 0);
    EXPECT_FALSE(events.collect(true).empty());
    EXPECT_FALSE(is_ready(events.descriptor()));
    waitpid(child, nullptr, 0);
    events.collect(true);
    EXPECT_FALSE(is_ready(events.descriptor()));
    close(go[0]);
    close(go[1]);
}

} // namespace
} // namespace warren::locality
