// Rank maps and groups against plain vectors, exhaustively over small cases and at random.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "mpi/comm/communicator.hpp"
#include "mpi/comm/group.hpp"

namespace warren::comm {
namespace {

using Plain = std::vector<std::uint32_t>;

struct Random {
    std::uint32_t state;
    std::uint32_t operator()(std::uint32_t limit) {
        state = state * 1664525U + 1013904223U;
        return (state >> 8) % limit;
    }
};

Plain plain(const RankMap& map) {
    Plain members;
    for (int rank = 0; rank < map.size(); ++rank) {
        members.push_back(map[rank]);
    }
    return members;
}

bool has(const Plain& members, std::uint32_t member) {
    return std::find(members.begin(), members.end(), member) != members.end();
}

// Affine with either sign, in blocks, or shuffled.
Plain random_members(Random& random) {
    const std::uint32_t size = random(9);
    Plain members;
    const std::uint32_t kind = random(4);
    if (kind == 3) {
        const std::uint32_t block = 2 + random(2);
        const std::uint32_t inner = 1 + random(2);
        const std::uint32_t outer = random(2) == 0 ? 8 : 1;
        for (std::uint32_t i = 0; i < 2 * size; ++i) {
            members.push_back(i % block * (outer == 8 ? inner : 16) + i / block * outer);
        }
        return members;
    }
    if (kind < 2) {
        const std::uint32_t stride = 1 + random(3);
        for (std::uint32_t i = 0; i < size; ++i) {
            members.push_back(random.state % 2 + i * stride);
        }
        for (std::uint32_t& member : members) {
            member = kind == 0 ? member : 40 - member;
        }
    } else {
        while (members.size() < size) {
            const std::uint32_t member = random(20);
            if (!has(members, member)) {
                members.push_back(member);
            }
        }
    }
    return members;
}

TEST(RankMap, agrees_with_a_plain_table_in_both_directions) {
    Random random{1};
    for (int round = 0; round < 5000; ++round) {
        const Plain members = random_members(random);
        const RankMap map = RankMap::of(members);
        ASSERT_EQ(plain(map), members);
        for (std::uint32_t world = 0; world < 50; ++world) {
            const auto found = std::find(members.begin(), members.end(), world);
            const int rank =
                found == members.end() ? MPI_UNDEFINED : static_cast<int>(found - members.begin());
            ASSERT_EQ(map.rank_of(world), rank);
        }
    }
}

TEST(RankMap, regular_selections_need_no_table) {
    const RankMap world = RankMap::affine(0, 1, 1000);
    EXPECT_TRUE(world.affine());
    const RankMap odd = world.select_range(1, 2, 500);
    EXPECT_TRUE(odd.affine());
    EXPECT_EQ(odd[499], 999U);
    const RankMap reversed = odd.select_range(499, -1, 500);
    EXPECT_TRUE(reversed.affine());
    EXPECT_EQ(reversed[0], 999U);
    EXPECT_EQ(reversed[499], 1U);
    EXPECT_EQ(reversed.rank_of(999), 0);
    EXPECT_EQ(reversed.rank_of(998), MPI_UNDEFINED);
    const int ranks[] = {5, 4, 3, 2};
    EXPECT_TRUE(odd.select(ranks, 4).affine());
    const int irregular[] = {5, 4, 2};
    EXPECT_FALSE(odd.select(irregular, 3).affine());
    EXPECT_EQ(world.select_range(0, 1, 1000), world);
}

TEST(Group, set_operations_agree_with_plain_vectors) {
    Random random{2};
    for (int round = 0; round < 50000; ++round) {
        const Plain a = random_members(random);
        const Plain b = random.state % 5 == 0 ? a : random_members(random);
        Plain both, either = a, only;
        for (std::uint32_t member : a) {
            (has(b, member) ? both : only).push_back(member);
        }
        for (std::uint32_t member : b) {
            if (!has(a, member)) {
                either.push_back(member);
            }
        }
        const RankMap first = RankMap::of(a);
        const RankMap second = RankMap::of(b);
        ASSERT_EQ(plain(union_of(first, second)), either);
        ASSERT_EQ(plain(intersection_of(first, second)), both);
        ASSERT_EQ(plain(difference_of(first, second)), only);
        Plain sorted_a = a, sorted_b = b;
        std::sort(sorted_a.begin(), sorted_a.end());
        std::sort(sorted_b.begin(), sorted_b.end());
        ASSERT_EQ(compare(first, second),
                  a == b ? MPI_IDENT : (sorted_a == sorted_b ? MPI_SIMILAR : MPI_UNEQUAL));
    }
}

TEST(Group, operations_on_formulas_take_no_look_at_their_members) {
    constexpr int ranks = 1 << 30;
    const RankMap world = RankMap::affine(0, 1, ranks);
    RankMap odd, even, made;
    const int odds[][3] = {{1, ranks - 1, 2}};
    for (int round = 0; round < 1000; ++round) {
        EXPECT_FALSE(include_ranges(world, 1, odds, odd));
        EXPECT_FALSE(exclude_ranges(world, 1, odds, even));
        EXPECT_EQ(odd, RankMap::affine(1, 2, ranks / 2));
        EXPECT_EQ(even, RankMap::affine(0, 2, ranks / 2));
        EXPECT_EQ(difference_of(world, odd), even);
        EXPECT_EQ(intersection_of(world, odd), odd);
        EXPECT_EQ(intersection_of(odd, RankMap::affine(ranks - 1, -3, ranks / 3)),
                  RankMap::affine(3, 6, ranks / 6 + 1));
        EXPECT_EQ(intersection_of(odd, even).size(), 0);
        EXPECT_EQ(union_of(RankMap::affine(0, 1, ranks / 2), world), world);
        const RankMap reversed = world.select_range(ranks - 1, -1, ranks);
        EXPECT_EQ(compare(world, reversed), MPI_SIMILAR);
        EXPECT_EQ(compare(odd, even), MPI_UNEQUAL);
    }
}

TEST(Group, include_and_exclude_refuse_what_is_not_there) {
    const RankMap world = RankMap::affine(0, 1, 8);
    RankMap made;
    const int good[] = {3, 1, 7};
    EXPECT_FALSE(include(world, 3, good, made));
    EXPECT_EQ(plain(made), (Plain{3, 1, 7}));
    EXPECT_FALSE(exclude(world, 3, good, made));
    EXPECT_EQ(plain(made), (Plain{0, 2, 4, 5, 6}));
    for (const std::vector<int>& bad : {std::vector<int>{8}, {-1}, {2, 2}}) {
        Error error = include(world, static_cast<int>(bad.size()), bad.data(), made);
        EXPECT_EQ(error.error_class(), MPI_ERR_RANK);
        error.drop();
        error = exclude(world, static_cast<int>(bad.size()), bad.data(), made);
        EXPECT_EQ(error.error_class(), MPI_ERR_RANK);
        error.drop();
    }
}

TEST(Group, ranges_go_up_down_and_may_be_empty) {
    const RankMap world = RankMap::affine(0, 1, 10);
    RankMap made;
    const int ranges[][3] = {{1, 5, 2}, {9, 6, -2}, {4, 3, 1}};
    EXPECT_FALSE(include_ranges(world, 3, ranges, made));
    EXPECT_EQ(plain(made), (Plain{1, 3, 5, 9, 7}));
    EXPECT_FALSE(exclude_ranges(world, 3, ranges, made));
    EXPECT_EQ(plain(made), (Plain{0, 2, 4, 6, 8}));
    const int bad[][1][3] = {{{0, 10, 1}}, {{-1, 3, 1}}, {{0, 3, 0}}};
    for (const auto& range : bad) {
        Error error = include_ranges(world, 1, range, made);
        EXPECT_TRUE(error);
        error.drop();
    }
}

TEST(Group, a_range_gives_what_its_list_gives) {
    Random random{3};
    const auto number = [&random](int low, int high) {
        return low + static_cast<int>(random(static_cast<std::uint32_t>(high - low + 1)));
    };
    for (int round = 0; round < 20000; ++round) {
        const int size = number(1, 12);
        const RankMap map = RankMap::affine(3, 2, size);
        const int range[][3] = {{number(-1, size), number(-2, size + 1), number(-3, 3)}};
        const auto [first, last, stride] = range[0];
        bool right = stride != 0 && first >= 0 && first < size;
        std::vector<int> listed;
        for (int rank = first; right && (stride > 0 ? rank <= last : rank >= last);
             rank += stride) {
            right = rank >= 0 && rank < size;
            listed.push_back(rank);
        }
        RankMap made, expected;
        for (const bool all_but : {false, true}) {
            Error error =
                all_but ? exclude_ranges(map, 1, range, made) : include_ranges(map, 1, range, made);
            ASSERT_EQ(!error, right);
            error.drop();
            if (right) {
                const int count = static_cast<int>(listed.size());
                ASSERT_FALSE(all_but ? exclude(map, count, listed.data(), expected)
                                     : include(map, count, listed.data(), expected));
                ASSERT_EQ(made, expected);
            }
        }
    }
}

TEST(Group, translation_knows_who_is_missing) {
    const RankMap a = RankMap::affine(0, 2, 4);  // 0 2 4 6
    const RankMap b = RankMap::affine(6, -3, 3); // 6 3 0
    const int ranks[] = {0, 1, MPI_PROC_NULL, 3};
    int translated[4];
    EXPECT_FALSE(translate(a, 4, ranks, b, translated));
    EXPECT_EQ(std::vector<int>(translated, translated + 4),
              (std::vector<int>{2, MPI_UNDEFINED, MPI_PROC_NULL, 0}));
    const int bad[] = {4};
    Error error = translate(a, 1, bad, b, translated);
    EXPECT_EQ(error.error_class(), MPI_ERR_RANK);
    error.drop();
}

TEST(Communicators, a_freed_handle_is_unknown_while_a_request_holds_on) {
    Communicators communicators(World::on_one_node(1, 4));
    EXPECT_EQ(communicators.find(MPI_COMM_WORLD)->rank(), 1);
    EXPECT_EQ(communicators.find(MPI_COMM_SELF)->endpoint(0), 1U);
    volatile MPI_Comm none = MPI_COMM_NULL;
    EXPECT_EQ(communicators.find(none), nullptr);
    Communicator* made = communicators.insert(16, RankMap::affine(3, -1, 3));
    ASSERT_NE(made, nullptr);
    const MPI_Comm handle = communicators.handle_of(*made);
    EXPECT_EQ(communicators.find(handle), made);
    EXPECT_EQ(made->rank(), 2);
    communicators.retain(*made);
    communicators.hide(*made);
    EXPECT_FALSE(communicators.drop(*made));
    EXPECT_EQ(communicators.find(handle), nullptr);
    EXPECT_EQ(communicators.live(), 1U);
    EXPECT_TRUE(communicators.drop(*made));
    communicators.destroy(*made);
    EXPECT_EQ(communicators.live(), 0U);
    EXPECT_EQ(communicators.insert_group(RankMap(), MPI_SESSION_NULL), MPI_GROUP_EMPTY);
}

} // namespace
} // namespace warren::comm
