// Collective operations through staging areas under stress: random sequences, the same at all
// ranks, of random sizes around those where data is cut or changes its place, against values that
// every rank can compute. Each rank does what is short enough for it in either way, as it likes.

#include <bit>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "mpi/coll/shared_data.hpp"
#include "mpi/coll/short_blocks.hpp"
#include "mpi/coll/test_ranks.hpp"
#include "mpi/datatype/type_table.hpp"

namespace warren::coll {
namespace {

// Element i of what rank `from` has for rank `to` in an operation.
std::int64_t value(std::uint32_t operation, int from, int to, MPI_Count i) {
    return static_cast<std::int64_t>(operation) * 1000003 + from * 7919 + to * 104729 + i * 31;
}

// Elements of 8 bytes around the sizes of lines, staging areas and pieces; less for many ranks.
MPI_Count draw_count(Random& random, int size) {
    constexpr MPI_Count borders[] = {1, 7, 8, 9, 64, 512, 520, 1024, 2048, 8192, 8200, 20000};
    const std::uint32_t kinds = size > 8 ? 7 : (size > 3 ? 10 : 12);
    const MPI_Count border = borders[random() % kinds];
    const MPI_Count shift = static_cast<MPI_Count>(random() % 5) - 2;
    return border + shift > 0 ? border + shift : 1;
}

struct Operands {
    std::vector<std::int64_t> in, out;

    void fill(std::uint32_t operation, int rank, int blocks, MPI_Count count) {
        in.resize(static_cast<std::size_t>(blocks * count));
        out.assign(static_cast<std::size_t>(blocks * count), -1);
        for (int r = 0; r < blocks; ++r) {
            for (MPI_Count i = 0; i < count; ++i) {
                in[static_cast<std::size_t>(r * count + i)] = value(operation, rank, r, i);
            }
        }
    }
    // Whether block `block` of `out` is what `from` had for `to`.
    bool holds(std::uint32_t operation, int block, MPI_Count count, int from, int to) const {
        for (MPI_Count i = 0; i < count; ++i) {
            if (out[static_cast<std::size_t>(block * count + i)] != value(operation, from, to, i)) {
                return false;
            }
        }
        return true;
    }
    // Whether it is the sum of what the first `ranks` ranks had for rank `to`; or, for the
    // operation "last", the last one's.
    bool combined(std::uint32_t operation, MPI_Count count, int ranks, bool sum, int to = 0) const {
        for (MPI_Count i = 0; i < count; ++i) {
            std::int64_t all = 0;
            for (int r = sum ? 0 : ranks - 1; r < ranks; ++r) {
                all += value(operation, r, to, i);
            }
            if (out[static_cast<std::size_t>(i)] != all) {
                return false;
            }
        }
        return true;
    }
};

bool random_operations(Member& member, std::uint32_t seed, int operations) {
    comm::Communicator& world = member.communicators.world();
    SharedData data(member.engine, world);
    SmallCollectives slot(member.engine, world);
    ShortBlocks blocks(member.engine, world);
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
    Operands operands;
    for (int i = 0; i < operations && good; ++i) {
        if (i % 16 == 15) {
            // On a busy machine all stop early together.
            std::int64_t late = monotonic_ns() > end_ns;
            slot.allreduce(&late, &late, 1, type, sum);
            if (late != 0) {
                break;
            }
        }
        const auto number = static_cast<std::uint32_t>(i);
        const std::uint32_t kind = shared() % 10;
        const int root = static_cast<int>(shared() % static_cast<std::uint32_t>(size));
        const bool in_place = shared() % 4 == 0;
        const bool summed = shared() % 4 != 0;
        MPI_Count count = draw_count(shared, size);
        const auto block = [&](std::vector<std::int64_t>& of, MPI_Count elements) {
            return Buffer{of.data(), elements, &type};
        };
        // Bytes of `count` elements.
        const bool free_choice = own() % 2 == 0;
        const auto shortly = [&] {
            return free_choice && ShortBlocks::serves(member.engine, world, 8 * count);
        };
        const auto bytes_at = [](std::vector<std::int64_t>& of) {
            return reinterpret_cast<std::byte*>(of.data());
        };
        // A short way's outcome.
        const auto fine = [](Error error) {
            const bool none = !error;
            error.drop();
            return none;
        };
        bool done = true;
        switch (kind) {
        case 0: {
            operands.fill(number, rank, 1, count);
            Buffer buffer = block(rank == root ? operands.in : operands.out, count);
            done = shortly() ? fine(blocks.bcast(buffer.base, 8 * count, root))
                             : data.bcast(buffer, root);
            good = done && (rank == root || operands.holds(number, 0, count, root, 0));
            break;
        }
        case 1: {
            operands.fill(number, rank, size, count);
            done = shortly() ? fine(blocks.gather(operands.in.data(), bytes_at(operands.out),
                                                  8 * count, root))
                             : data.gather(block(operands.in, count),
                                           Blocks(block(operands.out, count)), root);
            for (int r = 0; r < size && rank == root; ++r) {
                good = good && (r == rank || operands.holds(number, r, count, r, 0));
            }
            break;
        }
        case 2: {
            operands.fill(number, rank, size, count);
            done = shortly() ? fine(blocks.scatter(bytes_at(operands.in), operands.out.data(),
                                                   8 * count, root))
                             : data.scatter(Blocks(block(operands.in, count)),
                                            block(operands.out, count), root);
            good = rank == root || operands.holds(number, 0, count, root, rank);
            break;
        }
        case 3: {
            operands.fill(number, rank, size, count);
            std::memcpy(operands.out.data() + rank * count, operands.in.data(),
                        static_cast<std::size_t>(8 * count));
            done =
                shortly()
                    ? fine(blocks.allgather(operands.in.data(), bytes_at(operands.out), 8 * count))
                    : data.allgather(block(operands.in, count), Blocks(block(operands.out, count)));
            for (int r = 0; r < size; ++r) {
                good = good && operands.holds(number, r, count, r, 0);
            }
            break;
        }
        case 4: {
            count = size > 4 ? 1 + (count - 1) / size : count;
            operands.fill(number, rank, size, count);
            if (in_place) {
                operands.out = operands.in;
            }
            std::vector<std::int64_t>& out = in_place ? operands.out : operands.in;
            done =
                shortly() && blocks.fits_alltoall(8 * count)
                    ? fine(blocks.alltoall(bytes_at(out), bytes_at(operands.out), 8 * count))
                    : data.alltoall(Blocks(block(out, count)), Blocks(block(operands.out, count)));
            for (int r = 0; r < size; ++r) {
                good = good && (r == rank || operands.holds(number, r, count, r, rank));
            }
            break;
        }
        case 5: {
            operands.fill(number, rank, 1, count);
            if (in_place) {
                operands.out = operands.in;
            }
            const Reduction reduction = {count, type, summed ? sum : last};
            const std::int64_t* in =
                in_place && rank == root ? operands.out.data() : operands.in.data();
            done = shortly() ? fine(blocks.reduce(reduction, in, operands.out.data(), root))
                             : data.reduce(reduction, in, operands.out.data(), root);
            good = rank != root || operands.combined(number, count, size, summed);
            break;
        }
        case 6: {
            operands.fill(number, rank, 1, count);
            if (in_place) {
                operands.out = operands.in;
            }
            const bool exclusive = shared() % 2 == 0;
            done = data.scan({count, type, summed ? sum : last},
                             in_place ? operands.out.data() : operands.in.data(),
                             operands.out.data(), exclusive);
            const int ranks = exclusive ? rank : rank + 1;
            good = ranks == 0 || operands.combined(number, count, ranks, summed);
            break;
        }
        case 7: {
            count = size > 4 ? 1 + (count - 1) / size : count;
            operands.fill(number, rank, size, count);
            // Rank 1 gets less, and its block is as long as it gets.
            std::vector<MPI_Count> counts(static_cast<std::size_t>(size), count);
            counts[1] = count / 2;
            operands.in.erase(operands.in.begin() + count + counts[1],
                              operands.in.begin() + 2 * count);
            if (in_place) {
                operands.out = operands.in;
            }
            done = data.reduce_scatter(
                {static_cast<MPI_Count>(operands.in.size()), type, summed ? sum : last},
                in_place ? operands.out.data() : operands.in.data(), operands.out.data(),
                counts.data());
            good = operands.combined(number, counts[static_cast<std::size_t>(rank)], size, summed,
                                     rank);
            break;
        }
        default: {
            operands.fill(number, rank, 1, count);
            if (in_place) {
                operands.out = operands.in;
            }
            const Reduction reduction = {count, type, summed ? sum : last};
            const std::int64_t* in = in_place ? operands.out.data() : operands.in.data();
            done = shortly() ? fine(blocks.allreduce(reduction, in, operands.out.data()))
                             : data.allreduce(reduction, in, operands.out.data());
            good = operands.combined(number, count, size, summed);
        }
        }
        good = good && done;
        EXPECT_TRUE(good) << "operation " << kind << " of " << count << " elements, rank " << rank
                          << " of " << size << ", root " << root;
        const std::uint32_t pause = own() % 512;
        if (pause == 0) {
            usleep(200); // long enough for the others to sleep
        } else if (pause < 8) {
            sched_yield();
        }
    }
    return good;
}

class SharedDataTest : public testing::TestWithParam<Shape> {};

// Flat, counted with spinning, counted with yields and sleeps.
INSTANTIATE_TEST_SUITE_P(Shapes, SharedDataTest,
                         testing::Values(Shape{2, 2}, Shape{4, 64}, Shape{11, 64}, Shape{2, 1},
                                         Shape{3, 2}, Shape{8, 2}, Shape{17, 2}, Shape{40, 2}),
                         name_of);

int number_of_operations(const Shape& shape) {
    return operations_of(shape, 10'000, 20);
}

TEST_P(SharedDataTest, random_operations_of_threads_agree_with_a_reference) {
    agree_as_threads(GetParam(), random_operations, number_of_operations(GetParam()));
}

TEST_P(SharedDataTest, random_operations_of_processes_agree_with_a_reference) {
    agree_as_processes(GetParam(), random_operations, number_of_operations(GetParam()));
}

TEST(Staging, come_once_and_go_back_with_the_slot) {
    node::Segment segment;
    Error error = node::Segment::create({.ranks = 4, .cores = 4}, segment);
    ASSERT_FALSE(error);
    std::atomic<std::uint32_t> first{0};
    std::atomic<std::uint32_t> second{0};
    const std::uint32_t at = staging::decide(segment, first, StagingKind::large, 4);
    ASSERT_GE(at, staging::first);
    EXPECT_EQ(staging::decide(segment, first, StagingKind::large, 4), at);
    staging::memory(segment, at)[4 * staging_phase_bytes(StagingKind::large, 4) - 1] = std::byte{1};
    EXPECT_NE(staging::decide(segment, second, StagingKind::small, 4), at);
    staging::give_back(segment, first, StagingKind::large, 4);
    staging::give_back(segment, second, StagingKind::small, 4);
    for (const std::atomic<std::uint64_t>& word : segment.header().staging_map) {
        EXPECT_EQ(word, 0U);
    }
    // The node has a limit, and says so.
    std::vector<std::atomic<std::uint32_t>> words(4096);
    std::size_t made = 0;
    while (staging::decide(segment, words[made], StagingKind::large, 4) != staging::refused) {
        ASSERT_LT(++made, words.size());
    }
    EXPECT_GT(made, 1U);
    EXPECT_EQ(words[made], staging::refused);
    // Wide ones leave half of it to others.
    EXPECT_EQ(staging::decide(segment, first, StagingKind::wide, 2), staging::refused);
    staging::give_back(segment, first, StagingKind::wide, 2);
    for (std::size_t k = 1; k < made; ++k) {
        staging::give_back(segment, words[k], StagingKind::large, 4);
    }
    std::size_t wide = 0;
    while (staging::decide(segment, words[1 + wide], StagingKind::wide, 2) != staging::refused) {
        ASSERT_LT(++wide + 1, words.size());
    }
    EXPECT_GT(wide, 0U);
    std::uint64_t used = 0;
    for (const std::atomic<std::uint64_t>& word : segment.header().staging_map) {
        used += static_cast<std::uint64_t>(std::popcount(word.load()));
    }
    EXPECT_LE(used, segment.header().staging_units / 2);
    for (std::size_t k = 1; k <= wide + 1; ++k) {
        staging::give_back(segment, words[k], StagingKind::wide, 2);
    }
    for (std::atomic<std::uint32_t>& word : words) {
        staging::give_back(segment, word, StagingKind::large, 4);
        EXPECT_EQ(word, staging::undecided);
    }
    for (const std::atomic<std::uint64_t>& word : segment.header().staging_map) {
        EXPECT_EQ(word, 0U);
    }
}

} // namespace
} // namespace warren::coll
