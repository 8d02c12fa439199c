#include "mpi/job/name_service.hpp"

#include <atomic>
#include <cerrno>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "mpi.h"
#include "mpi/job/local_socket.hpp"

namespace warren::node {
namespace {

std::string own_name(const char* name) {
    return std::to_string(getpid()) + "." + name;
}

int class_of(Error error) {
    const int its = error.error_class();
    error.drop();
    return its;
}

TEST(NameService, PublishedNamesAreFoundUntilTheyAreNot) {
    NameService names;
    const std::string service = own_name("service");
    const std::string longer = service + std::string(300, 'x');
    std::string found;
    EXPECT_EQ(class_of(NameService::look_up(service, found)), MPI_ERR_NAME);
    EXPECT_EQ(class_of(names.publish(service, "port one")), MPI_SUCCESS);
    EXPECT_EQ(class_of(names.publish(longer, "port two")), MPI_SUCCESS);
    EXPECT_EQ(class_of(names.publish(longer + "y", "port three")), MPI_SUCCESS);
    EXPECT_EQ(class_of(NameService::look_up(service, found)), MPI_SUCCESS);
    EXPECT_EQ(found, "port one");
    EXPECT_EQ(class_of(NameService::look_up(longer, found)), MPI_SUCCESS);
    EXPECT_EQ(found, "port two");
    NameService others;
    EXPECT_EQ(class_of(others.publish(service, "another")), MPI_ERR_SERVICE);
    EXPECT_EQ(class_of(others.unpublish(service)), MPI_ERR_SERVICE);
    EXPECT_EQ(class_of(names.unpublish(service)), MPI_SUCCESS);
    EXPECT_EQ(class_of(NameService::look_up(service, found)), MPI_ERR_NAME);
    EXPECT_EQ(class_of(others.publish(service, "another")), MPI_SUCCESS);
    EXPECT_EQ(class_of(NameService::look_up(service, found)), MPI_SUCCESS);
    EXPECT_EQ(found, "another");
}

// The thread that answers polls the socket when its name ends.
TEST(NameService, NamesAreFreeOnceTheyAreUnpublished) {
    NameService names;
    const std::string service = own_name("again");
    for (int turn = 0; turn < 200; ++turn) {
        ASSERT_EQ(class_of(names.publish(service, "port")), MPI_SUCCESS) << turn;
        usleep(turn % 4 * 50); // it may poll already
        ASSERT_EQ(class_of(names.unpublish(service)), MPI_SUCCESS);
    }
}

// Those that ask more often than the service's process gets to answer.
TEST(NameService, FullQueuesOfThoseThatAskAreTriedAgain) {
    const std::string service = own_name("asked");
    const std::string socket = "warren.name." + std::to_string(geteuid()) + "." + service;
    const int listener = listen_at(socket, SOCK_SEQPACKET, 1);
    ASSERT_GE(listener, 0);
    std::vector<int> others;
    int made = connect_to(socket, SOCK_SEQPACKET);
    for (; made >= 0; made = connect_to(socket, SOCK_SEQPACKET)) {
        others.push_back(made);
    }
    EXPECT_EQ(errno, EAGAIN);
    std::thread answers([&] {
        usleep(20'000);
        for (std::size_t answered = 0; answered <= others.size();) {
            if (const int asking = accept_own(listener); asking >= 0) {
                send(asking, "port", 4, MSG_NOSIGNAL);
                close(asking);
                ++answered;
            }
        }
    });
    std::string found;
    EXPECT_EQ(class_of(NameService::look_up(service, found)), MPI_SUCCESS);
    EXPECT_EQ(found, "port");
    answers.join();
    for (const int descriptor : others) {
        close(descriptor);
    }
    close(listener);
}

TEST(NameService, WhoAsksWaitsWhileThereIsNoDescriptorToAnswerWith) {
    NameService names;
    const std::string service = own_name("lacks");
    EXPECT_EQ(class_of(names.publish(service, "port")), MPI_SUCCESS);
    std::string found;
    rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    // Begun before: a sanitizer looks at what a thread gets with descriptors of its own.
    std::atomic<bool> lacks = false;
    std::thread later([&] {
        while (!lacks) {
            usleep(1'000);
        }
        usleep(50'000);
        setrlimit(RLIMIT_NOFILE, &before);
    });
    const int free = dup(0);
    rlimit none = before;
    none.rlim_cur = static_cast<rlim_t>(free) + 1; // one to ask, none to answer
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    close(free);
    lacks = true;
    EXPECT_EQ(class_of(NameService::look_up(service, found)), MPI_SUCCESS);
    EXPECT_EQ(found, "port");
    later.join();
}

TEST(NameService, NamesEndWithTheirService) {
    const std::string service = own_name("short");
    std::string found;
    {
        NameService names;
        EXPECT_EQ(class_of(names.publish(service, "port")), MPI_SUCCESS);
    }
    EXPECT_EQ(class_of(NameService::look_up(service, found)), MPI_ERR_NAME);
}

} // namespace
} // namespace warren::node
