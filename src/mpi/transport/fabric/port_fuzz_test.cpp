// Hostile bytes: frames that are damaged, sent twice, in any order or of other senders, with the
// job's secret; and strangers that connect to the port and send what they like. The test goes on
// for WARREN_FUZZ_SECONDS. Run it under AddressSanitizer.
#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <chrono>
#include <cstdlib>
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "mpi/transport/fabric/port.hpp"

namespace warren::transport::fabric {
namespace {

constexpr std::uint64_t secret = 0x0123456789abcdef;
constexpr std::uint32_t ranks = 8;
using Bytes = std::vector<std::byte>;
using Random = std::minstd_rand;

std::uint32_t below(Random& random, std::uint32_t limit) {
    return static_cast<std::uint32_t>(random()) % limit;
}

std::unique_ptr<Port> open_port(std::uint32_t process, const char* provider = "") {
    std::unique_ptr<Port> port;
    Error error = Port::open(
        {.secret = secret, .process = process, .ranks = ranks},
        {.provider = provider, .interface = "lo"},
        [](std::uint32_t, Address&) { return fail(1, "nobody is there"); },
        [](std::uint32_t, const std::string&) {}, port);
    error.drop();
    return port;
}

Bytes frame_of(Random& random, std::uint32_t source, std::uint32_t number) {
    Bytes frame(sizeof(FrameHeader));
    const std::uint32_t cells = below(random, 4);
    for (std::uint32_t cell = 0; cell < cells; ++cell) {
        const bool block = below(random, 2) != 0;
        CellHeader header = {};
        header.kind = static_cast<CellKind>(below(random, 30));
        header.block = block ? 1 : 0;
        header.slot = below(random, 4);
        header.sender = below(random, ranks);
        header.bytes = below(random, block ? 500U : 41U);
        const std::size_t at = frame.size();
        frame.resize(at + cell_bytes_of(block, header.bytes));
        std::memcpy(frame.data() + at, &header, sizeof header);
    }
    const FrameHeader header = {.magic = frame_magic,
                                .bytes = static_cast<std::uint32_t>(frame.size()),
                                .secret = secret,
                                .source = source,
                                .number = number,
                                .consumed = 0,
                                .cells = cells};
    std::memcpy(frame.data(), &header, sizeof header);
    return frame;
}

void damage(Random& random, Bytes& frame) {
    for (std::uint32_t changes = below(random, 3); changes > 0; --changes) {
        const std::size_t at = below(random, static_cast<std::uint32_t>(frame.size()));
        if (at < 8 || at >= 16) { // not the secret, which hides what is behind it
            frame[at] = static_cast<std::byte>(random());
        }
    }
    if (below(random, 10) == 0) {
        frame.resize(below(random, static_cast<std::uint32_t>(frame.size()) + 40));
    }
}

TEST(PortFuzz, DamagedFramesAreRefusedAndSoundOnesHandedOverInOrder) {
    const std::unique_ptr<Port> port = open_port(0);
    ASSERT_NE(port, nullptr);
    const char* const seconds = std::getenv("WARREN_FUZZ_SECONDS");
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 1);
    Random random(seconds != nullptr ? std::random_device{}() : 1);
    std::uint64_t handed = 0;
    std::uint64_t sum = 0;
    const auto read = [&](const FrameCell& cell) {
        ++handed;
        for (std::uint32_t byte = 0; byte < cell.header.bytes; ++byte) {
            sum += static_cast<std::uint8_t>(cell.data[byte]);
        }
        for (std::size_t byte = 0; cell.extra != nullptr && byte < extra_bytes; ++byte) {
            sum += static_cast<std::uint8_t>(cell.extra[byte]);
        }
    };
    std::array<std::uint32_t, ranks + 2> next = {}; // by sender: also this one, and one too many
    while (std::chrono::steady_clock::now() < end) {
        for (int turn = 0; turn < 1000; ++turn) {
            const std::uint32_t source = below(random, ranks + 2);
            // Near the number that is awaited; after some of them, that one.
            if (below(random, 4) != 0) {
                Bytes frame = frame_of(random, source, next[source] + below(random, 5) - 2);
                damage(random, frame);
                port->take(frame, read);
            } else {
                port->take(frame_of(random, source, next[source]++), read);
            }
        }
    }
    EXPECT_GT(handed, 1000U);
    EXPECT_GT(port->refused(), 1000U);
}

// --- Strangers

// Connects to a port as libfabric's tcp does, from its third version on.
class Stranger {
  public:
    explicit Stranger(const Port& port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
        const Address& address = port.address();
        const auto end = std::find(address.begin(), address.end(), std::byte{0});
        sockaddr_in there = {};
        std::memcpy(&there, &*end + 1, sizeof there);
        connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0;
    }
    Stranger(const Stranger&) = delete;
    Stranger& operator=(const Stranger&) = delete;
    ~Stranger() { close(socket_); }

    bool connected() const { return connected_; }
    // (Who has been refused already can't.)
    void send(const void* data, std::size_t bytes) const {
        static_cast<void>(::send(socket_, data, bytes, MSG_NOSIGNAL));
    }
    void greet() const {
        struct {
            std::uint8_t version = 3;
            std::uint8_t type = 0;
            std::uint16_t bytes = htons(8);
            std::uint32_t unused = 0;
            std::uint64_t connection = 0;
            std::uint64_t message = 0;
            std::uint64_t same_byte_order = 1;
            std::uint8_t cm_version[2] = {0, 0};
            std::uint16_t port = htons(4242);
            std::uint32_t process = htonl(4242);
        } greeting;
        send(&greeting, 40);
    }
    // A message of which less comes.
    void announce(std::uint64_t bytes, std::size_t come) const {
        struct {
            std::uint8_t version = 3;
            std::uint8_t operation = 0;
            std::uint16_t flags = 0;
            std::uint8_t data = 0;
            std::uint8_t pieces = 0;
            std::uint8_t head_bytes = 16;
            std::uint8_t unused = 0;
            std::uint64_t size = 0;
        } head;
        head.size = sizeof head + bytes;
        send(&head, sizeof head);
        const Bytes data(come);
        send(data.data(), data.size());
    }

  private:
    int socket_;
    bool connected_ = false;
};

void poll_for(Port& port, std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
        port.poll([](const FrameCell&) { ADD_FAILURE() << "a stranger's cell was taken"; });
    }
}

TEST(PortFuzz, StrangersWhoBreakOffCostNoBuffer) {
    using namespace std::chrono_literals;
    const std::unique_ptr<Port> port = open_port(0, "tcp");
    if (port == nullptr) {
        GTEST_SKIP() << "libfabric has no tcp here";
    }
    Random random(1);
    for (int turn = 0; turn < 30; ++turn) {
        const Stranger stranger(*port);
        ASSERT_TRUE(stranger.connected());
        if (turn % 3 == 0) {
            Bytes noise(1 + below(random, 300));
            for (std::byte& byte : noise) {
                byte = static_cast<std::byte>(random());
            }
            stranger.send(noise.data(), noise.size());
        } else {
            stranger.greet();
            poll_for(*port, 3ms);
            stranger.announce(turn % 3 == 1 ? 5000 : 3'000'000, 1000);
        }
        poll_for(*port, 3ms);
    }
    poll_for(*port, 20ms);
    EXPECT_EQ(port->buffers_posted(), receive_buffers);
}

} // namespace
} // namespace warren::transport::fabric
