// The short way by the queue: ranks as fibres of one worker, so who comes first is what the test
// says.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "mpi/message/test_node.hpp"
#include "runtime/fibres/api.hpp"
#include "runtime/fibres/test_fibres.hpp"

namespace warren::message {
namespace {

constexpr std::uint32_t some_call = 7;

class FibreNode {
  public:
    explicit FibreNode(std::uint32_t ranks) : fibres_(*new fibre::Fibres(ranks, {-1})) {
        Error error = node::Segment::create({.ranks = ranks, .cores = 1, .fibres = true}, segment_);
        EXPECT_FALSE(error) << error.take()->text;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            segment_.slot(rank).process = 0;
        }
        fibre_functions.store(warren_fibre_functions());
    }

    void run(const std::function<void(Engine&, std::uint32_t)>& program) {
        for (std::uint32_t index = 0; index < segment_.ranks(); ++index) {
            fibres_.add([&, index] {
                Rank rank(segment_, index); // one mapping: fibres wait by address
                rank.slot.pid = getpid();
                Engine engine(rank);
                program(engine, index);
                EXPECT_EQ(engine.requests().live(), 0U);
                engine.flush();
                ++finished_;
                engine.wait_until([&] { return finished_ == segment_.ranks(); }, {});
                for (std::uint32_t other = 0; other < segment_.ranks(); ++other) {
                    rank.ring(other);
                }
            });
        }
        fibres_.run();
    }

    balance::LoadTable loads() const { return balance::LoadTable::at(segment_.at(balance::loads)); }

  private:
    node::Segment segment_;
    fibre::Fibres& fibres_;
    std::uint32_t finished_ = 0;
};

Envelope from(int source, int tag) {
    return {.context = 4, .source = source, .tag = tag};
}

// The first message of a pair goes the long way, which makes what the short one needs.
void send_long(Engine& engine, std::uint32_t to, const Envelope& envelope, std::uint64_t value) {
    ASSERT_FALSE(engine.send(Operation::send, {&value, sizeof value, &byte_type()}, to, envelope));
}
void send(Engine& engine, std::uint32_t to, const Envelope& envelope, std::uint64_t value) {
    ASSERT_TRUE(engine.send_short(&value, sizeof value, to, envelope));
}
std::uint64_t receive_long(Engine& engine, const Envelope& envelope, Outcome& outcome) {
    std::uint64_t value = 0;
    EXPECT_FALSE(engine.receive({&value, sizeof value, &byte_type()}, envelope, outcome));
    EXPECT_EQ(outcome.bytes, 8);
    return value;
}
std::uint64_t receive_long(Engine& engine, const Envelope& envelope) {
    Outcome outcome;
    return receive_long(engine, envelope, outcome);
}
// 0: it has done nothing.
std::uint64_t receive(Engine& engine, const Envelope& envelope, std::uint32_t call = some_call) {
    std::uint64_t value = 0;
    std::size_t bytes = 99;
    const bool done =
        engine.receive_short(&value, sizeof value, 1, static_cast<std::uint32_t>(envelope.source),
                             envelope, call, bytes);
    EXPECT_EQ(bytes, done ? 8U : 99U);
    EXPECT_EQ(value != 0, done);
    return value;
}

// Runs others until it is so.
void until(const std::uint32_t& word, std::uint32_t value) {
    while (word != value) {
        give_way();
    }
}

TEST(Queued, a_message_is_received_whoever_comes_first) {
    fibre::alone([] {
        FibreNode node(2);
        std::uint32_t stage = 0;
        node.run([&](Engine& engine, std::uint32_t me) {
            for (std::uint32_t round = 1; round <= 200; ++round) {
                if (me == 0) {
                    until(stage, 3 * round - 2); // the receiver is about to wait
                    if (round == 1) {
                        send_long(engine, 1, from(0, 1), round);
                    } else {
                        send(engine, 1, from(0, 1), round);
                    }
                    until(stage, 3 * round - 1);
                    send(engine, 1, from(0, 1), 1000 + round);
                    stage = 3 * round;
                } else {
                    EXPECT_EQ(receive(engine, from(0, 1), Engine::no_call), 0U);
                    stage = 3 * round - 2;
                    EXPECT_EQ(receive(engine, from(0, 1)), round);
                    stage = 3 * round - 1;
                    until(stage, 3 * round); // it has been sent
                    EXPECT_EQ(receive(engine, from(0, 1), Engine::no_call), 1000 + round);
                }
            }
        });
        const balance::PeerTraffic& traffic = node.loads().ranks[0].peers[1];
        EXPECT_EQ(traffic.peer.load(), 2U);
        EXPECT_EQ(traffic.messages.load(), 400U);
        EXPECT_EQ(traffic.bytes.load(), 3200U);
    });
}

TEST(Queued, a_message_is_passed_by_none_of_its_sender_and_taken_by_none_for_another) {
    fibre::alone([] {
        FibreNode node(3);
        std::uint32_t sent = 0;
        node.run([&](Engine& engine, std::uint32_t me) {
            if (me == 1) {
                send_long(engine, 0, from(1, 1), 11);
                send(engine, 0, from(1, 2), 12);
                send(engine, 0, from(1, 1), 13);
                send(engine, 0, {.context = 6, .source = 1, .tag = 1}, 14);
                send(engine, 0, from(1, 1), 15);
                ++sent;
                return;
            }
            if (me == 2) {
                until(sent, 1);
                send_long(engine, 0, from(2, 1), 21);
                send(engine, 0, from(2, 1), 22);
                send(engine, 0, from(2, 1), 23);
                send(engine, 0, from(2, 1), 24);
                ++sent;
                return;
            }
            until(sent, 2);
            // The tag, the source and the communicator are another's: nothing is done.
            EXPECT_EQ(receive(engine, from(1, 2)), 0U);
            EXPECT_EQ(receive(engine, from(2, 1)), 0U);
            EXPECT_EQ(receive(engine, {.context = 6, .source = 1, .tag = 1}), 0U);
            EXPECT_EQ(receive(engine, from(1, 1)), 11U);
            // The next one with this tag stands behind another, which it has to get out of the way.
            EXPECT_EQ(receive(engine, from(1, 1)), 0U);
            EXPECT_EQ(receive_long(engine, from(1, 1)), 13U);
            // All that had come is set aside by then: nothing goes the short way past it.
            EXPECT_EQ(receive(engine, from(1, 1)), 0U);
            EXPECT_EQ(receive_long(engine, from(1, 1)), 15U);
            EXPECT_EQ(receive_long(engine, {.context = 6, .source = 1, .tag = 1}), 14U);
            Outcome outcome;
            EXPECT_EQ(receive_long(engine, from(MPI_ANY_SOURCE, MPI_ANY_TAG), outcome), 12U);
            EXPECT_EQ(outcome.source, 1);
            EXPECT_EQ(outcome.tag, 2);
            EXPECT_EQ(receive_long(engine, from(MPI_ANY_SOURCE, 1), outcome), 21U);
            EXPECT_EQ(outcome.source, 2);
            EXPECT_EQ(receive_long(engine, from(2, 1)), 22U);
            EXPECT_EQ(receive_long(engine, from(2, MPI_ANY_TAG)), 23U);
            EXPECT_EQ(receive_long(engine, from(2, 1)), 24U);
        });
    });
}

TEST(Queued, wildcards_and_the_short_way_take_turns_in_order) {
    fibre::alone([] {
        FibreNode node(2);
        constexpr std::uint64_t messages = 1000; // more than there is space for at a time
        node.run([&](Engine& engine, std::uint32_t me) {
            if (me == 0) {
                for (std::uint64_t number = 1; number <= messages; ++number) {
                    std::uint64_t value = number;
                    if (!engine.send_short(&value, sizeof value, 1, from(0, 1))) {
                        send_long(engine, 1, from(0, 1), number);
                    }
                }
                return;
            }
            std::uint64_t taken = 0; // the short way
            for (std::uint64_t number = 1; number <= messages; ++number) {
                const bool wild = number > 400 && number % 100 > 50 && number % 3 == 0;
                const std::uint64_t got = wild ? 0 : receive(engine, from(0, 1));
                taken += got != 0 ? 1 : 0;
                ASSERT_EQ(got != 0 ? got : receive_long(engine, from(wild ? MPI_ANY_SOURCE : 0, 1)),
                          number);
            }
            EXPECT_GT(taken, messages / 4);
        });
    });
}

TEST(Queued, what_does_not_fit_is_left_to_the_long_way_which_says_so) {
    fibre::alone([] {
        FibreNode node(2);
        std::uint32_t received = 0;
        node.run([&](Engine& engine, std::uint32_t me) {
            const std::byte data[41] = {std::byte{1}};
            if (me == 0) {
                send_long(engine, 1, from(0, 1), 1);
                std::uint32_t sent = 0;
                for (const std::size_t bytes : {8U, 7U, 40U, 0U, 8U}) {
                    until(received, ++sent);
                    ASSERT_TRUE(engine.send_short(data, bytes, 1, from(0, 1)));
                }
                EXPECT_FALSE(engine.send_short(data, 41, 1, from(0, 1))); // has no space in a cell
                return;
            }
            EXPECT_EQ(receive(engine, from(0, 1)), 1U);
            std::byte room[48] = {};
            std::size_t bytes = 0;
            const auto short_way = [&](std::size_t fits, std::size_t unit) {
                return engine.receive_short(room, fits, unit, 0, from(0, 1), some_call, bytes);
            };
            const auto long_way = [&](MPI_Count fits, const datatype::Datatype& type) {
                Outcome outcome;
                EXPECT_FALSE(engine.receive({room, fits, &type}, from(0, 1), outcome));
                return outcome.error_class;
            };
            received = 1;
            EXPECT_FALSE(short_way(7, 1));
            EXPECT_EQ(room[0], std::byte{0}); // nothing is there
            EXPECT_EQ(long_way(7, byte_type()), MPI_ERR_TRUNCATE);
            received = 2;
            EXPECT_FALSE(short_way(12, 4)); // ends within an element
            EXPECT_EQ(long_way(3, datatype::basic(MPI_INT)), MPI_ERR_TYPE);
            received = 3;
            EXPECT_TRUE(short_way(48, 8));
            EXPECT_EQ(bytes, 40U);
            EXPECT_EQ(room[40], std::byte{0});
            received = 4;
            EXPECT_TRUE(short_way(48, 8));
            EXPECT_EQ(bytes, 0U);
            received = 5;
            EXPECT_TRUE(short_way(8, 1));
            EXPECT_EQ(bytes, 8U);
        });
    });
}

TEST(Queued, a_receive_that_is_posted_comes_first_unless_it_is_cancelled) {
    fibre::alone([] {
        FibreNode node(2);
        std::uint32_t stage = 0;
        node.run([&](Engine& engine, std::uint32_t me) {
            if (me == 0) {
                until(stage, 1);
                send_long(engine, 1, from(0, 1), 1);
                send(engine, 1, from(0, 1), 2);
                stage = 2;
                until(stage, 3);
                send(engine, 1, from(0, 1), 3);
                stage = 4;
                return;
            }
            std::uint64_t first = 0;
            Request* posted = engine.receive_later({&first, 8, &byte_type()}, from(0, 1));
            ASSERT_NE(posted, nullptr);
            stage = 1;
            until(stage, 2);
            EXPECT_EQ(receive(engine, from(0, 1)), 0U);
            EXPECT_EQ(receive_long(engine, from(0, 1)), 2U);
            engine.wait(*posted);
            EXPECT_EQ(first, 1U);
            engine.discard(*posted);

            posted = engine.receive_later({&first, 8, &byte_type()}, from(0, 1));
            ASSERT_NE(posted, nullptr);
            stage = 3;
            until(stage, 4);
            engine.cancel(*posted);
            EXPECT_TRUE(posted->outcome.cancelled);
            engine.discard(*posted);
            EXPECT_EQ(receive(engine, from(0, 1)), 3U);
            EXPECT_EQ(first, 1U);
        });
    });
}

// The first part of a longer message has the same envelope, and is none.
TEST(Queued, longer_messages_go_the_long_way_also_if_their_sender_gives_up) {
    fibre::alone([] {
        FibreNode node(2);
        std::uint32_t stage = 0;
        constexpr std::size_t bytes = 100'000;
        node.run([&](Engine& engine, std::uint32_t me) {
            std::vector<std::byte> data(bytes, std::byte{static_cast<unsigned char>(1 - me)});
            if (me == 0) {
                send_long(engine, 1, from(0, 1), 1);
                Request* const given_up = start_send(engine, data, 1, 1); // (of context 3)
                engine.orphan(*given_up);
                send(engine, 1, from(0, 1), 2);
                stage = 1;
                until(stage, 2);
                engine.progress();
                EXPECT_EQ(engine.requests().live(), 0U);
                Request* const request = start_send(engine, data, 1, 2);
                stage = 3;
                engine.wait(*request);
                engine.discard(*request);
                return;
            }
            until(stage, 1);
            EXPECT_EQ(receive(engine, from(0, 1)), 1U);
            std::byte room[64] = {};
            std::size_t got = 0;
            const auto short_way = [&](int tag) {
                return engine.receive_short(room, sizeof room, 1, 0,
                                            {.context = 3, .source = 0, .tag = tag}, some_call,
                                            got);
            };
            EXPECT_FALSE(short_way(1));
            EXPECT_EQ(receive(engine, from(0, 1)), 0U); // stands behind it
            EXPECT_EQ(receive_long(engine, from(0, 1)), 2U);
            stage = 2;
            until(stage, 3);
            EXPECT_FALSE(short_way(2));
            Outcome outcome;
            EXPECT_FALSE(engine.receive({data.data(), bytes, &byte_type()},
                                        {.context = 3, .source = 0, .tag = 2}, outcome));
            EXPECT_EQ(outcome.bytes, static_cast<MPI_Count>(bytes));
            EXPECT_EQ(data, std::vector<std::byte>(bytes, std::byte{1}));
        });
    });
}

} // namespace
} // namespace warren::message
