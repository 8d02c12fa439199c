// Where pages are, as the kernel says it: of any memory, also such as may not be touched.
#include "memory/heap/numa.hpp"

#include <algorithm>
#include <cerrno>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <vector>

namespace warren::memory {
namespace {

class Pages : public testing::Test {
  protected:
    static constexpr std::size_t count = 1024;

    void SetUp() override {
        begin_ = static_cast<char*>(mmap(nullptr, count * page_bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ASSERT_NE(begin_, MAP_FAILED);
        madvise(begin_, count * page_bytes, MADV_NOHUGEPAGE);
        int node = 0;
        char here = 0;
        if (!await_nodes_of_pages(&here - reinterpret_cast<std::uintptr_t>(&here) % page_bytes, 1,
                                  &node)) {
            GTEST_SKIP() << "the kernel does not say where pages are";
        }
    }
    void TearDown() override { munmap(begin_, count * page_bytes); }

    std::vector<int> nodes() const {
        std::vector<int> nodes(count, -2);
        errno = 77;
        EXPECT_TRUE(await_nodes_of_pages(begin_, count, nodes.data()));
        EXPECT_EQ(errno, 77);
        return nodes;
    }
    // The number of pages that are in memory.
    std::ptrdiff_t in_memory() const {
        std::vector<unsigned char> there(count);
        EXPECT_EQ(mincore(begin_, count * page_bytes, there.data()), 0);
        return std::count_if(there.begin(), there.end(),
                             [](unsigned char page) { return (page & 1) != 0; });
    }

    char* begin_ = nullptr;
};

TEST_F(Pages, that_are_not_there_are_nowhere_and_not_brought_in) {
    const std::vector<int> none(count, -1);
    EXPECT_EQ(nodes(), none);
    EXPECT_EQ(in_memory(), 0);
}

TEST_F(Pages, among_others_that_are_not_there_are_found) {
    for (std::size_t page = 0; page < count; page += 3) {
        begin_[page * page_bytes] = 1;
    }
    const std::vector<int> found = nodes();
    for (std::size_t page = 0; page < count; ++page) {
        EXPECT_EQ(found[page] >= 0, page % 3 == 0) << page;
    }
    EXPECT_EQ(in_memory(), (count + 2) / 3);
}

TEST_F(Pages, that_may_not_be_touched_are_found) {
    begin_[0] = begin_[600 * page_bytes] = 1;
    ASSERT_EQ(mprotect(begin_, count * page_bytes, PROT_NONE), 0);
    const std::vector<int> found = nodes();
    EXPECT_GE(found[0], 0);
    EXPECT_GE(found[600], 0);
    EXPECT_EQ(std::count(found.begin(), found.end(), -1), static_cast<std::ptrdiff_t>(count) - 2);
}

TEST_F(Pages, of_zeros_are_on_no_node) {
    for (std::size_t page = 0; page < count; ++page) {
        EXPECT_EQ(*const_cast<volatile char*>(begin_ + page * page_bytes), 0);
    }
    EXPECT_EQ(nodes(), std::vector<int>(count, -1));
}

TEST_F(Pages, beside_a_hole_are_found) {
    begin_[0] = begin_[(count - 1) * page_bytes] = 1;
    ASSERT_EQ(munmap(begin_ + 10 * page_bytes, 100 * page_bytes), 0);
    const std::vector<int> found = nodes();
    EXPECT_GE(found.front(), 0);
    EXPECT_GE(found.back(), 0);
    EXPECT_EQ(std::count(found.begin(), found.end(), -1), static_cast<std::ptrdiff_t>(count) - 2);
}

} // namespace
} // namespace warren::memory
