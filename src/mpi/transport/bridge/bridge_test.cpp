// Ranks of two worlds in one process.
#include "mpi/transport/bridge/bridge.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "mpi/job/local_socket.hpp"
#include "mpi/transport/fabric/frame.hpp"

namespace warren::transport::bridge {
namespace {

constexpr auto patience = std::chrono::seconds(20);

struct Received {
    Header header;
    std::uint32_t sender;
    std::vector<std::byte> data;
    bool block;
};

// A world of one rank.
struct World {
    explicit World(const Patience& its_patience = {}) {
        Error error = node::Segment::create({.ranks = 1, .cores = 1}, segment);
        EXPECT_FALSE(error);
        rank = std::make_unique<Rank>(segment, 0);
        listen(its_patience);
    }
    void listen(const Patience& its_patience = {}) {
        Error error = Bridge::open(
            *rank,
            {.grow = [this](std::uint32_t endpoints) { room = endpoints; },
             .forget =
                 [this](std::vector<std::uint32_t>& ended) {
                     std::erase_if(ended, [this](auto endpoint) { return endpoint == kept; });
                     forgotten.insert(forgotten.end(), ended.begin(), ended.end());
                 }},
            bridge, its_patience);
        EXPECT_FALSE(error);
    }
    node::ProcessName name() const { return bridge->own_name(); }
    void poll() {
        bridge->poll([this](const Arrival& arrival) {
            received.push_back({.header = arrival.header,
                                .sender = arrival.sender,
                                .data = {arrival.data, arrival.data + arrival.bytes},
                                .block = arrival.extra != nullptr});
            return true;
        });
    }

    node::Segment segment;
    std::unique_ptr<Rank> rank;
    std::unique_ptr<Bridge> bridge;
    std::uint32_t room = 0;
    std::uint32_t kept = 0; // which the room above can't forget
    std::vector<std::uint32_t> forgotten;
    std::vector<Received> received;
};

void poll_for(World& world, std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
        world.poll();
        sched_yield();
    }
}

// While one of these lives, the process gets no other descriptor.
class NoDescriptor {
  public:
    NoDescriptor() {
        const int free = dup(0);
        getrlimit(RLIMIT_NOFILE, &before_);
        rlimit now = before_;
        now.rlim_cur = static_cast<rlim_t>(free);
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
        close(free);
    }
    ~NoDescriptor() { setrlimit(RLIMIT_NOFILE, &before_); }
    NoDescriptor(const NoDescriptor&) = delete;
    NoDescriptor& operator=(const NoDescriptor&) = delete;

  private:
    rlimit before_;
};

template <typename Condition>
bool comes(World& one, World& other, Condition condition) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!condition() && std::chrono::steady_clock::now() < end) {
        one.poll();
        other.poll();
        sched_yield();
    }
    return condition();
}

std::vector<std::byte> bytes_of(std::size_t count, int seed) {
    std::vector<std::byte> data(count);
    for (std::size_t index = 0; index < count; ++index) {
        data[index] = static_cast<std::byte>(index * 7 + static_cast<std::size_t>(seed));
    }
    return data;
}

Header header(int tag) {
    return {.kind = 9, .context = 77, .source = 3, .tag = tag};
}

TEST(Bridge, CellsAndBlocksArriveInOrderAndWhole) {
    World one;
    World other;
    const std::uint32_t endpoint = one.bridge->endpoint_of(other.name());
    EXPECT_EQ(endpoint, 1U);
    EXPECT_GE(one.room, 2U);
    EXPECT_EQ(one.bridge->name_of(endpoint), other.name());
    constexpr int messages = 300; // more than the kernel and the backlog keep
    const Extra extra = {std::byte{5}};
    int sent = 0;
    const auto size_of = [](int tag) {
        const auto number = static_cast<std::size_t>(tag);
        return tag % 3 == 0 ? number % 40 : fabric::block_bytes_limit - number;
    };
    EXPECT_TRUE(comes(one, other, [&] {
        while (sent < messages) {
            const std::vector<std::byte> data = bytes_of(size_of(sent), sent);
            if (!one.bridge->send(endpoint, header(sent), sent % 3 == 0 ? nullptr : &extra,
                                  data.data(), data.size())) {
                break;
            }
            ++sent;
        }
        return other.received.size() == messages;
    }));
    for (int tag = 0; tag < static_cast<int>(other.received.size()); ++tag) {
        const Received& got = other.received[static_cast<std::size_t>(tag)];
        ASSERT_EQ(got.header.tag, tag);
        EXPECT_EQ(got.header.context, 77U);
        EXPECT_EQ(got.block, tag % 3 != 0);
        EXPECT_EQ(got.data, bytes_of(size_of(tag), tag));
        EXPECT_EQ(got.sender, other.bridge->endpoint_of(one.name()));
    }
}

TEST(Bridge, ProcessesThatDoNotListenYetGetTheirMessagesLater) {
    World one;
    auto other = std::make_unique<World>();
    const node::ProcessName name = other->name();
    other->bridge.reset();
    const std::uint32_t endpoint = one.bridge->endpoint_of(name);
    EXPECT_EQ(one.bridge->reach(endpoint), ECONNREFUSED);
    EXPECT_TRUE(one.bridge->send(endpoint, header(1), nullptr, "hello", 5));
    EXPECT_FALSE(one.bridge->is_idle());
    other->listen();
    EXPECT_TRUE(comes(one, *other, [&] { return other->received.size() == 1; }));
    EXPECT_TRUE(one.bridge->is_idle());
}

// MPI_Comm_free does not wait for the message. The connection closes as soon as it is there.
TEST(Bridge, MessagesArriveWhoseCommunicatorIsFreedBeforeTheirReceiverListens) {
    World one({.lost_us = 0});
    World other;
    const node::ProcessName name = other.name();
    other.bridge.reset();
    const std::uint32_t endpoint = one.bridge->endpoint_of(name);
    one.bridge->retain(endpoint);
    EXPECT_TRUE(one.bridge->send(endpoint, header(1), nullptr, "hello", 5));
    one.bridge->release(endpoint);
    other.listen();
    EXPECT_TRUE(comes(one, other, [&] { return other.received.size() == 1; }));
    EXPECT_TRUE(one.bridge->is_idle());
    ASSERT_TRUE(comes(
        one, other, [&] { return other.bridge->has_left(other.bridge->endpoint_of(one.name())); }));
}

TEST(Bridge, FullQueuesOfConnectionsAreTriedAgain) {
    World one({.lost_us = 0});
    node::ProcessName name;
    {
        const World other;
        name = other.name();
    }
    const int listener = node::listen_at(node::socket_of(name), SOCK_STREAM, 1);
    ASSERT_GE(listener, 0);
    std::vector<int> others;
    int made = node::connect_to(node::socket_of(name), SOCK_STREAM);
    for (; made >= 0; made = node::connect_to(node::socket_of(name), SOCK_STREAM)) {
        others.push_back(made);
    }
    EXPECT_EQ(errno, EAGAIN);
    const std::uint32_t endpoint = one.bridge->endpoint_of(name);
    EXPECT_EQ(one.bridge->reach(endpoint), EAGAIN);
    EXPECT_TRUE(one.bridge->send(endpoint, header(1), nullptr, "hello", 5));
    poll_for(one, std::chrono::milliseconds(5));
    EXPECT_FALSE(one.bridge->is_idle());
    for (std::size_t taken = 0; taken < others.size(); ++taken) {
        close(node::accept_own(listener));
        close(others[taken]);
    }
    EXPECT_TRUE(comes(one, one, [&] { return one.bridge->is_idle(); }));
    const int connection = node::accept_own(listener);
    char bytes[200];
    EXPECT_EQ(recv(connection, bytes, sizeof bytes, MSG_DONTWAIT),
              static_cast<ssize_t>(sizeof(Hello) + sizeof(FrameHead) + 5));
    close(connection);
    close(listener);
}

// The time that its receiver took to listen is none of a lack's time.
TEST(Bridge, LacksOfDescriptorsPass) {
    constexpr std::uint64_t ms = 1'000'000;
    World one({.descriptor_ns = 5'000 * ms, .lost_us = 0});
    World other;
    const node::ProcessName name = other.name();
    other.bridge.reset();
    const std::uint32_t endpoint = one.bridge->endpoint_of(name);
    one.bridge->send(endpoint, header(1), nullptr, "hello", 5);
    other.listen();
    {
        const NoDescriptor none;
        EXPECT_EQ(one.bridge->reach(endpoint), EMFILE);
        poll_for(one, std::chrono::milliseconds(5));
        EXPECT_FALSE(one.bridge->is_idle());
    }
    EXPECT_TRUE(comes(one, one, [&] { return one.bridge->is_idle(); }));
    {
        const NoDescriptor none; // to take the connection
        poll_for(other, std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(comes(one, other, [&] { return other.received.size() == 1; }));
}

TEST(Bridge, ReceiverThatListensLateTakesNothingOfTheTimeForDescriptors) {
    constexpr std::uint64_t ms = 1'000'000;
    World one({.descriptor_ns = 100 * ms, .lost_us = 0});
    World other;
    const node::ProcessName name = other.name();
    other.bridge.reset();
    one.bridge->send(one.bridge->endpoint_of(name), header(1), nullptr, "hello", 5);
    usleep(150'000);
    {
        const NoDescriptor none;
        for (std::uint32_t look = 0; look < looks_per_poll; ++look) {
            one.poll();
        }
    }
    other.listen();
    EXPECT_TRUE(comes(one, other, [&] { return other.received.size() == 1; }));
}

TEST(BridgeDeathTest, LacksOfDescriptorsThatDoNotPassEndTheRank) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    static constexpr Patience short_one = {.descriptor_ns = 20'000'000, .lost_us = 0};
    const auto lacks = [](bool connects) {
        World one(short_one);
        World other;
        const std::uint32_t endpoint = one.bridge->endpoint_of(other.name());
        if (connects) {
            other.bridge.reset();
            one.bridge->send(endpoint, header(1), nullptr, "hello", 5);
        } else {
            other.bridge->send(other.bridge->endpoint_of(one.name()), header(1), nullptr, "x", 1);
        }
        const NoDescriptor none;
        poll_for(one, patience);
    };
    EXPECT_EXIT(lacks(true), testing::ExitedWithCode(1), "no connection.*no descriptor left");
    EXPECT_EXIT(lacks(false), testing::ExitedWithCode(1), "can't be taken.*no descriptor left");
}

// Else the rank would end its job.
TEST(Bridge, GoodbyeLetsAProcessEnd) {
    World one;
    const std::uint32_t endpoint = [&] {
        World other;
        const std::uint32_t its = one.bridge->endpoint_of(other.name());
        const std::uint32_t back = other.bridge->endpoint_of(one.name());
        one.bridge->retain(its);
        other.bridge->retain(back);
        EXPECT_TRUE(other.bridge->send(back, header(1), nullptr, "hello", 5));
        EXPECT_TRUE(comes(one, other, [&] { return one.received.size() == 1; }));
        other.bridge->release(back);
        EXPECT_TRUE(other.bridge->is_idle());
        return its;
    }();
    for (std::uint32_t turn = 0; turn < 10 * looks_per_poll; ++turn) {
        one.poll();
    }
    // Nobody takes it.
    EXPECT_TRUE(one.bridge->send(endpoint, header(2), nullptr, "hello", 5));
    EXPECT_TRUE(one.bridge->is_idle());
    one.bridge->release(endpoint);
}

// Two that have not met exchange messages, and say goodbye. The endpoint of the other one.
std::uint32_t meet_and_part(World& one, World& other) {
    const std::uint32_t its = one.bridge->endpoint_of(other.name());
    const std::uint32_t back = other.bridge->endpoint_of(one.name());
    one.bridge->retain(its);
    other.bridge->retain(back);
    EXPECT_TRUE(one.bridge->send(its, header(1), nullptr, "hello", 5));
    EXPECT_TRUE(other.bridge->send(back, header(1), nullptr, "hello", 5));
    EXPECT_TRUE(comes(one, other, [&] {
        return !one.received.empty() && one.received.back().sender == its &&
               !other.received.empty();
    }));
    one.bridge->release(its);
    other.bridge->release(back);
    EXPECT_TRUE(comes(one, other,
                      [&] { return one.bridge->has_left(its) && other.bridge->has_left(back); }));
    return its;
}

TEST(Bridge, ForgetsProcessesThatHaveEnded) {
    World one;
    World stays;
    const std::uint32_t its = meet_and_part(one, stays);
    for (std::size_t turn = 0; turn <= 2 * ways_at_first; ++turn) {
        World other;
        const std::uint32_t endpoint = meet_and_part(one, other);
        one.kept = turn == 0 ? endpoint : one.kept;
    }
    EXPECT_GE(one.forgotten.size(), ways_at_first);
    EXPECT_EQ(std::count(one.forgotten.begin(), one.forgotten.end(), its), 0);
    EXPECT_EQ(one.bridge->endpoint_of(stays.name()), its);
    EXPECT_NE(one.bridge->name_of(one.kept), node::ProcessName{});
    // Somebody may still name it: nobody is there.
    EXPECT_EQ(one.bridge->name_of(one.forgotten.front()), node::ProcessName{});
    EXPECT_TRUE(one.bridge->has_left(one.forgotten.front()));
    EXPECT_TRUE(one.bridge->send(one.forgotten.front(), header(2), nullptr, "hello", 5));
    EXPECT_TRUE(one.bridge->is_idle());
}

TEST(Bridge, NothingWaitsForAProcessThatHasEnded) {
    World one;
    auto other = std::make_unique<World>();
    const std::uint32_t its = one.bridge->endpoint_of(other->name());
    const std::uint32_t back = other->bridge->endpoint_of(one.name());
    EXPECT_TRUE(other->bridge->send(back, header(1), nullptr, "hello", 5));
    EXPECT_TRUE(comes(one, *other, [&] { return !one.received.empty(); }));
    other.reset(); // without goodbye
    one.bridge->send(its, header(1), nullptr, "hello", 5);
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!one.bridge->is_idle() && std::chrono::steady_clock::now() < end) {
        one.poll();
    }
    EXPECT_TRUE(one.bridge->is_idle());
    EXPECT_TRUE(one.bridge->has_left(its));
}

TEST(Bridge, OldGoodbyeMeansNothingToAProcessThatHasCalledAgain) {
    World one;
    World other;
    other.bridge->leave(); // in a session before
    other.bridge->come_back();
    const std::uint32_t its = one.bridge->endpoint_of(other.name());
    const std::uint32_t back = other.bridge->endpoint_of(one.name());
    one.bridge->retain(its);
    other.bridge->retain(back);
    one.bridge->send(its, header(1), nullptr, "hello", 5);
    other.bridge->send(back, header(1), nullptr, "hello", 5);
    ASSERT_TRUE(
        comes(one, other, [&] { return one.received.size() == 1 && other.received.size() == 1; }));
    other.bridge->release(back);
    one.bridge->release(its);
    ASSERT_EQ(one.bridge->reach(its), 0); // before the other's goodbye is read
    one.bridge->send(its, header(2), nullptr, "again", 5);
    ASSERT_TRUE(comes(one, other, [&] { return other.received.size() == 2; }));
    EXPECT_FALSE(one.bridge->has_left(its));
    EXPECT_FALSE(other.bridge->has_left(back));
}

// Frames of all lengths and flags, whole and broken off, as sound ones come in between.
TEST(Bridge, DamagedFramesEndTheirConnectionOnly) {
    World one;
    std::minstd_rand random(1);
    const auto below = [&](std::uint32_t limit) {
        return static_cast<std::uint32_t>(random()) % limit;
    };
    std::size_t sound = 0;
    for (int turn = 0; turn < 300; ++turn) {
        const int connection = node::connect_to(node::socket_of(one.name()), SOCK_STREAM);
        ASSERT_GE(connection, 0);
        const Hello hello = {
            .magic = hello_magic, .world = 1, .rank = below(3), .connection = below(3)};
        std::vector<std::byte> bytes(sizeof hello);
        std::memcpy(bytes.data(), &hello, sizeof hello);
        const FrameHead first = {
            .bytes = 40, .kind = 9, .flags = 0, .context = 77, .source = 3, .tag = turn};
        const FrameHead second = {.bytes = below(100'000),
                                  .kind = static_cast<CellKind>(below(40)),
                                  .flags = static_cast<std::uint16_t>(below(20)),
                                  .context = static_cast<std::uint32_t>(random()),
                                  .source = static_cast<std::int32_t>(random()),
                                  .tag = static_cast<std::int32_t>(random())};
        for (const FrameHead& head : {first, second}) {
            const std::size_t at = bytes.size();
            bytes.resize(at + sizeof head + 40 + below(200));
            std::memcpy(bytes.data() + at, &head, sizeof head);
            if (&head.bytes == &first.bytes) {
                bytes.resize(at + sizeof head + 40);
            }
        }
        // (The bridge may close it before.)
        static_cast<void>(send(connection, bytes.data(), bytes.size() - below(2), MSG_NOSIGNAL));
        close(connection);
        ++sound;
        const auto end = std::chrono::steady_clock::now() + patience;
        while (one.received.size() < sound && std::chrono::steady_clock::now() < end) {
            one.poll();
        }
        sound = one.received.size(); // the second one may be sound, too
        ASSERT_GE(sound, static_cast<std::size_t>(turn) + 1);
    }
}

// Connects to a process of another world, which ends then.
void outlive_another(World& one) {
    {
        World other;
        one.bridge->retain(one.bridge->endpoint_of(other.name()));
        const std::uint32_t back = other.bridge->endpoint_of(one.name());
        other.bridge->send(back, header(1), nullptr, "hello", 5);
        comes(one, other, [&] { return one.received.size() == 1; });
    }
    poll_for(one, patience);
}

TEST(BridgeDeathTest, EndOfAConnectedProcessEndsTheRank) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(
        {
            World one({.lost_us = 0});
            outlive_another(one);
        },
        testing::ExitedWithCode(1), "another world has ended");
}

TEST(BridgeDeathTest, RankThatHasComeBackNoticesEndsOfConnectedProcesses) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(
        {
            World one({.lost_us = 0});
            one.bridge->leave();
            one.bridge->come_back();
            outlive_another(one);
        },
        testing::ExitedWithCode(1), "another world has ended");
}

TEST(Bridge, StrangersAreNotBelieved) {
    World one;
    const int connection = node::connect_to(node::socket_of(one.name()), SOCK_STREAM);
    ASSERT_GE(connection, 0);
    const std::vector<std::byte> junk = bytes_of(4096, 1);
    ASSERT_GT(send(connection, junk.data(), junk.size(), MSG_NOSIGNAL), 0);
    const auto end = std::chrono::steady_clock::now() + patience;
    char letter;
    ssize_t got = -1;
    while (got < 0 && std::chrono::steady_clock::now() < end) {
        one.poll();
        got = recv(connection, &letter, 1, MSG_DONTWAIT);
        if (got < 0 && errno == ECONNRESET) {
            got = 0;
        }
    }
    EXPECT_EQ(got, 0); // closed
    EXPECT_TRUE(one.received.empty());
    close(connection);
}

} // namespace
} // namespace warren::transport::bridge
