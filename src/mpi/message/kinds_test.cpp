// Kinds of messages that other rooms register with the engine.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "mpi/message/test_node.hpp"

namespace warren::message {
namespace {

constexpr transport::CellKind test_kind = kind::first_free + 1;

// Messages that a handler got.
struct Got {
    std::vector<std::uint64_t> numbers;
    std::int32_t last_tag = 0;
    std::uint32_t last_sender = 0;

    static void handle(void* owner, const transport::Arrival& arrival) {
        Got& got = *static_cast<Got*>(owner);
        std::uint64_t number;
        EXPECT_EQ(arrival.bytes, sizeof number);
        std::memcpy(&number, arrival.data, sizeof number);
        got.numbers.push_back(number);
        got.last_tag = arrival.header.tag;
        got.last_sender = arrival.sender;
    }
};

void tell_number(Engine& engine, std::uint32_t to, std::uint64_t number) {
    engine.tell(to, {.kind = test_kind, .context = 5, .source = 1, .tag = 77}, &number,
                sizeof number);
}

class KindsTest : public testing::TestWithParam<std::uint32_t> {};

// Cores: many (pair rings, spinning) or one (queue, yielding, sleeping).
INSTANTIATE_TEST_SUITE_P(Cores, KindsTest, testing::Values(64, 1));

TEST_P(KindsTest, a_registered_kind_goes_to_its_handler_in_the_order_of_sends) {
    Node node(2, GetParam());
    node.run([](Engine& engine, std::uint32_t rank) {
        // More than a queue or pair ring has room for; the rest waits in the outbox.
        constexpr std::uint64_t count = 1000;
        Got got;
        engine.register_kind(test_kind, &got, Got::handle);
        // Nobody sends before both have registered.
        std::byte ready{};
        const Buffer one = {&ready, 1, &byte_type()};
        Outcome outcome;
        const auto own = static_cast<std::int32_t>(rank);
        engine.send(Operation::send, one, 1 - rank, {.context = 4, .source = own, .tag = 1}).drop();
        engine.receive(one, {.context = 4, .source = 1 - own, .tag = 1}, outcome).drop();
        if (rank == 1) {
            for (std::uint64_t number = 0; number < count; ++number) {
                tell_number(engine, 0, number);
            }
            engine.send(Operation::send, one, 0, {.context = 4, .source = 1, .tag = 2}).drop();
            return;
        }
        engine.receive(one, {.context = 4, .source = 1, .tag = 2}, outcome).drop();
        // The message was sent after all of them.
        ASSERT_EQ(got.numbers.size(), count);
        for (std::uint64_t number = 0; number < count; ++number) {
            EXPECT_EQ(got.numbers[number], number);
        }
        EXPECT_EQ(got.last_tag, 77);
        EXPECT_EQ(got.last_sender, 1U);
    });
}

TEST(KindsDeathTest, a_cell_whose_kind_nobody_has_registered_ends_the_job) {
    EXPECT_EXIT(
        {
            node::Segment segment;
            node::Segment::create({.ranks = 1, .cores = 1}, segment).drop();
            Rank rank(std::move(segment), 0);
            Engine engine(rank);
            tell_number(engine, 0, 1);
            engine.progress();
        },
        testing::ExitedWithCode(1), "a cell of unknown kind 17 from rank 0");
}

} // namespace
} // namespace warren::message
