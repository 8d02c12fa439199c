#include "base/blocked_signals.hpp"

#include <csignal>
#include <gtest/gtest.h>
#include <thread>

namespace warren {

namespace {

bool is_blocked(int signal) {
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    return sigismember(&now, signal) == 1;
}

TEST(BlockedSignals, a_thread_made_meanwhile_takes_none_and_the_mask_comes_back) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, &one, &before);
    bool thread_blocks = false;
    {
        const BlockedSignals blocked;
        std::thread([&] { thread_blocks = is_blocked(SIGUSR1) && is_blocked(SIGCHLD); }).join();
        EXPECT_TRUE(is_blocked(SIGUSR1));
    }
    EXPECT_TRUE(thread_blocks);
    EXPECT_FALSE(is_blocked(SIGUSR1));
    EXPECT_TRUE(is_blocked(SIGUSR2)); // as it was before
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

} // namespace

} // namespace warren
