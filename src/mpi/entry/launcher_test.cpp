// LauncherTest: what is said between the mpiexec of a spawned world and the rank that waits for it.
#include "mpi/entry/launcher.hpp"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "mpi/job/spawn_request.hpp"

namespace warren::mpi {
namespace {

class LauncherTest : public testing::Test {
  protected:
    LauncherTest() {
        int ends[2] = {-1, -1};
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        request_.connection = ends[0];
        mpiexec_ = ends[1];
    }
    ~LauncherTest() override { close(mpiexec_); }
    ssize_t tell(const std::string& text) const {
        return send(mpiexec_, text.data(), text.size(), MSG_NOSIGNAL);
    }
    std::string hear() const {
        char said[16];
        const ssize_t got = recv(mpiexec_, said, sizeof said, MSG_DONTWAIT);
        return {said, got > 0 ? static_cast<std::size_t>(got) : 0};
    }

    Launcher launcher_{1, true};
    Launcher::Request request_;
    int mpiexec_ = -1;
};

TEST_F(LauncherTest, WorldThatHasFailedJustBeforeItsRootConnectedIsNotThere) {
    EXPECT_GT(tell("rank 1 was killed"), 0);
    std::string reason;
    EXPECT_FALSE(launcher_.end_connected(request_, reason));
    EXPECT_EQ(reason, "rank 1 was killed");
}

TEST_F(LauncherTest, FailureOfAConnectedWorldIsNotTold) {
    std::string reason;
    EXPECT_TRUE(launcher_.end_connected(request_, reason));
    EXPECT_EQ(reason, "");
    EXPECT_LT(tell("rank 1 was killed"), 0);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(hear(), std::string(1, node::spawn_connected));
}

TEST_F(LauncherTest, FailureIsNotToldToARankThatKeepsTheConnection) {
    request_.own = true;
    std::string reason;
    EXPECT_TRUE(launcher_.end_connected(request_, reason));
    EXPECT_LT(tell("rank 1 was killed"), 0);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(hear(), std::string(1, node::spawn_connected));
}

// A program that spawns one world after the other needs descriptors for those that run.
TEST_F(LauncherTest, ConnectionOfAJobThatHasEndedIsClosed) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    std::string reason;
    EXPECT_TRUE(launcher_.end_connected({.connection = ends[0], .own = true}, reason));
    close(ends[1]); // the job ends
    request_.own = true;
    EXPECT_TRUE(launcher_.end_connected(request_, reason));
    EXPECT_LT(fcntl(ends[0], F_GETFD), 0);
    EXPECT_GE(fcntl(request_.connection, F_GETFD), 0);
}

} // namespace
} // namespace warren::mpi
