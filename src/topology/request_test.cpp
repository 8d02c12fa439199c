#include "topology/request.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace warren::topology {
namespace {

// A launcher's end of the socket, the ranks' end in the environment, and the empty file.
struct Launcher {
    Launcher() {
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        setenv(socket_variable, std::to_string(ends[1]).c_str(), 1);
        setenv("WARREN_RANK", "7", 1);
        file = memfd_create("image", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    }
    ~Launcher() {
        unsetenv(socket_variable);
        unsetenv("WARREN_RANK");
        for (const int descriptor : {ends[0], ends[1], file}) {
            close(descriptor);
        }
    }
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;

    int ends[2] = {-1, -1};
    int file = -1;
};

TEST(ImageRequest, a_full_socket_delays_the_request_and_does_not_lose_it) {
    Launcher launcher;
    const char report[512] = "a report of another rank";
    int reports = 0;
    while (send(launcher.ends[1], report, sizeof report, MSG_DONTWAIT) > 0) {
        ++reports;
    }
    ASSERT_EQ(errno, EAGAIN);
    ASSERT_GT(reports, 0);
    std::thread rank([&] { request_image(launcher.file); });
    bool asked = false;
    for (int messages = 0; messages < reports + 1; ++messages) {
        char message[sizeof report];
        const ssize_t got = recv(launcher.ends[0], message, sizeof message, 0);
        ASSERT_GT(got, 0);
        if (got == static_cast<ssize_t>(sizeof(ImageRequest))) {
            const auto& request = reinterpret_cast<const ImageRequest&>(message);
            EXPECT_EQ(request.magic, ImageRequest::magic_number);
            EXPECT_EQ(request.rank, 7);
            asked = true;
        }
    }
    EXPECT_TRUE(asked);
    shutdown(launcher.ends[0], SHUT_WR);
    rank.join();
}

#ifndef __SANITIZE_THREAD__ // it keeps signals until a call that waits is over
std::atomic<int> signals{0};

TEST(ImageRequest, signals_do_not_end_the_wait) {
    Launcher launcher;
    struct sigaction action {};
    action.sa_handler = [](int) { ++signals; };
    sigaction(SIGUSR1, &action, nullptr);
    std::atomic<bool> over{false};
    std::thread rank([&] {
        request_image(launcher.file);
        over = true;
    });
    char message[64];
    ASSERT_GT(recv(launcher.ends[0], message, sizeof message, 0), 0);
    for (int i = 1; i <= 3; ++i) {
        pthread_kill(rank.native_handle(), SIGUSR1);
        while (signals < i) {
            std::this_thread::yield();
        }
    }
    EXPECT_FALSE(over);
    shutdown(launcher.ends[0], SHUT_WR);
    rank.join();
    signal(SIGUSR1, SIG_DFL);
}
#endif

TEST(ImageRequest, what_is_no_launchers_socket_is_left_alone) {
    Launcher launcher;
    setenv(socket_variable, std::to_string(launcher.file).c_str(), 1);
    request_image(launcher.file);
    int stream[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream), 0);
    setenv(socket_variable, std::to_string(stream[0]).c_str(), 1);
    request_image(launcher.file);
    char byte = 0;
    EXPECT_LT(recv(stream[1], &byte, 1, MSG_DONTWAIT), 0);
    close(stream[0]);
    close(stream[1]);
}

} // namespace
} // namespace warren::topology
