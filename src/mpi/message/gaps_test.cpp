// Streams of data with gaps: several to one receiver take turns.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "mpi/message/test_gaps.hpp"

namespace warren::message {
namespace {

using AllGaps = std::vector<std::unique_ptr<Gaps>>;

AllGaps several(std::size_t messages, std::size_t words, int number) {
    AllGaps all;
    for (std::size_t i = 0; i < messages; ++i) {
        all.push_back(std::make_unique<Gaps>(words));
        all.back()->fill(number + static_cast<int>(i));
    }
    return all;
}

class GapsTest : public testing::TestWithParam<std::uint32_t> {};

// Cores: many (pair rings, spinning) or one (queue, yielding, sleeping).
INSTANTIATE_TEST_SUITE_P(Cores, GapsTest, testing::Values(64, 1));

TEST(gaps, streams_to_one_receiver_take_turns) {
    constexpr std::size_t words = 500'000;
    Node node(2, 64);
    node.run([&](Engine& engine, std::uint32_t rank) {
        get_a_pair_ring(engine, rank);
        const AllGaps data = several(3, words, rank == 0 ? 100 : 0);
        std::vector<Request*> requests;
        for (const auto& gaps : data) {
            requests.push_back(rank == 0 ? start_streaming(engine, *gaps)
                                         : start_receiving(engine, *gaps));
        }
        if (rank == 0) {
            // All have been asked for before the first is half away.
            EXPECT_TRUE(comes(engine, [&] { return requests[0]->complete; }));
            for (const Request* request : requests) {
                EXPECT_GT(request->sending.moved, words * sizeof(int) * 3 / 4);
            }
        }
        for (std::size_t i = 0; i < requests.size(); ++i) {
            engine.wait(*requests[i]);
            EXPECT_TRUE(rank == 0 || data[i]->has(100 + static_cast<int>(i)));
            engine.discard(*requests[i]);
        }
    });
}

// In both directions, among messages without gaps, short and long, and into less room.
TEST_P(GapsTest, streams_arrive_whole_among_others) {
    constexpr std::size_t words = 100'000;
    constexpr int rounds = 6;
    Node node(2, GetParam());
    node.run([&](Engine& engine, std::uint32_t rank) {
        const std::uint32_t other = 1 - rank;
        const auto own = static_cast<int>(rank);
        for (int round = 0; round < rounds; ++round) {
            const AllGaps out = several(4, words, 1000 * own + round);
            const AllGaps in = several(4, words, -1000000);
            std::vector<std::byte> long_out(700'000, static_cast<std::byte>(round));
            std::vector<std::byte> long_in(long_out.size());
            std::vector<std::byte> short_out(8, static_cast<std::byte>(round));
            std::vector<std::byte> short_in(8);
            std::vector<Request*> requests;
            const auto start = [&](bool sends, const Buffer& buffer, int tag) {
                Request* request = requests.emplace_back(engine.make());
                const Envelope envelope = {
                    .context = 3, .source = sends ? own : static_cast<int>(other), .tag = tag};
                if (sends) {
                    Engine::prepare_send(*request, Operation::send, buffer, other, envelope);
                } else {
                    Engine::prepare_receive(*request, buffer, envelope);
                }
                EXPECT_FALSE(engine.start(*request));
            };
            const auto bytes = [](std::vector<std::byte>& data) {
                return Buffer{data.data(), static_cast<MPI_Count>(data.size()), &byte_type()};
            };
            Gaps half(words / 2);
            for (int i = 0; i < 4; ++i) {
                start(false, i == 2 ? half.buffer() : in[static_cast<std::size_t>(i)]->buffer(), i);
            }
            start(false, bytes(long_in), 10);
            start(false, bytes(short_in), 11);
            for (int i = 0; i < 4; ++i) {
                start(true, out[static_cast<std::size_t>(i)]->buffer(), i);
                if (i == 1) {
                    start(true, bytes(long_out), 10);
                    start(true, bytes(short_out), 11);
                }
            }
            for (std::size_t i = 0; i < requests.size(); ++i) {
                engine.wait(*requests[i]);
                EXPECT_EQ(requests[i]->outcome.error_class, i == 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS)
                    << i;
                engine.discard(*requests[i]);
            }
            for (int i = 0; i < 4; ++i) {
                const Gaps& there = i == 2 ? half : *in[static_cast<std::size_t>(i)];
                EXPECT_TRUE(there.has(1000 * static_cast<int>(other) + round + i)) << i;
            }
            EXPECT_EQ(long_in, long_out);
            EXPECT_EQ(short_in, short_out);
        }
    });
}

} // namespace
} // namespace warren::message
