// Ports of one process talk to each other over the loopback interface.
#include "mpi/transport/fabric/port.hpp"

#include <chrono>
#include <map>
#include <poll.h>
#include <thread>

#include <gtest/gtest.h>

namespace warren::transport::fabric {
namespace {

using namespace std::chrono_literals;
constexpr std::uint64_t secret = 0xfeedfacecafebeef;
constexpr auto patience = 20s;

struct Received {
    CellHeader header;
    std::vector<std::byte> data;
    bool block;
};

// Ports, by the number of their process.
struct Network {
    std::map<std::uint32_t, std::unique_ptr<Port>> ports;
    std::map<std::uint32_t, std::vector<Received>> received;
    std::map<std::uint32_t, std::string> failures; // by the process that can't be reached

    // False: the provider is not here.
    bool open(std::uint32_t process, const std::string& provider,
              std::uint64_t its_secret = secret) {
        Wish wish = {.provider = provider, .interface = "lo"};
        Error error = Port::open(
            {.secret = its_secret, .process = process, .ranks = 10}, wish,
            [this](std::uint32_t to, Address& address) -> Error {
                if (!ports.contains(to)) {
                    return fail(1, "nobody has number %u", to);
                }
                address = ports[to]->address();
                return {};
            },
            [this](std::uint32_t to, const std::string& cause) { failures[to] = cause; },
            ports[process]);
        if (!error) {
            return true;
        }
        ErrorRecord* const record = error.take();
        last_error = record->text;
        delete record;
        return false;
    }
    std::string last_error;

    Port& port(std::uint32_t process) { return *ports[process]; }
    bool poll(std::uint32_t process) {
        return port(process).poll([&](const FrameCell& cell) {
            received[process].push_back({.header = cell.header,
                                         .data = {cell.data, cell.data + cell.header.bytes},
                                         .block = cell.extra != nullptr});
        });
    }
    // False: it took too long.
    template <typename Done>
    bool poll_until(Done done) {
        const auto end = std::chrono::steady_clock::now() + patience;
        while (!done()) {
            for (const auto& [process, port] : ports) {
                poll(process);
            }
            if (std::chrono::steady_clock::now() > end) {
                return false;
            }
        }
        return true;
    }
    bool send(std::uint32_t from, std::uint32_t to, std::int32_t tag,
              const std::vector<std::byte>& data) {
        Link* link = nullptr;
        if (Error error = port(from).link_to(to, link)) {
            error.drop();
            return false;
        }
        const CellHeader header = {.kind = 2,
                                   .block = data.size() > inline_bytes ? std::uint16_t{1}
                                                                       : std::uint16_t{0},
                                   .slot = 0,
                                   .sender = from,
                                   .context = 2,
                                   .source = 0,
                                   .tag = tag,
                                   .bytes = static_cast<std::uint32_t>(data.size()),
                                   .reserved = 0};
        const Extra extra = {};
        return port(from).send(*link, header, header.block != 0 ? &extra : nullptr, data.data());
    }
};

std::vector<std::byte> data_of(std::size_t bytes, int seed) {
    std::vector<std::byte> data(bytes);
    for (std::size_t at = 0; at < bytes; ++at) {
        data[at] = static_cast<std::byte>(at * 7 + static_cast<std::size_t>(seed));
    }
    return data;
}

class Ports : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        if (!network.open(1, GetParam())) {
            network.ports.clear();
            GTEST_SKIP() << network.last_error;
        }
        ASSERT_TRUE(network.open(2, GetParam())) << network.last_error;
    }
    Network network;
};

TEST_P(Ports, CarryCellsAndBlocksInOrder) {
    constexpr int messages = 1000;
    const std::size_t sizes[] = {0, 1, 8, 40, 41, 1000, 20'000, block_bytes_limit};
    int sent = 0;
    int answered = 0;
    ASSERT_TRUE(network.poll_until([&] {
        // Both ways at once.
        while (sent < messages && network.send(1, 2, sent, data_of(sizes[sent % 8], sent))) {
            ++sent;
        }
        while (answered < messages && network.send(2, 1, answered, data_of(8, answered))) {
            ++answered;
        }
        return network.received[2].size() == messages && network.received[1].size() == messages;
    })) << network.received[2].size()
        << " and " << network.received[1].size() << " have arrived";
    for (int number = 0; number < messages; ++number) {
        const Received& there = network.received[2][static_cast<std::size_t>(number)];
        ASSERT_EQ(there.header.tag, number);
        ASSERT_EQ(there.header.sender, 1U);
        ASSERT_EQ(there.block, sizes[number % 8] > inline_bytes);
        ASSERT_EQ(there.data, data_of(sizes[number % 8], number));
        ASSERT_EQ(network.received[1][static_cast<std::size_t>(number)].header.tag, number);
    }
    EXPECT_EQ(network.port(1).refused(), 0U);
    EXPECT_TRUE(network.failures.empty());
    EXPECT_TRUE(
        network.poll_until([&] { return network.port(1).is_idle() && network.port(2).is_idle(); }));
}

TEST_P(Ports, CoalesceCellsThatFollowEachOther) {
    constexpr int messages = 500;
    ASSERT_TRUE(network.send(1, 2, 0, data_of(8, 0)));
    ASSERT_TRUE(network.poll_until([&] { return network.received[2].size() == 1; }));
    const std::uint64_t before = network.port(1).frames_sent();
    for (int number = 0; number < messages; ++number) {
        ASSERT_TRUE(network.send(1, 2, number, data_of(8, number)));
    }
    ASSERT_TRUE(network.poll_until([&] { return network.received[2].size() == messages + 1; }));
    // (A loaded machine may take longer than cells linger.)
    EXPECT_LT(network.port(1).frames_sent() - before, messages / 2);
}

TEST_P(Ports, BoundWhatIsSentToWhoIsAway) {
    int sent = 0;
    const auto data = data_of(block_bytes_limit, 0);
    for (int turn = 0; turn < 100'000 && sent < 1000; ++turn) {
        sent += network.send(1, 2, sent, data) ? 1 : 0;
        network.poll(1);
    }
    // One more is in the open frame.
    EXPECT_LE(sent, static_cast<int>(credit_frames) + 1);
    ASSERT_TRUE(network.poll_until(
        [&] { return network.received[2].size() == static_cast<std::size_t>(sent); }));
    EXPECT_TRUE(network.poll_until([&] { return network.send(1, 2, sent, data); }));
}

TEST_P(Ports, RefuseFramesOfAnotherJob) {
    ASSERT_TRUE(network.open(3, GetParam(), secret + 1)) << network.last_error;
    ASSERT_TRUE(network.send(3, 2, 0, data_of(8, 0)));
    ASSERT_TRUE(network.poll_until([&] { return network.port(2).refused() == 1; }));
    EXPECT_TRUE(network.received[2].empty());
    ASSERT_TRUE(network.send(1, 2, 0, data_of(8, 0)));
    EXPECT_TRUE(network.poll_until([&] { return network.received[2].size() == 1; }));
}

TEST_P(Ports, RefuseFramesThatAreSentTwice) {
    // A second port that says it is process 1 sends what 1 has sent before.
    ASSERT_TRUE(network.send(1, 2, 0, data_of(8, 0)));
    ASSERT_TRUE(network.poll_until([&] { return network.received[2].size() == 1; }));
    Network other;
    other.ports[2] = std::move(network.ports[2]);
    network.ports.erase(2);
    ASSERT_TRUE(other.open(1, GetParam())) << other.last_error;
    ASSERT_TRUE(other.send(1, 2, 0, data_of(8, 0)));
    EXPECT_TRUE(other.poll_until([&] { return other.port(2).refused() == 1; }));
    EXPECT_TRUE(other.received[2].empty());
}

TEST_P(Ports, SayWhoCannotBeReached) {
    EXPECT_FALSE(network.send(1, 9, 0, data_of(8, 0)));
}

TEST_P(Ports, WakeWhoWaitsForTheDescriptor) {
    if (network.port(2).wait_descriptor() < 0) {
        GTEST_SKIP() << "the provider has none";
    }
    // Connects them first.
    ASSERT_TRUE(network.send(1, 2, 0, data_of(8, 0)));
    ASSERT_TRUE(network.poll_until([&] { return network.received[2].size() == 1; }));
    for (int number = 1; number <= 20; ++number) {
        std::thread sender([&] {
            std::this_thread::sleep_for(5ms);
            network.send(1, 2, number, data_of(8, 0));
            network.poll(1);
        });
        const auto end = std::chrono::steady_clock::now() + patience;
        while (network.received[2].size() != static_cast<std::size_t>(number) + 1 &&
               std::chrono::steady_clock::now() < end) {
            if (network.port(2).may_wait()) {
                pollfd waited = {
                    .fd = network.port(2).wait_descriptor(), .events = POLLIN, .revents = 0};
                ::poll(&waited, 1, 10'000);
            }
            network.poll(2);
        }
        sender.join();
        ASSERT_EQ(network.received[2].size(), static_cast<std::size_t>(number) + 1);
    }
}

TEST_P(Ports, SleepWhileOnlyTheirPeerCanLetThemGoOn) {
    if (network.port(1).wait_descriptor() < 0) {
        GTEST_SKIP() << "the provider has none";
    }
    const auto data = data_of(block_bytes_limit, 0);
    // Until the open frame waits for credit.
    for (int turn = 0; turn < 2000; ++turn) {
        network.send(1, 2, 0, data);
        network.poll(1);
    }
    EXPECT_TRUE(network.poll_until([&] { return network.port(1).may_wait(); }));
}

TEST_P(Ports, RefuseFramesOfNoRankOfTheJob) {
    ASSERT_TRUE(network.open(11, GetParam())) << network.last_error; // of ten ranks
    ASSERT_TRUE(network.send(11, 2, 0, data_of(8, 0)));
    ASSERT_TRUE(network.poll_until([&] { return network.port(2).refused() == 1; }));
    EXPECT_TRUE(network.received[2].empty());
}

INSTANTIATE_TEST_SUITE_P(Providers, Ports,
                         testing::Values("tcp", "tcp;ofi_rxm", "udp;ofi_rxd", "sockets"),
                         [](const testing::TestParamInfo<const char*>& provider) {
                             std::string name = provider.param;
                             for (char& letter : name) {
                                 letter = letter == ';' ? '_' : letter;
                             }
                             return name;
                         });

// At least one provider must be here, or the tests above show nothing.
TEST(Port, OpensOnThisMachine) {
    Network network;
    EXPECT_TRUE(network.open(1, "")) << network.last_error;
}

TEST(Port, SaysThatAProviderIsMissing) {
    Network network;
    EXPECT_FALSE(network.open(1, "verbs;ofi_rxm"));
    EXPECT_NE(network.last_error.find("verbs;ofi_rxm on lo"), std::string::npos)
        << network.last_error;
}

} // namespace
} // namespace warren::transport::fabric
