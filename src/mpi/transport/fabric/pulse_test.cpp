// Lost nodes; what becomes of one that does not answer is shown by tests/network.
#include "mpi/transport/fabric/pulse.hpp"

#include <arpa/inet.h>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

namespace warren::transport::fabric {
namespace {

using namespace std::chrono_literals;
constexpr std::uint32_t node = 7;

Address loopback() {
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    Address address;
    for (const char letter : {'t', 'c', 'p', '\0'}) {
        address.push_back(static_cast<std::byte>(letter));
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(&place);
    address.insert(address.end(), bytes, bytes + sizeof place);
    return address;
}

// Whether a node is found to be lost within a time.
bool finds_loss(Pulse& pulse, std::chrono::milliseconds time, std::string& cause) {
    std::uint32_t found = 0;
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
        if (pulse.look(found, cause)) {
            EXPECT_EQ(found, node);
            return true;
        }
        std::this_thread::sleep_for(1ms);
    }
    return false;
}

TEST(Pulse, FindsOutThatTheOtherEndIsGone) {
    Pulse own;
    auto other = std::make_unique<Pulse>();
    own.open(loopback());
    other->open(loopback());
    ASSERT_NE(other->place(), 0U);
    own.watch(node, loopback(), other->place());
    own.watch(node, loopback(), other->place()); // as often as one likes
    std::string cause;
    EXPECT_FALSE(finds_loss(own, 50ms, cause)) << cause;
    other.reset();
    EXPECT_TRUE(finds_loss(own, 10s, cause));
    EXPECT_FALSE(finds_loss(own, 10ms, cause)) << "once";
}

TEST(Pulse, TakesNobodyWhoWasNeverThereForLost) {
    Pulse own;
    own.open(loopback());
    std::uint32_t free_place = 0;
    {
        Pulse gone;
        gone.open(loopback());
        free_place = gone.place();
    }
    own.watch(node, loopback(), free_place);
    own.watch(node + 1, loopback(), 0); // has no pulse
    std::string cause;
    EXPECT_FALSE(finds_loss(own, 50ms, cause)) << cause;
}

TEST(Pulse, IsNotOfOtherAddresses) {
    Pulse own;
    own.open(Address(20, std::byte{1}));
    EXPECT_EQ(own.place(), 0U);
    EXPECT_LT(own.descriptor(), 0);
    std::string cause;
    EXPECT_FALSE(finds_loss(own, 5ms, cause));
}

} // namespace
} // namespace warren::transport::fabric
