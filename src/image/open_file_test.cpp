// Threads that open files as the loader does, beside one that closes whatever there is.
#include "image/open_file.hpp"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace warren::image {
namespace {

// A descriptor that is free, and all behind it.
unsigned first_free() {
    const int descriptor = dup(STDIN_FILENO);
    close(descriptor);
    return static_cast<unsigned>(descriptor);
}

TEST(OpenFile, is_not_closed_by_who_closes_everything) {
    const unsigned from = first_free();
    constexpr int times = 3000;
    std::atomic<int> opening{2};
    std::atomic<int> lost{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread) {
        threads.emplace_back([&] {
            for (int time = 0; time < times; ++time) {
                const OpenFile file("/proc/self/exe");
                struct stat status {};
                std::this_thread::yield();
                lost += file.number() < 0 || fstat(file.number(), &status) != 0;
            }
            --opening;
        });
    }
    int rounds = 0;
    while (opening > 0) {
        const NoOpenFiles none;
        ASSERT_EQ(close_range(from, ~0U, 0), 0);
        ++rounds;
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(lost, 0);
    EXPECT_GT(rounds, 1);
}

TEST(OpenFile, is_opened_in_a_child_that_is_forked_while_somebody_closes) {
    std::atomic<bool> closing{false};
    std::atomic<bool> forked{false};
    std::thread other([&] {
        const NoOpenFiles none;
        closing = true;
        while (!forked) {
            std::this_thread::yield();
        }
    });
    while (!closing) {
        std::this_thread::yield();
    }
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        const OpenFile file("/proc/self/exe");
        _exit(file.number() < 0);
    }
    forked = true;
    other.join();
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(OpenFile, says_why_there_is_none) {
    const OpenFile file("/nowhere/at/all");
    EXPECT_EQ(file.number(), -1);
    EXPECT_EQ(errno, ENOENT);
}

} // namespace
} // namespace warren::image
