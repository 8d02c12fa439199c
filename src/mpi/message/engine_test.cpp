// Ranks as threads of one process: every rank has its own engine on a shared node segment.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <sys/uio.h>
#include <thread>
#include <vector>

#include "mpi/message/test_node.hpp"

namespace warren::message {
namespace {

// A small generator with a fixed seed: failures repeat.
struct Random {
    std::uint32_t state;
    std::uint32_t operator()() {
        state = state * 1664525U + 1013904223U;
        return state >> 8;
    }
};

std::size_t first_wrong(const std::vector<std::byte>& data, std::uint64_t seed, std::size_t bytes) {
    const std::vector<std::byte> right = patterned(seed, bytes);
    return bytes == 0 || std::memcmp(data.data(), right.data(), bytes) == 0
               ? bytes
               : static_cast<std::size_t>(
                     std::mismatch(right.begin(), right.end(), data.begin()).first - right.begin());
}

class EngineTest : public testing::TestWithParam<std::uint32_t> {};

// Cores: many (pair rings, spinning) or one (queue, yielding, sleeping).
INSTANTIATE_TEST_SUITE_P(Cores, EngineTest, testing::Values(64, 1));

TEST_P(EngineTest, ring_of_all_sizes_arrives_intact) {
    Node node(3, GetParam());
    const datatype::Datatype& type = byte_type();
    node.run([&](Engine& engine, std::uint32_t me) {
        const std::uint32_t to = (me + 1) % 3;
        const std::uint32_t from = (me + 2) % 3;
        for (std::uint64_t bytes :
             {0U,     1U,     7U,      8U,      16U,     31U,      32U,     39U,   40U,
              41U,    64U,    1000U,   2047U,   2048U,   2049U,    4096U,   4097U, 8192U,
              10000U, 65536U, 100000U, 262144U, 262145U, 1000000U, 5000000U}) {
            for (int mode = 0; mode < 2; ++mode) {
                std::vector<std::byte> out = patterned(me, bytes);
                std::vector<std::byte> in(bytes + 1, std::byte{0x5A});
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
                ASSERT_EQ(first_wrong(in, from, bytes), bytes);
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

// Length of a message: mostly short.
std::uint32_t bytes_of(std::uint32_t sender, std::uint32_t round, std::uint32_t tag) {
    Random random{sender * 7919 + round * 31 + tag};
    return random() % 8 == 0 ? 41 + random() % 3000 : random() % 41;
}

// Every rank sends the others short messages and some longer ones, with two tags. Receivers ask for
// the tags of a rank in the order of the sends or the other way round, the short way first: it must
// never take another message than the long way would, and never a part of one.
TEST_P(EngineTest, the_short_ways_take_what_the_long_ones_would) {
    constexpr std::uint32_t ranks = 3;
    constexpr std::uint32_t rounds = 1000;
    Node node(ranks, GetParam());
    const datatype::Datatype& type = byte_type();
    std::atomic<std::uint64_t> short_sends{0};
    std::atomic<std::uint64_t> short_receives{0};
    node.run([&](Engine& engine, std::uint32_t me) {
        std::vector<std::byte> data(3041);
        std::vector<std::byte> room(3041);
        const auto send = [&](std::uint32_t to, std::uint32_t round, std::uint32_t tag) {
            const std::uint32_t bytes = bytes_of(me, round, tag);
            for (std::uint32_t i = 0; i < bytes; ++i) {
                data[i] = pattern(me + round * 5 + tag, i);
            }
            const Envelope envelope{
                .context = 4, .source = static_cast<int>(me), .tag = static_cast<int>(tag)};
            if (engine.send_short(data.data(), bytes, to, envelope)) {
                // Without processors of their own ranks have no pair rings, and queues no short
                // blocks.
                ASSERT_LE(bytes,
                          GetParam() >= ranks ? Engine::short_bytes : transport::inline_bytes);
                ++short_sends;
                return;
            }
            ASSERT_FALSE(engine.send(Operation::send, {data.data(), bytes, &type}, to, envelope));
        };
        const auto receive = [&](std::uint32_t from, std::uint32_t round, std::uint32_t tag) {
            const std::uint32_t bytes = bytes_of(from, round, tag);
            const Envelope envelope{
                .context = 4, .source = static_cast<int>(from), .tag = static_cast<int>(tag)};
            // Now and then too little room for it: truncation is the long way's.
            const std::uint32_t fits = bytes > 0 && round % 64 == 0 ? bytes - 1 : bytes;
            std::size_t there = 0;
            if (engine.receive_short(room.data(), fits, 1, from, envelope, Engine::no_call,
                                     there)) {
                ASSERT_EQ(there, bytes);
                ASSERT_EQ(fits, bytes);
                ++short_receives;
            } else {
                Outcome outcome;
                ASSERT_FALSE(engine.receive({room.data(), fits, &type}, envelope, outcome));
                ASSERT_EQ(outcome.error_class, fits == bytes ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
                ASSERT_EQ(outcome.bytes, fits);
            }
            for (std::uint32_t i = 0; i < fits; ++i) {
                ASSERT_EQ(room[i], pattern(from + round * 5 + tag, i)) << round << " at " << i;
            }
        };
        for (std::uint32_t round = 0; round < rounds; ++round) {
            for (std::uint32_t step = 1; step < ranks; ++step) {
                const std::uint32_t to = (me + step) % ranks;
                send(to, round, 0);
                send(to, round, 1);
            }
            for (std::uint32_t step = 1; step < ranks; ++step) {
                const std::uint32_t from = (me + ranks - step) % ranks;
                const std::uint32_t first = (round / 16) % 4 == 3 ? 1 : 0;
                receive(from, round, first);
                receive(from, round, 1 - first);
            }
        }
    });
    EXPECT_NE(short_sends, 0U);
    // By the queue only fibres receive the short way.
    EXPECT_EQ(short_receives != 0, GetParam() >= ranks);
}

// A message that ends inside an element is the long way's, which says what is wrong with it.
TEST_P(EngineTest, the_short_way_takes_whole_elements_only) {
    Node node(2, GetParam());
    const datatype::Datatype& ints = datatype::basic(MPI_INT);
    const datatype::Datatype& bytes = byte_type();
    node.run([&](Engine& engine, std::uint32_t me) {
        for (int round = 0; round < 40; ++round) { // the first few before there is a pair ring
            for (const MPI_Count length : {3, 4, 6, 199, 200}) {
                const Envelope envelope{.context = 4, .source = 0, .tag = 1};
                std::byte data[400] = {};
                if (me == 0) {
                    ASSERT_FALSE(engine.send(Operation::send, {data, length, &bytes}, 1, envelope));
                    continue;
                }
                std::size_t there = 0;
                if (engine.receive_short(data, sizeof data, 4, 0, envelope, Engine::no_call,
                                         there)) {
                    ASSERT_EQ(there, static_cast<std::size_t>(length));
                    ASSERT_EQ(length % 4, 0);
                    continue;
                }
                Outcome outcome;
                ASSERT_FALSE(engine.receive({data, 100, &ints}, envelope, outcome));
                ASSERT_EQ(outcome.error_class, length % 4 == 0 ? MPI_SUCCESS : MPI_ERR_TYPE);
            }
        }
    });
}

TEST_P(EngineTest, everybody_floods_everybody) {
    constexpr std::uint32_t ranks = 5;
    Node node(ranks, GetParam());
    const datatype::Datatype& type = byte_type();
    constexpr int rounds = 300;
    constexpr std::uint32_t longest = 300000;
    std::vector<std::vector<std::byte>> all;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        all.push_back(patterned(rank, longest + 8));
    }
    node.run([&](Engine& engine, std::uint32_t me) {
        Random random{me};
        const std::vector<std::byte>& mine = all[me];
        std::vector<std::vector<std::byte>> out;
        std::vector<Request*> sends;
        for (int round = 0; round < rounds; ++round) {
            for (std::uint32_t to = 0; to < ranks; ++to) {
                const std::uint32_t bytes = 8 + random() % (random() % 10 == 0 ? longest : 3000);
                std::vector<std::byte>& data = out.emplace_back(mine.begin(), mine.begin() + bytes);
                std::memcpy(data.data(), &round, sizeof round);
                std::memcpy(data.data() + 4, &bytes, sizeof bytes);
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
            const std::vector<std::byte>& sent = all[static_cast<std::size_t>(outcome.source)];
            ASSERT_EQ(std::memcmp(in.data() + 8, sent.data() + 8, bytes - 8), 0);
        }
        for (Request* send : sends) {
            engine.wait(*send);
            engine.discard(*send);
        }
        EXPECT_EQ(engine.requests().live(), 0U);
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

// --- A rank that computes, outside MPI, holds up nobody but those who wait for it.

// Outside MPI until the condition holds; not for ever, so that a failure is one and not a hang.
bool compute_until(const std::function<bool()>& condition) {
    using namespace std::chrono_literals;
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

// Enough small messages that the pair has its pair ring, where there are pair rings.
void get_acquainted(Engine& engine, std::uint32_t me, std::uint32_t from) {
    std::byte data[8] = {};
    constexpr Envelope envelope = {.context = 4, .source = 0, .tag = 0};
    for (int i = 0; i < 20; ++i) {
        if (me == from) {
            for (std::uint32_t to = 0; to < engine.rank().size; ++to) {
                if (to != me) {
                    ASSERT_FALSE(
                        engine.send(Operation::send, {data, 8, &byte_type()}, to, envelope));
                }
            }
        } else {
            Outcome outcome;
            ASSERT_FALSE(engine.receive({data, 8, &byte_type()}, envelope, outcome));
        }
    }
}

// Sends that nobody waits for now.
std::vector<Request*> start_sends(Engine& engine, int messages, std::vector<std::byte>& data,
                                  std::uint32_t to) {
    std::vector<Request*> sends;
    for (int i = 0; i < messages; ++i) {
        Request* send = sends.emplace_back(engine.make());
        Engine::prepare_send(
            *send, Operation::send,
            {data.data(), static_cast<MPI_Count>(data.size()), &byte_type()}, to,
            {.context = 4, .source = static_cast<int>(engine.rank().index), .tag = 1});
        EXPECT_FALSE(engine.start(*send));
    }
    return sends;
}

void end_sends(Engine& engine, const std::vector<Request*>& sends) {
    for (Request* send : sends) {
        engine.wait(*send);
        engine.discard(*send);
    }
}

void receive_filled(Engine& engine, std::size_t bytes, std::byte value) {
    std::vector<std::byte> in(bytes);
    Outcome outcome;
    ASSERT_FALSE(engine.receive({in.data(), static_cast<MPI_Count>(bytes), &byte_type()},
                                {.context = 4, .source = 0, .tag = 1}, outcome));
    ASSERT_EQ(outcome.bytes, static_cast<MPI_Count>(bytes));
    ASSERT_EQ(in, std::vector<std::byte>(bytes, value));
}

TEST(engine, a_send_that_one_peer_is_to_fetch_closes_no_short_way_from_another) {
    Node node(3, 64);
    std::atomic<int> there{0};
    node.run([&](Engine& engine, std::uint32_t rank) {
        constexpr std::size_t bytes = 600000;
        const Envelope from_2 = {.context = 3, .source = 2, .tag = 5};
        std::int64_t word = 0;
        const Buffer buffer = {&word, 8, &byte_type()};
        for (int i = 0; i < 40; ++i) { // pair rings
            Outcome outcome;
            if (rank == 0) {
                engine.send(Operation::send, buffer, 1, {.context = 3, .source = 0, .tag = 5})
                    .drop();
                engine.receive(buffer, from_2, outcome).drop();
            } else if (rank == 1) {
                engine.receive(buffer, {.context = 3, .source = 0, .tag = 5}, outcome).drop();
            } else {
                engine.send(Operation::send, buffer, 0, from_2).drop();
            }
        }
        if (rank == 0) {
            std::vector<std::byte> data(bytes);
            data.back() = pattern(7, bytes);
            Request* request = start_send(engine, data, 1, 7);
            EXPECT_FALSE(request->complete);
            there = 1;
            while (there == 1) {
                sched_yield();
            }
            std::size_t got = 0;
            EXPECT_TRUE(engine.receive_short(&word, 8, 1, 2, from_2, Engine::no_call, got));
            EXPECT_EQ(got, 8U);
            EXPECT_EQ(word, 99);
            there = 3;
            engine.wait(*request);
            engine.discard(*request);
        } else if (rank == 1) {
            while (there < 3) {
                sched_yield();
            }
            receive_all(engine, bytes, 7, 8);
        } else {
            while (there == 0) {
                sched_yield();
            }
            word = 99;
            engine.send(Operation::send, buffer, 0, from_2).drop();
            there = 2;
        }
    });
}

// Rank 0 sends so much to rank 1, which computes, that no block is left, then to rank 2.
TEST_P(EngineTest, blocks_held_by_a_rank_that_computes_stop_no_message_to_others) {
    constexpr int messages = 20;
    for (std::size_t bytes : {1000U, 2000U, 4000U, 100'000U}) { // 2000: a ring is full
        for (std::size_t other_bytes : {1000U, 100'000U, 1'000'000U}) {
            Node node(3, GetParam());
            std::atomic<bool> sent{false};
            std::atomic<bool> received{false};
            node.run([&](Engine& engine, std::uint32_t me) {
                get_acquainted(engine, me, 0);
                if (me == 0) {
                    std::vector<std::byte> data(bytes, std::byte{1});
                    std::vector<std::byte> other(other_bytes, std::byte{2});
                    const std::vector<Request*> sends = start_sends(engine, messages, data, 1);
                    end_sends(engine, start_sends(engine, 1, other, 2));
                    sent = true;
                    end_sends(engine, sends);
                } else if (me == 1) {
                    EXPECT_TRUE(compute_until([&] { return sent && received; }))
                        << bytes << " bytes to this rank, " << other_bytes << " to the other";
                    for (int i = 0; i < messages; ++i) {
                        receive_filled(engine, bytes, std::byte{1});
                    }
                } else {
                    receive_filled(engine, other_bytes, std::byte{2});
                    received = true;
                }
            });
        }
    }
}

// As above, when the first part of a large message has already gone when the blocks run out.
TEST_P(EngineTest, blocks_held_by_a_rank_that_computes_stop_no_message_under_way) {
    constexpr int messages = 20;
    constexpr std::size_t bytes = 100'000;
    constexpr std::size_t large_bytes = 1'000'000;
    Node node(3, GetParam());
    std::atomic<bool> all_started{false};
    std::atomic<bool> received{false};
    node.run([&](Engine& engine, std::uint32_t me) {
        get_acquainted(engine, me, 0);
        if (me == 0) {
            std::vector<std::byte> data(bytes, std::byte{1});
            std::vector<std::byte> large(large_bytes, std::byte{2});
            const std::vector<Request*> first = start_sends(engine, 1, large, 2);
            const std::vector<Request*> sends = start_sends(engine, messages, data, 1);
            all_started = true;
            end_sends(engine, first);
            end_sends(engine, sends);
        } else if (me == 1) {
            EXPECT_TRUE(compute_until([&] { return received.load(); }));
            for (int i = 0; i < messages; ++i) {
                receive_filled(engine, bytes, std::byte{1});
            }
        } else {
            EXPECT_TRUE(compute_until([&] { return all_started.load(); }));
            receive_filled(engine, large_bytes, std::byte{2});
            received = true;
        }
    });
}

// Whether the kernel lets ranks read each other's memory.
bool may_fetch() {
    std::byte from{1};
    std::byte to{0};
    const iovec there = {.iov_base = &from, .iov_len = 1};
    const iovec here = {.iov_base = &to, .iov_len = 1};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

// Which of both ways they take is a matter of time, but both are tried.
TEST_P(EngineTest, what_is_offered_is_fetched_or_pushed_once_its_sender_waits_for_all) {
    constexpr std::size_t bytes = 600'000;
    constexpr int window = 8;
    Node node(2, GetParam());
    int pushed = 0;
    int fetched = 0;
    node.run([&](Engine& engine, std::uint32_t me) {
        get_acquainted(engine, me, 0);
        for (int round = 0; round < 12; ++round) {
            std::vector<std::byte> data(bytes, static_cast<std::byte>(round));
            if (me == 0) {
                const std::vector<Request*> sends = start_sends(engine, window, data, 1);
                for (Request* send : sends) {
                    engine.await(*send);
                }
                for (Request* send : sends) {
                    engine.wait(*send);
                    ++(send->sending.answer_token != 0 ? pushed : fetched);
                }
                end_sends(engine, sends);
            } else {
                for (int i = 0; i < window; ++i) {
                    receive_filled(engine, bytes, static_cast<std::byte>(round));
                }
            }
        }
    });
    if (GetParam() > 1 && may_fetch()) {
        EXPECT_GT(pushed, 0);
        EXPECT_GT(fetched, 0);
    }
}

// A push would stand still until the receiver comes back.
TEST_P(EngineTest, what_is_offered_is_fetched_at_once_by_a_receiver_that_does_not_wait) {
    constexpr std::size_t bytes = 4 << 20; // more than there are bounce buffers for
    Node node(2, GetParam());
    std::atomic<int> offered{0};
    std::atomic<int> sent{0};
    node.run([&](Engine& engine, std::uint32_t me) {
        get_acquainted(engine, me, 0);
        std::vector<std::byte> data(bytes, std::byte{3});
        const Envelope envelope = {.context = 4, .source = 0, .tag = 1};
        for (int round = 1; round <= 40; ++round) {
            if (me == 0) {
                const std::vector<Request*> sends = start_sends(engine, 1, data, 1);
                engine.await(*sends[0]);
                offered = round;
                end_sends(engine, sends);
                sent = round;
            } else {
                ASSERT_TRUE(compute_until([&] { return offered.load() == round; })) << round;
                ASSERT_TRUE(comes(engine, [&] { return peek(engine, envelope) != nullptr; }));
                Request* receive = engine.make();
                Engine::prepare_receive(
                    *receive, {data.data(), static_cast<MPI_Count>(bytes), &byte_type()}, envelope);
                ASSERT_FALSE(engine.start(*receive));
                if (GetParam() > 1 && may_fetch()) {
                    ASSERT_TRUE(compute_until([&] { return sent.load() == round; })) << round;
                }
                engine.wait(*receive);
                engine.discard(*receive);
            }
        }
    });
}

// A push would stand still.
TEST_P(EngineTest, what_is_offered_is_fetched_when_its_sender_waits_for_a_part_and_then_computes) {
    constexpr std::size_t bytes = 600'000;
    Node node(2, GetParam());
    std::atomic<int> received{0};
    node.run([&](Engine& engine, std::uint32_t me) {
        get_acquainted(engine, me, 0);
        const std::vector<std::byte> filled(bytes, std::byte{5});
        for (int round = 1; round <= 40; ++round) {
            if (me == 0) {
                std::vector<std::byte> data = filled;
                const std::vector<Request*> sends = start_sends(engine, 2, data, 1);
                engine.wait(*sends[0]);
                ASSERT_TRUE(compute_until([&] { return received.load() == round; })) << round;
                end_sends(engine, sends);
            } else {
                receive_filled(engine, bytes, std::byte{5});
                receive_filled(engine, bytes, std::byte{5});
                received = round;
            }
        }
    });
}

// --- Threads of one rank.

// Nobody else is there to wake the thread that waits.
TEST_P(EngineTest, a_message_to_the_own_rank_wakes_the_thread_that_waits_for_it) {
    node::Segment segment;
    ASSERT_FALSE(node::Segment::create({.ranks = 1, .cores = GetParam()}, segment));
    Rank rank(std::move(segment), 0);
    rank.share_by_threads();
    Engine engine(rank);
    constexpr Envelope envelope = {.context = 4, .source = 0, .tag = 1};
    std::atomic<bool> received{false};
    std::thread receiver([&] {
        const std::lock_guard guard(rank.lock);
        std::byte in{0};
        Outcome outcome;
        EXPECT_FALSE(engine.receive({&in, 1, &byte_type()}, envelope, outcome));
        EXPECT_EQ(in, std::byte{7});
        received = true;
    });
    // By then it sleeps.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    {
        const std::lock_guard guard(rank.lock);
        std::byte out{7};
        EXPECT_FALSE(engine.send(Operation::send, {&out, 1, &byte_type()}, 0, envelope));
    }
    EXPECT_TRUE(compute_until([&] { return received.load(); }));
    rank.ring(0); // if it was forgotten
    receiver.join();
}

} // namespace
} // namespace warren::message
