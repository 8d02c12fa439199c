// Calls that don't match never harm those that do: what ranks still read stays, who is late is
// waited for, and ranks whose operations are no longer the same are told so.

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <unistd.h>

#include "mpi/coll/test_ranks.hpp"

namespace warren::coll {
namespace {

// Ranks 0 to 2 as threads: flat, and counted.
class UnequalTest : public testing::TestWithParam<NodeShape> {};

INSTANTIATE_TEST_SUITE_P(Shapes, UnequalTest, testing::Values(NodeShape{3, 64}, NodeShape{3, 2}),
                         name_of);

// As above, for four ranks, which are not all neighbours.
class FourTest : public testing::TestWithParam<NodeShape> {};

INSTANTIATE_TEST_SUITE_P(Shapes, FourTest, testing::Values(NodeShape{4, 64}, NodeShape{4, 2}),
                         name_of);

const datatype::Datatype& type() {
    return datatype::basic(MPI_INT64_T);
}

// Waits for what should not happen while this rank is late; for a while, since it shouldn't.
void be_late(const std::atomic<bool>& others_are_through) {
    for (int i = 0; i < 300 && !others_are_through; ++i) {
        usleep(1000);
    }
}

// The expected result.
void wait_for(const std::atomic<bool>& value) {
    for (int i = 0; i < 5000 && !value; ++i) {
        usleep(1000);
    }
}

void be_late_for(const std::atomic<int>& value, int expected) {
    for (int i = 0; i < 5000 && value != expected; ++i) {
        usleep(1000);
    }
}

// A matching call, whose result everybody can tell: true if it is right.
bool sum_is_right(Member& member, std::int64_t number, bool& told) {
    comm::Communicator& world = member.communicators.world();
    SmallCollectives slot(member.engine, world);
    const std::int64_t in = number * 1000 + world.rank();
    std::int64_t out = -1;
    slot.allreduce(&in, &out, 1, type(), Op(OpKind::sum));
    told = slot.unequal();
    slot.outcome().drop();
    return told || out == number * 3000 + 3;
}

std::atomic<bool> others_are_through;
thread_local bool is_late;

// Takes the left operand. The late rank has yet to read rank 0's when it is here.
void take_left(void* in, void* inout, int*, MPI_Datatype*) {
    if (std::exchange(is_late, false)) {
        be_late(others_are_through);
    }
    std::memcpy(inout, in, sizeof(std::int64_t));
}

TEST(unequal, who_has_given_up_does_not_write_over_what_others_read) {
    others_are_through = false;
    EXPECT_TRUE(run_threads(3, 64, [](Member& member) {
        comm::Communicator& world = member.communicators.world();
        const int rank = world.rank();
        for (int i = 0; i < 8; ++i) {
            SmallCollectives(member.engine, world).barrier();
        }
        is_late = rank == 2;
        std::int64_t value = 5 + rank;
        SmallCollectives first(member.engine, world);
        first.allreduce(&value, &value, 1, type(), Op(take_left, false));
        EXPECT_EQ(value, 5);
        SmallCollectives odd(member.engine, world);
        if (rank == 0) {
            odd.allreduce(&value, &value, 1, type(), Op(OpKind::sum));
            EXPECT_TRUE(odd.unequal());
        } else {
            odd.barrier();
        }
        odd.outcome().drop();
        for (int i = 0; i < 3; ++i) {
            std::int64_t sent = rank == 0 ? 77 : 0;
            SmallCollectives slot(member.engine, world);
            slot.bcast(&sent, sizeof sent, 0);
            EXPECT_FALSE(slot.unequal());
            EXPECT_EQ(sent, 77);
        }
        others_are_through = rank == 0 || others_are_through;
        bool told = false;
        const bool right = sum_is_right(member, 1, told);
        EXPECT_FALSE(told);
        return right && value == 5;
    }));
}

TEST_P(UnequalTest, a_late_rank_is_waited_for_after_calls_that_take_messages) {
    constexpr int calls = 9;
    others_are_through = false;
    EXPECT_TRUE(run_threads(GetParam().ranks, GetParam().cores, [](Member& member) {
        comm::Communicator& world = member.communicators.world();
        const int rank = world.rank();
        if (rank == 2) {
            be_late(others_are_through);
        }
        for (int i = 0; i < calls; ++i) {
            SmallCollectives slot(member.engine, world);
            if (rank != 0) {
                slot.barrier();
                EXPECT_TRUE(slot.unequal());
            } else {
                slot.ring().call().begin_messages(Tag::gather);
                while (!slot.ring().call().differs_at(1)) {
                    sched_yield();
                }
                slot.ring().arrive_aside();
            }
            slot.outcome().drop();
        }
        others_are_through = rank == 0 || others_are_through;
        bool told = false;
        const bool right = sum_is_right(member, 1, told);
        EXPECT_FALSE(told);
        return right;
    }));
}

// A rank that takes messages and sees a different call of another such rank still arrives aside if
// other ranks use the slot.
TEST_P(UnequalTest, ranks_count_on_alike_after_messages_that_differ_beside_others) {
    EXPECT_TRUE(run_threads(GetParam().ranks, GetParam().cores, [](Member& member) {
        comm::Communicator& world = member.communicators.world();
        const int rank = world.rank();
        const auto see = [](SmallCollectives& slot, int other) {
            while (!slot.ring().call().differs_at(other)) {
                sched_yield();
            }
        };
        {
            SmallCollectives slot(member.engine, world);
            if (rank > 1) {
                slot.barrier();
                EXPECT_TRUE(slot.unequal());
            } else {
                slot.ring().call().begin_messages(Tag::gather, {.bytes = 1000 + rank});
                see(slot, 1 - rank);
                see(slot, 2);
                EXPECT_FALSE(slot.ring().call().all_take_messages());
                slot.ring().arrive_aside();
            }
            slot.outcome().drop();
        }
        {
            SmallCollectives slot(member.engine, world);
            slot.ring().call().begin_messages(Tag::gather, {.bytes = 1000 + rank});
            for (int other = 0; other < world.size(); ++other) {
                if (other != rank) {
                    see(slot, other);
                }
            }
            EXPECT_TRUE(slot.ring().call().all_take_messages());
            slot.outcome().drop();
        }
        bool told = false;
        const bool right = sum_is_right(member, 1, told);
        EXPECT_FALSE(told);
        return right;
    }));
}

TEST_P(UnequalTest, calls_are_told_or_right_after_one_of_more_operations_than_others) {
    std::atomic<int> tellings{0};
    const auto program = [&](Member& member) {
        comm::Communicator& world = member.communicators.world();
        std::int64_t value = 0;
        SmallCollectives odd(member.engine, world);
        if (world.rank() == 0) { // which doesn't wait, and learns nothing
            odd.ring().call().begin(Tag::bcast, 1000, 0);
            for (int piece = 0; piece < 2; ++piece) {
                odd.ring().from_root(
                    0, [](std::uint64_t) {}, [](std::uint64_t) {});
            }
        } else {
            odd.bcast(&value, sizeof value, 0);
            EXPECT_TRUE(odd.unequal());
        }
        odd.outcome().drop();
        bool right = true;
        for (int i = 0; i < 12; ++i) {
            bool told = false;
            right = sum_is_right(member, i, told) && right;
            tellings += told ? 1 : 0;
        }
        return right;
    };
    EXPECT_TRUE(run_threads(GetParam().ranks, GetParam().cores, program));
    EXPECT_EQ(tellings, 3 * 12);
}

// Rank 1 sleeps for two that leave without waiting: nobody else finds it.
TEST(unequal, who_leaves_without_waiting_tells_those_who_sleep) {
    std::atomic<int> through{0};
    EXPECT_TRUE(run_threads(3, 2, [&](Member& member) {
        comm::Communicator& world = member.communicators.world();
        std::int64_t value = 1;
        SmallCollectives slot(member.engine, world);
        if (world.rank() == 1) {
            slot.bcast(&value, sizeof value, 2);
            EXPECT_TRUE(slot.unequal());
            through = 3;
        } else {
            usleep(50'000); // by then rank 1 sleeps
            slot.reduce(&value, nullptr, 1, type(), Op(OpKind::sum), 2 - world.rank());
            if (++through == 2) {
                be_late_for(through, 3);
                EXPECT_EQ(through, 3);
            }
        }
        slot.outcome().drop();
        return true;
    }));
}

// Rank 0 sleeps for 1 and 3, which find what they wait for and leave; and 2 isn't its neighbour.
TEST_P(FourTest, who_leaves_with_what_it_got_tells_those_who_sleep) {
    std::atomic<int> through{0};
    std::atomic<bool> told{false};
    EXPECT_TRUE(run_threads(4, GetParam().cores, [&](Member& member) {
        comm::Communicator& world = member.communicators.world();
        std::int64_t value = world.rank();
        std::int64_t sum = 0;
        SmallCollectives slot(member.engine, world);
        if (world.rank() == 0) {
            slot.reduce(&value, &sum, 1, type(), Op(OpKind::sum), 0);
            EXPECT_TRUE(slot.unequal());
            told = true;
        } else {
            usleep(world.rank() == 2 ? 50'000 : 100'000); // first 0, then 2, then the others
            slot.bcast(&value, sizeof value, 2);
            if (++through == 3) {
                wait_for(told);
                EXPECT_TRUE(told);
            }
        }
        slot.outcome().drop();
        return true;
    }));
}

// Rank 0 sleeps for 1 and 3, which arrive and leave; 2 takes messages, and has seen nobody.
TEST_P(FourTest, who_takes_messages_and_leaves_is_seen_by_those_who_sleep) {
    std::atomic<int> through{0};
    EXPECT_TRUE(run_threads(4, GetParam().cores, [&](Member& member) {
        comm::Communicator& world = member.communicators.world();
        std::int64_t value = world.rank();
        std::int64_t sum = 0;
        SmallCollectives slot(member.engine, world);
        if (world.rank() == 2) {
            usleep(50'000);
            slot.ring().call().begin_messages(Tag::gather);
            slot.ring().call().tell_sleepers();
            be_late_for(through, 3); // or it would arrive
            EXPECT_EQ(through, 3);
            EXPECT_TRUE(slot.ring().call().differs());
            slot.ring().arrive_aside();
        } else if (world.rank() == 0) {
            slot.reduce(&value, &sum, 1, type(), Op(OpKind::sum), 0);
            EXPECT_TRUE(slot.unequal());
            ++through;
        } else {
            usleep(100'000);
            slot.reduce(&value, nullptr, 1, type(), Op(OpKind::sum), 0);
            ++through;
        }
        slot.outcome().drop();
        return true;
    }));
}

// All take messages, one of them for another call: it comes between its neighbours, and leaves.
TEST_P(FourTest, who_takes_other_messages_and_leaves_tells_those_who_sleep) {
    std::atomic<bool> told{false};
    EXPECT_TRUE(run_threads(4, GetParam().cores, [&](Member& member) {
        comm::Communicator& world = member.communicators.world();
        SmallCollectives slot(member.engine, world);
        usleep(static_cast<useconds_t>(world.rank()) * 50'000);
        slot.ring().call().begin_messages(world.rank() == 2 ? Tag::scatter : Tag::gather);
        slot.ring().call().tell_sleepers();
        if (world.rank() == 0) {
            member.engine.wait_until([&] { return slot.unequal(); }, WaitReason{},
                                     BroughtBy::others, nullptr,
                                     [&] { return slot.ring().call().differs(); });
            told = true;
        } else if (world.rank() == 3) {
            wait_for(told); // its next call would be seen
            EXPECT_TRUE(told);
        }
        slot.outcome().drop();
        return true;
    }));
}

// Another thread of the rank polls, for something else.
TEST(unequal, a_thread_that_leaves_polling_to_another_is_told) {
    std::atomic<bool> polled{false};
    std::atomic<bool> waits{false};
    std::atomic<int> through{0};
    std::atomic<bool> end{false};
    EXPECT_TRUE(run_threads(2, 64, [&](Member& member) {
        comm::Communicator& world = member.communicators.world();
        if (world.rank() == 1) {
            while (!waits) {
                usleep(1000);
            }
            usleep(100'000); // by then both threads of rank 0 sleep
            SmallCollectives slot(member.engine, world);
            slot.ring().call().begin_messages(Tag::gather);
            EXPECT_TRUE(slot.ring().call().tell_sleepers());
            be_late_for(through, 1);
            EXPECT_EQ(through, 1);
            slot.ring().arrive_aside();
            slot.outcome().drop();
            return true;
        }
        member.rank.share_by_threads();
        std::thread polls([&] {
            const std::lock_guard guard(member.rank.lock);
            int asked = 0;
            const auto ended = [&] {
                polled = ++asked > 1; // the second time as the one that polls
                return end.load();
            };
            member.engine.wait_until(ended, WaitReason{}, BroughtBy::others);
        });
        while (!polled) {
            usleep(1000);
        }
        {
            const std::lock_guard guard(member.rank.lock);
            SmallCollectives slot(member.engine, world);
            waits = true;
            slot.barrier();
            EXPECT_TRUE(slot.unequal());
            slot.outcome().drop();
            through = 1;
            end = true;
            member.rank.wake_threads();
        }
        polls.join();
        return true;
    }));
}

TEST(unequal, calls_whose_kinds_make_a_mean_are_not_taken_for_equal) {
    std::atomic<int> others{0};
    EXPECT_TRUE(run_threads(3, 2, [&](Member& member) {
        comm::Communicator& world = member.communicators.world();
        SmallCollectives slot(member.engine, world);
        bool good = true;
        if (world.rank() == 1) { // the last one, who counts
            while (others != 2) {
                sched_yield();
            }
            slot.barrier();
            good = slot.unequal();
        } else {
            slot.pass(world.rank() == 0 ? Tag::bcast : Tag::gather, 0, OpKind::null);
            ++others;
        }
        slot.outcome().drop();
        return good;
    }));
}

} // namespace
} // namespace warren::coll
