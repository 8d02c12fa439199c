#include "memory/heap/reserve.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "memory/heap/allocator.hpp"
#include "memory/heap/heap.hpp"
#include "memory/heap/heaps.hpp"
#include "memory/heap/region.hpp"

namespace warren::memory {

namespace {

constexpr unsigned shift = 21;
constexpr std::size_t page = std::size_t{1} << shift;

Kind reserved_kind() {
    Kind kind;
    kind.policy = Policy::strict;
    kind.reserved_shift = shift;
    kind.count = 1; // node 0
    return kind;
}

// More than there is, on machines with a reserve and on those without.
std::size_t too_much() {
    return (static_cast<std::size_t>(std::max<std::int64_t>(free_reserved_pages("", 0, shift), 0)) +
            2) *
           page;
}

bool all_mapped(char* begin, std::size_t bytes) {
    std::vector<unsigned char> there(bytes / page_bytes);
    return mincore(begin, bytes, there.data()) == 0; // ENOMEM: some is not mapped
}

// Systems that make pages when they are asked for have more than they tell.
bool makes_more() {
    void* mapped = mmap(nullptr, too_much(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (21 << 26), -1, 0);
    if (mapped != MAP_FAILED) {
        munmap(mapped, too_much());
    }
    return mapped != MAP_FAILED;
}

} // namespace

// A hole would be the next mmap's of anybody, and be mapped over at the next try.
TEST(Reserve, a_range_that_gets_no_pages_stays_mapped_as_it_was) {
    if (makes_more()) {
        GTEST_SKIP() << "the reserve has no end";
    }
    const Kind kind = reserved_kind();
    const std::size_t bytes = too_much();
    char* begin = map_region(bytes, page);
    ASSERT_NE(begin, nullptr);
    std::memset(begin, 7, 100);
    for (int i = 0; i < 3; ++i) {
        errno = 0;
        EXPECT_FALSE(place_reserved(kind, begin, bytes));
        EXPECT_EQ(errno, ENOMEM);
        ASSERT_TRUE(all_mapped(begin, bytes)) << "try " << i;
    }
    if (free_reserved_pages("", 0, shift) <= 0) {
        EXPECT_EQ(begin[99], 7);
    }
    displace_reserved(begin, bytes);
    EXPECT_TRUE(all_mapped(begin, bytes));
    unmap_region(begin, bytes);
}

TEST(Reserve, pages_come_to_the_range_and_go_back) {
    const std::int64_t had = free_reserved_pages("", 0, shift);
    if (had < 3) {
        GTEST_SKIP() << "3 pages of 2 MiB are to be free on node 0";
    }
    char* begin = map_region(4 * page, page);
    ASSERT_NE(begin, nullptr);
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(place_reserved(reserved_kind(), begin + page, 2 * page));
        EXPECT_EQ(free_reserved_pages("", 0, shift), had - 2);
        std::memset(begin, i + 1, 4 * page);
        EXPECT_EQ(begin[3 * page - 1], i + 1);
        const std::uint64_t returned = reserved_pages_returned();
        displace_reserved(begin + page, 2 * page);
        EXPECT_EQ(free_reserved_pages("", 0, shift), had);
        EXPECT_NE(reserved_pages_returned(), returned);
        EXPECT_TRUE(all_mapped(begin, 4 * page));
        EXPECT_EQ(begin[page - 1], i + 1);
        EXPECT_EQ(begin[page], 0);
    }
    unmap_region(begin, 4 * page);
}

// Who can't get pages asks again only when some may have come back.
TEST(Reserve, an_empty_one_is_not_asked_for_each_block) {
    if (makes_more()) {
        GTEST_SKIP() << "the reserve has no end";
    }
    Heap* heap = heap_of_kind(reserved_kind());
    ASSERT_NE(heap, nullptr);
    const std::size_t bytes = too_much();
    EXPECT_EQ(allocate(*heap, bytes), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    heap->remember_refusal(bytes, reserved_pages_returned()); // from now on
    EXPECT_TRUE(heap->was_refused(bytes));
    EXPECT_FALSE(heap->was_refused(bytes - page));
    EXPECT_EQ(allocate(*heap, bytes), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    displace_reserved(mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), page);
    EXPECT_FALSE(heap->was_refused(bytes));
}

} // namespace warren::memory
