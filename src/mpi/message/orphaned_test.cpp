// Sends that are given up: what has been announced of them is withdrawn, what their receiver has
// asked for arrives.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "mpi/message/test_gaps.hpp"

namespace warren::message {
namespace {

class OrphanedTest : public testing::TestWithParam<std::uint32_t> {};

// Cores: many (pair rings, spinning) or one (queue, yielding, sleeping).
INSTANTIATE_TEST_SUITE_P(Cores, OrphanedTest, testing::Values(64, 1));

TEST_P(OrphanedTest, a_send_that_waits_for_space_and_is_orphaned_never_leaves) {
    Node node(2, GetParam());
    std::atomic<int> sent{0};
    constexpr std::size_t bytes = 1000;
    node.run([&](Engine& engine, std::uint32_t rank) {
        constexpr int orphaned_tag = 100000;
        if (rank == 0) {
            int tag = 0;
            std::vector<std::byte> data(bytes);
            for (;; ++tag) {
                data.back() = pattern(static_cast<std::uint64_t>(tag), bytes);
                Request* request = start_send(engine, data, 1, tag);
                if (!request->complete) {
                    // One more behind it, which is not.
                    std::vector<std::byte> later(bytes);
                    Request* second = start_send(engine, later, 1, orphaned_tag);
                    std::vector<std::byte> last(bytes);
                    last.back() = pattern(static_cast<std::uint64_t>(tag + 1), bytes);
                    Request* third = start_send(engine, last, 1, tag + 1);
                    engine.orphan(*second);
                    later.assign(bytes, std::byte{0xee});
                    sent = tag + 2;
                    engine.wait(*request);
                    engine.wait(*third);
                    engine.discard(*request);
                    engine.discard(*third);
                    break;
                }
                engine.discard(*request);
            }
            EXPECT_EQ(engine.requests().live(), 0U);
        } else {
            while (sent == 0) {
                sched_yield();
            }
            receive_all(engine, bytes, 0, sent);
            EXPECT_EQ(peek(engine, {.context = 3, .source = 0, .tag = orphaned_tag}), nullptr);
        }
    });
}

// Announced by its address, or direct.
TEST_P(OrphanedTest, a_send_that_is_announced_and_orphaned_is_withdrawn) {
#ifdef __SANITIZE_THREAD__
    constexpr std::array one_space_or_not = {false};
#else
    constexpr std::array one_space_or_not = {false, true};
#endif
    for (const bool one_space : one_space_or_not) {
        for (const std::size_t bytes : {std::size_t{400000}, std::size_t{100}}) {
            Node node(2, GetParam());
            if (one_space) {
                node.share_space();
            }
            node.run([&](Engine& engine, std::uint32_t rank) {
                std::vector<std::byte> data(16, pattern(1, 16));
                for (int i = 0; i < 20; ++i) { // a pair ring
                    if (rank == 0) {
                        engine
                            .send(Operation::send, {data.data(), 16, &byte_type()}, 1,
                                  {.context = 3, .source = 0, .tag = 1})
                            .drop();
                    } else {
                        receive_all(engine, 16, 1, 2);
                    }
                }
                if (rank == 0) {
                    auto large = std::make_unique<std::vector<std::byte>>(bytes);
                    Request* request = engine.make();
                    Engine::prepare_send(
                        *request, Operation::synchronous,
                        {large->data(), static_cast<MPI_Count>(bytes), &byte_type()}, 1,
                        {.context = 3, .source = 0, .tag = 2});
                    engine.start(*request).drop();
                    EXPECT_FALSE(request->complete);
                    engine.orphan(*request);
                    large.reset();
                    engine
                        .send(Operation::send, {data.data(), 16, &byte_type()}, 1,
                              {.context = 3, .source = 0, .tag = 1})
                        .drop();
                    EXPECT_TRUE(comes(engine, [&] { return engine.requests().live() == 0; }));
                } else {
                    receive_all(engine, 16, 1, 2);
                    EXPECT_EQ(peek(engine, {.context = 3, .source = 0, .tag = 2}), nullptr);
                }
            });
        }
    }
}

// --- Messages with gaps, which go block by block: the first one at once, the rest when the
// receiver asks for it.

// The first block is there, and nobody has received it.
bool has_head(Engine& engine) {
    const Unexpected* message = peek(engine, streamed);
    return message != nullptr && message->form == Unexpected::Form::head;
}

// The pair goes on as if nothing had been.
void exchange_streamed(Engine& engine, std::uint32_t rank, std::size_t words) {
    Gaps gaps(words);
    if (rank == 0) {
        gaps.fill(500);
        engine.send(Operation::send, gaps.buffer(), 1, streamed).drop();
    } else {
        Outcome outcome;
        engine.receive(gaps.buffer(), streamed, outcome).drop();
        EXPECT_EQ(outcome.error_class, MPI_SUCCESS);
        EXPECT_TRUE(gaps.has(500));
    }
}

constexpr std::size_t stream_words = 1'000'000;

TEST(orphaned, a_first_block_that_nobody_has_received_is_withdrawn) {
    Node node(2, 64);
    std::atomic<int> step{0};
    node.run([&](Engine& engine, std::uint32_t rank) {
        get_a_pair_ring(engine, rank);
        if (rank == 0) {
            auto gaps = std::make_unique<Gaps>(stream_words);
            Request* send = start_streaming(engine, *gaps);
            EXPECT_TRUE(comes(engine, [&] { return step == 1; }));
            engine.orphan(*send);
            gaps.reset();
            step = 2;
            EXPECT_TRUE(comes(engine, [&] { return engine.requests().live() == 0; }));
            // The next message looks the same to the receiver.
            EXPECT_TRUE(comes(engine, [&] { return step == 3; }));
        } else {
            EXPECT_TRUE(comes(engine, [&] { return has_head(engine); }));
            step = 1;
            EXPECT_TRUE(comes(engine, [&] { return step == 2; }));
            EXPECT_TRUE(comes(engine, [&] { return peek(engine, streamed) == nullptr; }));
            step = 3;
        }
        exchange_streamed(engine, rank, stream_words);
    });
}

TEST(orphaned, what_the_receiver_has_asked_for_arrives_from_memory_that_is_kept) {
    Node node(2, 64);
    std::atomic<int> step{0};
    node.run([&](Engine& engine, std::uint32_t rank) {
        get_a_pair_ring(engine, rank);
        if (rank == 0) {
            auto gaps = std::make_unique<Gaps>(stream_words);
            gaps->fill(70);
            Request* send = start_streaming(engine, *gaps);
            while (step == 0) {
                sched_yield();
            }
            // The receiver has asked, and takes nothing for now: not all of it finds room.
            EXPECT_TRUE(comes(engine, [&] { return send->sending.answer_token != 0; }));
            EXPECT_FALSE(send->complete);
            engine.orphan(*send);
            gaps->fill(-1);
            gaps.reset();
            step = 2;
            EXPECT_TRUE(comes(engine, [&] { return engine.requests().live() == 0; }));
        } else {
            Gaps gaps(stream_words);
            Request* receive = start_receiving(engine, gaps);
            // With the head it has asked for the rest, also if it came to one that was arriving.
            EXPECT_TRUE(comes(engine, [&] { return receive->receiving.moved > 0; }));
            step = 1;
            while (step == 1) {
                sched_yield();
            }
            engine.wait(*receive);
            EXPECT_EQ(receive->outcome.error_class, MPI_SUCCESS);
            EXPECT_TRUE(gaps.has(70));
            engine.discard(*receive);
        }
        exchange_streamed(engine, rank, stream_words);
    });
}

TEST(orphaned, a_withdrawal_that_crosses_the_receivers_request_ends_the_send) {
    Node node(2, 64);
    std::atomic<int> step{0};
    node.run([&](Engine& engine, std::uint32_t rank) {
        get_a_pair_ring(engine, rank);
        if (rank == 0) {
            auto gaps = std::make_unique<Gaps>(stream_words);
            Request* send = start_streaming(engine, *gaps);
            while (step == 0) {
                sched_yield();
            }
            EXPECT_EQ(send->sending.answer_token, 0U); // it is on its way
            engine.orphan(*send);
            gaps.reset();
            step = 2;
            EXPECT_TRUE(comes(engine, [&] { return engine.requests().live() == 0; }));
        } else {
            Gaps gaps(stream_words);
            EXPECT_TRUE(comes(engine, [&] { return has_head(engine); }));
            Request* receive = start_receiving(engine, gaps);
            EXPECT_TRUE(receive->receiving.matched);
            EXPECT_GT(receive->receiving.moved, 0U); // and has asked for the rest
            step = 1;
            while (step == 1) {
                sched_yield();
            }
            engine.orphan(*receive);
            EXPECT_TRUE(comes(engine, [&] { return engine.requests().live() == 0; }));
        }
        exchange_streamed(engine, rank, stream_words);
    });
}

TEST(orphaned, a_receive_whose_sender_has_given_up_ends_with_an_error) {
    Node node(2, 64);
    std::atomic<int> step{0};
    node.run([&](Engine& engine, std::uint32_t rank) {
        get_a_pair_ring(engine, rank);
        if (rank == 0) {
            auto gaps = std::make_unique<Gaps>(stream_words);
            Request* send = start_streaming(engine, *gaps);
            while (step == 0) {
                sched_yield();
            }
            engine.orphan(*send);
            gaps.reset();
            EXPECT_TRUE(comes(engine, [&] { return engine.requests().live() == 0; }));
        } else {
            Gaps gaps(stream_words);
            EXPECT_TRUE(comes(engine, [&] { return has_head(engine); }));
            Request* receive = start_receiving(engine, gaps);
            step = 1;
            EXPECT_TRUE(comes(engine, [&] { return receive->complete; }));
            EXPECT_EQ(receive->outcome.error_class, MPI_ERR_OTHER);
            engine.discard(*receive);
        }
        exchange_streamed(engine, rank, stream_words);
    });
}

} // namespace
} // namespace warren::message
