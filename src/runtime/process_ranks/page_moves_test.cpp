#include "base/page.hpp"
#include "runtime/process_ranks/page_moves.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <memory>
#include <sys/mman.h>
#include <vector>

#include <gtest/gtest.h>

#include "memory/heap/numa.hpp"

namespace warren::process_ranks {
namespace {

std::byte* at(std::uintptr_t address) {
    return reinterpret_cast<std::byte*>(address);
}

TEST(WholePages, AreInOrderEachOnce) {
    EXPECT_TRUE(whole_pages({}).empty());
    EXPECT_TRUE(whole_pages({{at(5000), 0}}).empty());
    EXPECT_EQ(whole_pages({{at(5000), 1}}), (std::vector<PageRange>{{at(4096), 4096}}));
    EXPECT_EQ(whole_pages({{at(0x9fff), 2}, {at(0x5000), 0x1000}}),
              (std::vector<PageRange>{{at(0x5000), 0x1000}, {at(0x9000), 0x2000}}));
    // Ranges that touch or overlap become one.
    EXPECT_EQ(whole_pages({{at(0x8000), 0x1000}, {at(0x5000), 0x3000}}),
              (std::vector<PageRange>{{at(0x5000), 0x4000}}));
    EXPECT_EQ(whole_pages({{at(0x5000), 0x8000}, {at(0x6000), 0x1000}, {at(0xd800), 1}}),
              (std::vector<PageRange>{{at(0x5000), 0x9000}}));
}

// Four workers on two nodes, with six ranks.
class PlanOfMoves : public testing::Test {
  protected:
    PlanOfMoves() {
        for (std::uint32_t rank = 0; rank < 6; ++rank) {
            moves.own_stack(rank, stack_of(rank), 0x10000);
        }
    }
    static std::byte* stack_of(std::uint32_t rank) { return at(0x10000000 + rank * 0x100000); }

    // Who goes where.
    std::vector<std::pair<std::uint32_t, int>> due() {
        std::vector<std::pair<std::uint32_t, int>> found;
        bool later = false;
        for (const PageMoves::Move& move : moves.due(&later)) {
            found.emplace_back(move.rank, move.node);
        }
        EXPECT_FALSE(later);
        return found;
    }

    using Moves = std::vector<std::pair<std::uint32_t, int>>;
    using Workers = std::vector<std::uint32_t>;
    PageMoves moves{{.ranks = 6, .nodes = {0, 0, 3, 3}}};
    const Workers first{0, 0, 1, 1, 2, 3};
};

TEST_F(PlanOfMoves, MemoryGoesWithRanksThatChangeTheNode) {
    EXPECT_EQ(due(), Moves());
    moves.follow(first, first);
    EXPECT_EQ(due(), Moves());
    // 0 and 4 to another worker of their node, 1 and 5 to the other node.
    const Workers second{1, 2, 1, 1, 3, 0};
    moves.follow(first, second);
    EXPECT_EQ(due(), (Moves{{1, 3}, {5, 0}}));
    EXPECT_EQ(due(), Moves()); // done
    moves.follow(second, first);
    EXPECT_EQ(due(), (Moves{{1, 0}, {5, 3}}));
}

TEST_F(PlanOfMoves, TheLastPlaceCounts) {
    const Workers away{2, 2, 1, 1, 2, 3};
    moves.follow(first, away);
    moves.follow(away, first); // rank 1 is back before anything was moved
    EXPECT_EQ(due(), Moves());
    moves.follow(first, away);
    const Workers half{2, 0, 1, 1, 2, 3};
    moves.follow(away, half);
    EXPECT_EQ(due(), (Moves{{0, 3}}));
}

TEST_F(PlanOfMoves, NothingGoesToNodesThatTakeNoPages) {
    PageMoves some{{.ranks = 2, .nodes = {0, -1, 3, 4}}};
    const auto due_of_some = [&] {
        Moves found;
        bool later = false;
        for (const PageMoves::Move& move : some.due(&later)) {
            found.emplace_back(move.rank, move.node);
        }
        return found;
    };
    // Rank 1 begins on one without memory, so its pages are somewhere.
    some.follow(Workers{0, 1}, Workers{1, 1});
    EXPECT_EQ(due_of_some(), Moves());
    some.follow(Workers{1, 1}, Workers{2, 2});
    EXPECT_EQ(due_of_some(), (Moves{{0, 3}, {1, 3}}));
    some.follow(Workers{2, 2}, Workers{1, 0});
    EXPECT_EQ(due_of_some(), (Moves{{1, 0}}));
    some.refuse(3);
    some.follow(Workers{1, 0}, Workers{3, 2});
    EXPECT_EQ(due_of_some(), (Moves{{0, 4}}));
    some.follow(Workers{3, 2}, Workers{0, 3});
    EXPECT_EQ(due_of_some(), (Moves{{0, 0}, {1, 4}}));
}

TEST_F(PlanOfMoves, ItsMemoryIsItsStackAndWhereItAllocatesInTheHeap) {
    const std::uintptr_t heap = 0x7f0000000000;
    moves.heap().claim(at(heap), 100, 1);
    moves.heap().claim(at(heap + 0x1000), 0x3000, 2);
    moves.heap().claim(at(heap + 0x8000), 0x2000, 1);
    moves.heap().claim(at(heap + 0x9800), 10, 2); // the last one in that page
    moves.follow(first, Workers{0, 2, 3, 1, 2, 3});
    bool later = false;
    const std::vector<PageMoves::Move> due = moves.due(&later);
    ASSERT_EQ(due.size(), 2U);
    EXPECT_EQ(due[0].ranges,
              (std::vector<PageRange>{
                  {stack_of(1), 0x10000}, {at(heap), 0x1000}, {at(heap + 0x8000), 0x1000}}));
    EXPECT_EQ(due[1].ranges, (std::vector<PageRange>{{stack_of(2), 0x10000},
                                                     {at(heap + 0x1000), 0x3000},
                                                     {at(heap + 0x9000), 0x1000}}));
}

// On machines of one node nothing can be elsewhere; tests/machines shows the rest.
TEST(PageMoves, PagesThatAreThereOrAreNotPresentStay) {
    constexpr std::size_t bytes = 1000 * page_bytes; // of two batches
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto* first = static_cast<std::byte*>(memory);
    first[0] = std::byte{1};
    first[700 * page_bytes] = std::byte{2};
    int node = -1;
    if (!memory::nodes_of_pages(memory, 1, &node)) {
        GTEST_SKIP() << "the system doesn't tell";
    }
    const PageMoves::Move move{0, node, {{first, bytes}}};
    const PageMoves::Outcome outcome = PageMoves::carry_out({&move, 1});
    EXPECT_EQ(outcome.error, 0);
    EXPECT_EQ(outcome.moved, 0U);
    EXPECT_EQ(outcome.stayed, 0U);
    std::vector<int> nodes(1000);
    ASSERT_TRUE(memory::nodes_of_pages(memory, 1000, nodes.data()));
    EXPECT_EQ(std::count(nodes.begin(), nodes.end(), -1), 998); // none was made
    munmap(memory, bytes);
}

TEST(PageMoves, ANodeThatIsNotThereKeepsNoPagesFromOthers) {
    auto memory = std::make_unique<std::byte[]>(3 * page_bytes);
    memory[page_bytes] = std::byte{1};
    constexpr int nowhere = memory::node_limit - 1;
    int node = -1;
    if (!memory::nodes_of_pages(whole_pages({{&memory[page_bytes], 1}})[0].begin, 1, &node)) {
        GTEST_SKIP() << "the system doesn't tell";
    }
    const std::vector<PageRange> page = whole_pages({{&memory[page_bytes], 1}});
    const PageMoves::Move moves[] = {{0, nowhere, page}, {1, node, page}, {2, nowhere, page}};
    const PageMoves::Outcome outcome = PageMoves::carry_out(moves);
    EXPECT_EQ(outcome.error, 0);
    EXPECT_EQ(outcome.refused, (std::map<int, int>{{nowhere, ENODEV}}));
    EXPECT_EQ(outcome.moved, 0U);
    EXPECT_EQ(outcome.stayed, 2U);
}

} // namespace
} // namespace warren::process_ranks
