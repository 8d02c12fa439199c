// Small collectives under stress: random sequences of operations, the same at all ranks, as
// threads that each map the segment themselves, and as processes.

#include <gtest/gtest.h>

#include <unistd.h>

#include "mpi/coll/slot_pool.hpp"
#include "mpi/coll/test_ranks.hpp"
#include "mpi/job/context_ids.hpp"

namespace warren::coll {
namespace {

// A split of the world, whose colours and keys everybody can tell.
bool split_is_right(Member& member, SmallCollectives& slot, std::uint32_t seed) {
    const comm::Communicator& world = member.communicators.world();
    const int colours = 1 + static_cast<int>(seed % 4);
    const auto colour_of = [&](int rank) {
        const int colour = static_cast<int>((seed / 8 + static_cast<std::uint32_t>(rank) * 5) % 7);
        return colour < colours ? colour : MPI_UNDEFINED;
    };
    const auto key_of = [&](int rank) {
        return static_cast<int>((seed / 64 ^ static_cast<std::uint32_t>(rank) * 11) % 5) - 2;
    };
    const int colour = colour_of(world.rank());
    std::vector<int> expected;
    for (int key = -2; key <= 2; ++key) {
        for (int rank = 0; rank < world.size() && colour != MPI_UNDEFINED; ++rank) {
            if (colour_of(rank) == colour && key_of(rank) == key) {
                expected.push_back(rank);
            }
        }
    }
    std::vector<int> members;
    const std::uint32_t context = slot.split(colour, key_of(world.rank()), members);
    bool good = members == expected && (context != 0) == !expected.empty();
    if (context != 0) {
        good = node::ContextIds::give_back(member.rank.segment, context) == 0 && good;
    }
    return good;
}

// Every rank draws the same operations; between them some ranks are slow.
bool random_operations(Member& member, std::uint32_t seed, int operations) {
    comm::Communicator& world = member.communicators.world();
    SmallCollectives slot(member.engine, world);
    const int rank = world.rank();
    const int size = world.size();
    const datatype::Datatype& type = datatype::basic(MPI_INT64_T);
    const Op sum(OpKind::sum);
    // Takes the right operand: shows the order of combination, for the last rank wins.
    const Op last([](void*, void*, int*, MPI_Datatype*) {}, false);
    Random shared{seed};
    Random own{seed ^ static_cast<std::uint32_t>(rank * 7919)};
    bool good = true;
    const std::uint64_t end_ns = monotonic_ns() + time_limit_ns;
    for (int i = 0; i < operations && good; ++i) {
        if (i % 64 == 63 && all_stop(member, end_ns)) {
            break;
        }
        const std::uint32_t kind = shared() % 9;
        const int root = static_cast<int>(shared() % static_cast<std::uint32_t>(size));
        const MPI_Count count = 1 + shared() % 7;
        std::int64_t in[7], out[7];
        for (int k = 0; k < 7; ++k) {
            in[k] = i * 1000003LL + rank * (k + 1);
            out[k] = -1;
        }
        const std::int64_t ranks_sum = std::int64_t{size} * (size - 1) / 2;
        switch (kind) {
        case 0:
            slot.barrier();
            break;
        case 1:
        case 2:
            slot.allreduce(in, out, count, type, sum);
            for (int k = 0; k < count; ++k) {
                good = good && out[k] == i * 1000003LL * size + ranks_sum * (k + 1);
            }
            break;
        case 3:
            slot.allreduce(in, out, count, type, last);
            for (int k = 0; k < count; ++k) {
                good = good && out[k] == i * 1000003LL + (size - 1) * (k + 1);
            }
            break;
        case 4:
        case 5:
            slot.reduce(in, out, count, type, sum, root);
            for (int k = 0; k < count && rank == root; ++k) {
                good = good && out[k] == i * 1000003LL * size + ranks_sum * (k + 1);
            }
            break;
        case 6:
            good = good && split_is_right(member, slot, shared());
            break;
        default:
            slot.bcast(in, 8 * count, root);
            for (int k = 0; k < count; ++k) {
                good = good && in[k] == i * 1000003LL + root * (k + 1);
            }
        }
        const std::uint32_t pause = own() % 512;
        if (pause == 0) {
            usleep(200); // long enough for the others to sleep
        } else if (pause < 8) {
            sched_yield();
        }
    }
    EXPECT_TRUE(good) << "rank " << rank << " of " << size;
    return good;
}

class SmallCollectivesTest : public testing::TestWithParam<NodeShape> {};

// Flat, counted with spinning, counted with yields and sleeps.
INSTANTIATE_TEST_SUITE_P(Shapes, SmallCollectivesTest,
                         testing::Values(NodeShape{2, 2}, NodeShape{5, 64}, NodeShape{11, 64},
                                         NodeShape{2, 1}, NodeShape{3, 2}, NodeShape{8, 2},
                                         NodeShape{17, 2}, NodeShape{70, 2}),
                         name_of);

int number_of_operations(const NodeShape& shape) {
    return operations_of(shape, 60'000, 100);
}

TEST_P(SmallCollectivesTest, random_operations_of_threads_agree_with_a_reference) {
    agree_as_threads(GetParam(), random_operations, number_of_operations(GetParam()));
}

TEST_P(SmallCollectivesTest, random_operations_of_processes_agree_with_a_reference) {
    agree_as_processes(GetParam(), random_operations, number_of_operations(GetParam()));
}

// One rank, another one each time, makes another call than the others; between, calls match.
bool calls_that_differ(Member& member, std::uint32_t seed, int operations) {
    comm::Communicator& world = member.communicators.world();
    const int rank = world.rank();
    const int size = world.size();
    const datatype::Datatype& type = datatype::basic(MPI_INT64_T);
    const Op sum(OpKind::sum);
    const Op most(OpKind::max);
    Random shared{seed};
    bool good = true;
    const std::uint64_t end_ns = monotonic_ns() + time_limit_ns;
    for (int i = 0; i < operations && good; ++i) {
        std::int64_t late = monotonic_ns() > end_ns;
        SmallCollectives matching(member.engine, world);
        matching.allreduce(&late, &late, 1, type, sum);
        good = !matching.unequal();
        if (late != 0) {
            break;
        }
        const bool odd = rank == static_cast<int>(shared() % static_cast<std::uint32_t>(size));
        std::int64_t in[4] = {}, out[4] = {};
        SmallCollectives slot(member.engine, world);
        bool is_told = true;
        const std::uint32_t kind = shared() % 6;
        switch (kind) {
        case 0: // another size
            slot.allreduce(in, out, odd ? 2 : 3, type, sum);
            break;
        case 1: // another operator
            slot.allreduce(in, out, 2, type, odd ? most : sum);
            break;
        case 2: // nobody is the root of the one, or there are two
            slot.bcast(in, 8, odd ? (rank + 1) % size : 0);
            is_told = odd && rank != 0 && rank + 1 != size;
            break;
        case 3: // nobody publishes what the others wait for, who have not arrived
            if (odd) {
                slot.barrier();
            } else {
                slot.bcast(in, 16, (rank + 1) % size);
            }
            break;
        case 4:
            if (odd) {
                slot.refuse();
            } else {
                slot.barrier();
            }
            is_told = !odd;
            break;
        default:
            if (odd) {
                slot.barrier();
            } else {
                slot.allreduce(in, out, 1, type, sum);
            }
        }
        good = good && (slot.unequal() || !is_told);
        EXPECT_TRUE(good) << "kind " << kind << (odd ? ", odd" : "") << ", operation " << i;
        slot.outcome().drop();
    }
    EXPECT_TRUE(good) << "rank " << rank << " of " << size;
    return good;
}

TEST_P(SmallCollectivesTest, threads_whose_calls_differ_are_told) {
    agree_as_threads(GetParam(), calls_that_differ, operations_of(GetParam(), 3000, 20));
}

TEST_P(SmallCollectivesTest, processes_whose_calls_differ_are_told) {
    agree_as_processes(GetParam(), calls_that_differ, operations_of(GetParam(), 3000, 20));
}

TEST(SlotPool, are_taken_once_and_come_back_clean) {
    node::Segment segment;
    Error error = node::Segment::create({.ranks = 4, .cores = 4}, segment);
    ASSERT_FALSE(error);
    const std::uint32_t first = slot_pool::acquire(segment, 1);
    const std::uint32_t second = slot_pool::acquire(segment, 1);
    EXPECT_NE(first, 0U); // the world's
    EXPECT_NE(first, second);
    segment.unit(collective_slots, first)[100] = std::byte{1};
    EXPECT_NE(slot_pool::acquire(segment, 1), first);
    slot_pool::give_back(segment, first);
    EXPECT_EQ(slot_pool::acquire(segment, 1), first);
    EXPECT_EQ(segment.unit(collective_slots, first)[100], std::byte{0});
    std::uint32_t slot = 0;
    std::uint32_t taken = 3;
    while ((slot = slot_pool::acquire(segment, 1)) != comm::CollectivePlace::none) {
        ++taken;
    }
    EXPECT_EQ(taken + 1, segment.units(collective_slots));
}

} // namespace
} // namespace warren::coll
