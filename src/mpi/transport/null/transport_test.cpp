#include "mpi/transport/null/null_transport.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace warren::transport {
namespace {

TEST(null_transport, keeps_the_last_cells_and_drops_the_others) {
    const auto transport = std::make_unique<NullTransport>();
    const NullTransport::Channel channel = {.address = {{1, 2, 3}}, .slot = 5};
    constexpr std::uint64_t count = NullTransport::cells_kept + 10;
    for (std::uint64_t number = 0; number < count; ++number) {
        EXPECT_TRUE(transport->send_inline(
            channel,
            {.kind = 7, .context = 8, .source = 9, .tag = static_cast<std::int32_t>(number)},
            &number, sizeof number));
    }
    EXPECT_EQ(transport->sent(), count);
    for (std::uint64_t number = count - NullTransport::cells_kept; number < count; ++number) {
        const NullTransport::Cell& cell = transport->cell(number);
        EXPECT_EQ(cell.to.address.words[2], 3U);
        EXPECT_EQ(cell.to.slot, 5U);
        EXPECT_EQ(cell.header.kind, 7U);
        EXPECT_EQ(cell.header.tag, static_cast<std::int32_t>(number));
        EXPECT_EQ(cell.length, sizeof number);
        std::uint64_t data;
        std::memcpy(&data, cell.data, sizeof data);
        EXPECT_EQ(data, number);
    }
}

TEST(null_transport, pushes_all_and_gets_nothing) {
    const auto transport = std::make_unique<NullTransport>();
    NullTransport::Channel channel = {};
    const Plan plan = transport->plan(channel, {.bytes = std::uint64_t{1} << 30, .awaited = true});
    EXPECT_EQ(plan.move, Move::push);
    EXPECT_FALSE(plan.counts);
    EXPECT_FALSE(transport->abilities(channel).get);
    std::byte data{};
    EXPECT_EQ(transport->get(channel, {.address = 1, .length = 1, .key = 0}, &data),
              PeerCopy::refused);
    EXPECT_FALSE(transport->poll(AnyHandler()));
}

} // namespace
} // namespace warren::transport
