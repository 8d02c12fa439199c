// Ranks as threads of one process: every rank has its own engine on a shared node segment.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <unistd.h>
#include <vector>

#include "message/engine.hpp"

namespace warren::message {
namespace {

const datatype::Datatype& byte_type() {
    return datatype::basic(MPI_BYTE);
}

// A small generator with a fixed seed: failures repeat.
struct Random {
    std::uint32_t state;
    std::uint32_t operator()() {
        state = state * 1664525U + 1013904223U;
        return state >> 8;
    }
};

class Node {
  public:
    Node(std::uint32_t ranks, std::uint32_t cores) {
        Error error = node::Segment::create({.ranks = ranks, .cores = cores}, segment_);
        EXPECT_FALSE(error) << error.take()->text;
    }

    void run(const std::function<void(Engine&, std::uint32_t)>& program) {
        std::vector<std::thread> threads;
        for (std::uint32_t index = 0; index < segment_.ranks(); ++index) {
            threads.emplace_back([&, index] {
                node::Segment own;
                Error error = node::Segment::attach(dup(segment_.descriptor()), own);
                ASSERT_FALSE(error);
                Rank rank(std::move(own), index);
                rank.slot.pid = getpid();
                Engine engine(rank);
                program(engine, index);
                engine.flush();
                // Nobody leaves before all are done: a rendezvous may still be answered.
                finished_.fetch_add(1);
                engine.wait_until([&] { return finished_.load() == segment_.ranks(); }, {});
                for (std::uint32_t other = 0; other < segment_.ranks(); ++other) {
                    rank.ring(other);
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        finished_ = 0;
    }

  private:
    node::Segment segment_;
    std::atomic<std::uint32_t> finished_{0};
};

std::byte pattern(std::uint64_t seed, std::uint64_t i) {
    return static_cast<std::byte>((seed * 2654435761U + i * 40503U) >> 7);
}

class EngineTest : public testing::TestWithParam<std::uint32_t> {};

// Cores: many (boxes, spinning) or one (queue, yielding, sleeping).
INSTANTIATE_TEST_SUITE_P(Cores, EngineTest, testing::Values(64, 1));

TEST_P(EngineTest, ring_of_all_sizes_arrives_intact) {
    Node node(3, GetParam());
    const datatype::Datatype& type = byte_type();
    node.run([&](Engine& engine, std::uint32_t me) {
        const std::uint32_t to = (me + 1) % 3;
        const std::uint32_t from = (me + 2) % 3;
        for (std::uint64_t bytes :
             {0U,     1U,      7U,      8U,      16U,      31U,     32U,   39U,
              40U,    41U,     64U,     1000U,   4096U,    4097U,   8192U, 10000U,
              65536U, 100000U, 262144U, 262145U, 1000000U, 5000000U}) {
            for (int mode = 0; mode < 2; ++mode) {
                std::vector<std::byte> out(bytes);
                std::vector<std::byte> in(bytes + 1, std::byte{0x5A});
                for (std::uint64_t i = 0; i < bytes; ++i) {
                    out[i] = pattern(me, i);
                }
                Request* send = engine.make();
                Engine::prepare_send(*send, mode == 0 ? Operation::send : Operation::synchronous,
                                     {out.data(), static_cast<MPI_Count>(bytes), &type}, to,
                                     {.context = 4, .source = static_cast<int>(me), .tag = 7});
                ASSERT_FALSE(engine.start(*send));
                Outcome outcome;
                ASSERT_FALSE(engine.receive(
                    {in.data(), static_cast<MPI_Count>(bytes), &type},
                    {.context = 4, .source = static_cast<int>(from), .tag = 7}, outcome));
                ASSERT_EQ(outcome.bytes, static_cast<MPI_Count>(bytes));
                ASSERT_EQ(outcome.error_class, MPI_SUCCESS);
                for (std::uint64_t i = 0; i < bytes; ++i) {
                    ASSERT_EQ(in[i], pattern(from, i)) << bytes << " at " << i;
                }
                ASSERT_EQ(in[bytes], std::byte{0x5A});
                engine.wait(*send);
                engine.discard(*send);
            }
        }
    });
}

TEST_P(EngineTest, messages_of_a_pair_keep_their_order) {
    Node node(2, GetParam());
    const datatype::Datatype& type = byte_type();
    constexpr int messages = 20000;
    node.run([&](Engine& engine, std::uint32_t me) {
        Random random{17};
        std::vector<std::byte> buffer(20000);
        for (int i = 0; i < messages; ++i) {
            const std::uint32_t bytes =
                random() % 4 != 0 ? 4 + random() % 60 : 4 + random() % 19000;
            if (me == 0) {
                std::memcpy(buffer.data(), &i, sizeof i);
                ASSERT_FALSE(engine.send(Operation::send, {buffer.data(), bytes, &type}, 1,
                                         {.context = 4, .source = 0, .tag = i % 3}));
            } else {
                Outcome outcome;
                ASSERT_FALSE(engine.receive({buffer.data(), 20000, &type},
                                            {.context = 4,
                                             .source = i % 2 ? 0 : MPI_ANY_SOURCE,
                                             .tag = i % 5 ? i % 3 : MPI_ANY_TAG},
                                            outcome));
                int number;
                std::memcpy(&number, buffer.data(), sizeof number);
                ASSERT_EQ(number, i);
                ASSERT_EQ(outcome.bytes, bytes);
            }
        }
    });
}

TEST_P(EngineTest, everybody_floods_everybody) {
    constexpr std::uint32_t ranks = 5;
    Node node(ranks, GetParam());
    const datatype::Datatype& type = byte_type();
    constexpr int rounds = 300;
    node.run([&](Engine& engine, std::uint32_t me) {
        Random random{me};
        std::vector<std::vector<std::byte>> out;
        std::vector<Request*> sends;
        for (int round = 0; round < rounds; ++round) {
            for (std::uint32_t to = 0; to < ranks; ++to) {
                const std::uint32_t bytes = 8 + random() % (random() % 10 == 0 ? 300000 : 3000);
                std::vector<std::byte>& data = out.emplace_back(bytes);
                std::memcpy(data.data(), &round, sizeof round);
                std::memcpy(data.data() + 4, &bytes, sizeof bytes);
                for (std::uint32_t i = 8; i < bytes; ++i) {
                    data[i] = pattern(me, i);
                }
                Request* send = engine.make();
                Engine::prepare_send(*send, Operation::send, {data.data(), bytes, &type}, to,
                                     {.context = 4, .source = static_cast<int>(me), .tag = 1});
                ASSERT_FALSE(engine.start(*send));
                sends.push_back(send);
            }
        }
        std::vector<int> next(ranks, 0);
        std::vector<std::byte> in(400000);
        for (std::uint32_t i = 0; i < rounds * ranks; ++i) {
            Outcome outcome;
            ASSERT_FALSE(engine.receive({in.data(), 400000, &type},
                                        {.context = 4, .source = MPI_ANY_SOURCE, .tag = 1},
                                        outcome));
            int round;
            std::uint32_t bytes;
            std::memcpy(&round, in.data(), sizeof round);
            std::memcpy(&bytes, in.data() + 4, sizeof bytes);
            ASSERT_EQ(round, next[static_cast<std::size_t>(outcome.source)]++);
            ASSERT_EQ(outcome.bytes, bytes);
            for (std::uint32_t k = 8; k < bytes; ++k) {
                ASSERT_EQ(in[k], pattern(static_cast<std::uint64_t>(outcome.source), k));
            }
        }
        for (Request* send : sends) {
            engine.wait(*send);
            engine.discard(*send);
        }
        EXPECT_EQ(engine.live_requests(), 0U);
    });
}

TEST_P(EngineTest, a_longer_message_is_truncated_and_says_so) {
    Node node(2, GetParam());
    const datatype::Datatype& type = byte_type();
    node.run([&](Engine& engine, std::uint32_t me) {
        for (std::uint32_t bytes : {16U, 3000U, 50000U, 600000U}) {
            std::vector<std::byte> buffer(bytes, std::byte{1});
            if (me == 0) {
                ASSERT_FALSE(engine.send(Operation::send, {buffer.data(), bytes, &type}, 1,
                                         {.context = 4, .source = 0, .tag = 1}));
            } else {
                Outcome outcome;
                ASSERT_FALSE(engine.receive({buffer.data(), bytes / 2, &type},
                                            {.context = 4, .source = 0, .tag = 1}, outcome));
                EXPECT_EQ(outcome.error_class, MPI_ERR_TRUNCATE);
                EXPECT_EQ(outcome.bytes, bytes / 2);
            }
        }
    });
}

} // namespace
} // namespace warren::message
