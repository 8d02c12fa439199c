// Rank maps against plain tables: every kind, their compositions, reverse look-ups.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "mpi.h"
#include "mpi/comm/rank_map.hpp"

namespace warren::comm {
namespace {

using Plain = std::vector<Process>;
using Kind = RankMap::Kind;

class Random {
  public:
    explicit Random(std::uint32_t seed) : engine_(seed) {}
    int operator()(int low, int high) {
        return low + static_cast<int>(engine_() % static_cast<std::uint32_t>(high - low + 1));
    }
    template <typename Iterator>
    void shuffle(Iterator begin, Iterator end) {
        std::shuffle(begin, end, engine_);
    }

  private:
    std::mt19937 engine_;
};

Plain plain(const RankMap& map) {
    Plain processes;
    for (int rank = 0; rank < map.size(); ++rank) {
        processes.push_back(map.process(rank));
    }
    return processes;
}

// An array of up to four dimensions, walked in any order of its axes and either direction, of which
// only a part may be listed.
std::vector<int> array_walk(Random& random, int limit) {
    const int dimensions = random(1, 4);
    std::vector<int> extent, stride;
    int span = 1;
    for (int k = 0; k < dimensions; ++k) {
        extent.push_back(random(1, 5));
        span *= random(1, 3) == 1 ? random(1, 3) : 1; // a gap
        stride.push_back(span);
        span *= extent.back();
    }
    std::vector<int> axis;
    for (int k = 0; k < dimensions; ++k) {
        axis.push_back(k);
    }
    random.shuffle(axis.begin(), axis.end());
    std::vector<bool> down;
    for (int k = 0; k < dimensions; ++k) {
        down.push_back(random(0, 3) == 0);
    }
    int count = 1;
    for (int e : extent) {
        count *= e;
    }
    std::vector<int> values;
    for (int i = 0; i < count; ++i) {
        int rest = i;
        int value = 0;
        for (int k : axis) {
            const int digit = rest % extent[k];
            rest /= extent[k];
            value += stride[k] * (down[k] ? extent[k] - 1 - digit : digit);
        }
        values.push_back(value);
    }
    const int cut = random(0, 2) == 0 ? random(0, count) : count;
    values.resize(static_cast<std::size_t>(cut));
    const int highest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
    if (highest >= limit) {
        return {};
    }
    const int offset = random(0, 1) * random(0, limit - 1 - highest);
    for (int& value : values) {
        value += offset;
    }
    return values;
}

// Distinct numbers below `limit`: regular, nearly regular or shuffled.
std::vector<int> sequence(Random& random, int limit) {
    std::vector<int> values;
    switch (random(0, 3)) {
    case 0:
    case 1:
        values = array_walk(random, limit);
        break;
    case 2: // with two exchanged
        values = array_walk(random, limit);
        if (values.size() > 1) {
            const int last = static_cast<int>(values.size()) - 1;
            std::swap(values[random(0, last)], values[random(0, last)]);
        }
        break;
    default:
        for (int value = 0; value < limit; ++value) {
            values.push_back(value);
        }
        random.shuffle(values.begin(), values.end());
        values.resize(static_cast<std::size_t>(random(0, limit)));
    }
    return values;
}

RankMap map_of(const std::vector<int>& values) {
    return RankMap::of(std::vector<std::uint32_t>(values.begin(), values.end()));
}

void check(const RankMap& map, const Plain& expected, int beyond) {
    ASSERT_EQ(map.size(), static_cast<int>(expected.size()));
    ASSERT_EQ(plain(map), expected);
    for (int rank = 0; rank < map.size(); ++rank) {
        ASSERT_EQ(map[rank], world_rank_of(expected[rank]));
        ASSERT_EQ(map.find(expected[rank]), rank);
        ASSERT_EQ(map.rank_of(expected[rank]), rank);
    }
    const std::set<Process> members(expected.begin(), expected.end());
    for (int value = 0; value < beyond; ++value) {
        for (std::uint32_t world : {0U, 1U, 7U}) {
            const Process process = process_of(world, static_cast<std::uint32_t>(value));
            if (members.count(process) == 0) {
                ASSERT_EQ(map.rank_of(process), MPI_UNDEFINED);
                ASSERT_EQ(map.find(process), MPI_UNDEFINED);
            }
        }
    }
}

TEST(RankMap, agrees_with_a_plain_table) {
    Random random(1);
    int kinds[4] = {};
    for (int round = 0; round < 4000; ++round) {
        const std::vector<int> values = sequence(random, 300);
        const RankMap map = map_of(values);
        check(map, Plain(values.begin(), values.end()), 310);
        ++kinds[map.kind() == Kind::nested ? 3 : static_cast<int>(map.kind())];
        if (HasFatalFailure()) {
            return;
        }
    }
    for (int seen : kinds) {
        EXPECT_GT(seen, 100);
    }
}

TEST(RankMap, every_walk_through_an_array_needs_no_table) {
    Random random(2);
    for (int round = 0; round < 4000; ++round) {
        EXPECT_TRUE(map_of(array_walk(random, 2000)).regular());
    }
}

TEST(RankMap, compositions_are_those_of_plain_tables_and_in_normal_form) {
    Random random(3);
    int formulas = 0;
    for (int round = 0; round < 3000; ++round) {
        RankMap map = map_of(sequence(random, 400));
        Plain expected = plain(map);
        for (int generation = 0; generation < 4 && map.size() > 0; ++generation) {
            const std::vector<int> child = sequence(random, map.size());
            const bool through_map = random(0, 1) == 0;
            map = through_map ? map.select(map_of(child))
                              : map.select(child.data(), static_cast<int>(child.size()));
            Plain selected;
            for (int rank : child) {
                selected.push_back(expected[static_cast<std::size_t>(rank)]);
            }
            expected = selected;
            ASSERT_EQ(plain(map), expected);
            const RankMap detected = RankMap::of_processes(expected);
            ASSERT_EQ(map, detected);
            ASSERT_EQ(detected, map);
            ASSERT_EQ(map.kind(), detected.kind());
            formulas += map.regular() ? 1 : 0;
        }
        check(map, expected, 410);
        if (HasFatalFailure()) {
            return;
        }
    }
    EXPECT_GT(formulas, 1000);
}

// The formula must be found without looking at ranks: what takes too long if it is not.
TEST(RankMap, formulas_compose_at_any_size) {
    constexpr int ranks = 1 << 30;
    const RankMap world = RankMap::affine(0, 1, ranks);
    RankMap map = world;
    for (int round = 0; round < 1000; ++round) {
        map = world.select_range(ranks - 1, -1, ranks);       // reversed
        map = map.select_range(1, 2, ranks / 2);              // odd
        map = map.select_range(ranks / 4, 1, ranks / 4);      // upper half
        map = map.select_range(ranks / 4 - 1, -1, ranks / 4); // reversed
    }
    EXPECT_EQ(map.size(), ranks / 4);
    EXPECT_EQ(map[0], 0U);
    EXPECT_EQ(map[1], 2U);

    RankForm planes; // 16 of every 64, 1024 of every 2048 of them
    planes = RankForm::affine(5, 1, 1 << 24);
    planes.levels = 2;
    planes.level[0] = {16, 64 - 16};
    planes.level[1] = {1 << 14, 1 << 16};
    ASSERT_TRUE(planes.normalise());
    const RankMap array = RankMap::of(planes);
    for (int round = 0; round < 1000; ++round) {
        // Every fourth of each block, then whole planes, then columns.
        const RankMap comb = array.select_range(2, 4, 1 << 22);
        ASSERT_EQ(comb.kind(), Kind::nested);
        ASSERT_EQ(comb[5], array[2 + 20]);
        const RankMap few = comb.select_range(1 << 12, 1, 1 << 13);
        ASSERT_EQ(few[4097], comb[4096 + 4097]);
        const RankMap column = comb.select_range(3, 4, 1 << 20);
        ASSERT_EQ(column[777], array[2 + 12 + 16 * 777]);
        ASSERT_EQ(column.rank_of(column[777777]), 777777);
    }
}

TEST(RankMap, table_ii_of_the_source_is_the_floor) {
    const RankMap direct = RankMap::affine(0, 1, 96);
    const RankMap offset = RankMap::affine(10, 1, 96);
    const RankMap stride = RankMap::affine(3, 5, 96);
    for (const RankMap& parent : {direct, offset, stride}) {
        for (const RankMap& child : {RankMap::affine(0, 1, 48), RankMap::affine(7, 1, 48),
                                     RankMap::affine(1, 2, 48), RankMap::affine(95, -2, 48)}) {
            EXPECT_TRUE(parent.select(child).affine());
        }
    }
    std::vector<std::uint32_t> shuffled(1000);
    for (std::uint32_t i = 0; i < 1000; ++i) {
        shuffled[i] = i * 387 % 1009 % 1000 == i ? i : i * 387 % 1009;
    }
    const RankMap table = RankMap::of(shuffled);
    ASSERT_FALSE(table.regular());
    // A table's children share it, strided ones too; small ones don't keep it.
    EXPECT_EQ(table.select_range(0, 1, 1000).table(), table.table());
    EXPECT_EQ(table.select_range(0, 1, 900).table(), table.table());
    EXPECT_EQ(table.select_range(100, 1, 900).table(), table.table());
    EXPECT_EQ(table.select_range(1, 2, 500).table(), table.table());
    EXPECT_NE(table.select_range(1, 100, 10).table(), table.table());
    const RankMap odd = table.select_range(1, 2, 500);
    for (int rank = 0; rank < 500; ++rank) {
        ASSERT_EQ(odd[rank], shuffled[static_cast<std::size_t>(2 * rank + 1)]);
        ASSERT_EQ(odd.rank_of(odd[rank]), rank);
        ASSERT_EQ(odd.rank_of(table[2 * rank]), MPI_UNDEFINED);
    }
    // The inverse of a shuffle makes a formula again.
    std::vector<int> back(1000);
    for (int rank = 0; rank < 1000; ++rank) {
        const int at = table.rank_of(static_cast<Process>(rank));
        back[static_cast<std::size_t>(rank)] = at;
        if (at == MPI_UNDEFINED) {
            back.resize(static_cast<std::size_t>(rank));
            break;
        }
    }
    EXPECT_TRUE(table.select(back.data(), static_cast<int>(back.size())).affine());
}

TEST(RankMap, several_worlds_are_formulas_or_wide_tables) {
    const auto world = [](std::uint32_t number, int first, int count) {
        Plain processes;
        for (int rank = first; rank < first + count; ++rank) {
            processes.push_back(process_of(number, static_cast<std::uint32_t>(rank)));
        }
        return processes;
    };
    // One world that is not ours.
    Plain other = world(7, 3, 50);
    RankMap map = RankMap::of_processes(other);
    EXPECT_TRUE(map.affine());
    check(map, other, 60);
    std::swap(other[10], other[20]);
    map = RankMap::of_processes(other);
    EXPECT_EQ(map.table()->width(), 1U); // the world is not in the entries
    check(map, other, 60);

    // Two worlds one behind the other, as an intercommunicator is merged.
    Plain merged = world(0, 0, 40);
    for (Process process : world(1, 0, 40)) {
        merged.push_back(process);
    }
    map = RankMap::of_processes(merged);
    EXPECT_EQ(map.kind(), Kind::block);
    check(map, merged, 50);
    EXPECT_EQ(map.select_range(40, 1, 40), RankMap::affine(process_of(1, 0), 1, 40));

    std::mt19937 engine(5);
    std::shuffle(merged.begin(), merged.end(), engine);
    map = RankMap::of_processes(merged);
    EXPECT_EQ(map.table()->width(), 5U);
    check(map, merged, 50);
}

TEST(RankMap, entries_take_as_many_bytes_as_they_need) {
    const struct {
        Process largest;
        std::uint32_t width;
    } cases[] = {{255, 1}, {256, 2}, {65535, 2}, {65536, 3}, {0xffffff, 3}, {0x1000000, 4}};
    for (const auto& [largest, width] : cases) {
        const Plain processes = {3, 1, 2, 9, largest};
        const RankMap map = RankMap::of_processes(processes);
        ASSERT_NE(map.table(), nullptr);
        EXPECT_EQ(map.table()->width(), width);
        check(map, processes, 20);
    }
}

TEST(RankForm, detection_stops_at_the_first_that_does_not_fit) {
    const std::vector<int> values = {5, 6, 7, 20, 21, 22, 36, 1, 2, 3};
    int seen = 0;
    RankForm form;
    EXPECT_FALSE(RankForm::detect(
        10,
        [&](int rank) {
            seen = std::max(seen, rank);
            return static_cast<Process>(values[static_cast<std::size_t>(rank)]);
        },
        form));
    EXPECT_EQ(seen, 7);
}

TEST(RankForm, equal_sets_have_equal_sorted_forms) {
    Random random(6);
    int compared = 0;
    for (int round = 0; round < 5000; ++round) {
        const std::vector<int> a = array_walk(random, 1000);
        const RankMap first = map_of(a);
        RankForm set;
        if (first.form().sorted(set)) {
            std::vector<int> ascending = a;
            std::sort(ascending.begin(), ascending.end());
            ASSERT_EQ(set, map_of(ascending).form());
            ++compared;
        }
    }
    EXPECT_GT(compared, 1000);
}

} // namespace
} // namespace warren::comm
