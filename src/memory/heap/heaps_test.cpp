#include "memory/heap/heaps.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <gtest/gtest.h>
#include <iterator>
#include <set>
#include <vector>

#include "memory/heap/allocator.hpp"
#include "memory/heap/size_class.hpp"
#include "memory/heap/test_heaps.hpp"

namespace warren::memory {
namespace {

TEST(SizeClasses, each_size_gets_the_smallest_class_that_holds_it) {
    for (std::size_t bytes = 1; bytes <= class_size_limit; ++bytes) {
        const unsigned own = class_of(bytes);
        ASSERT_GE(size_classes[own].bytes, bytes);
        if (own > 0) {
            ASSERT_LT(size_classes[own - 1].bytes, bytes);
        }
    }
    EXPECT_EQ(class_of(0), 0U);
}

TEST(SizeClasses, spans_hold_blocks_and_waste_little) {
    for (const SizeClass& sizes : size_classes) {
        ASSERT_GE(sizes.blocks, 1U);
        ASSERT_LE(std::size_t{sizes.blocks} * sizes.bytes, sizes.pages * page_bytes);
        EXPECT_GE(16 * sizes.blocks * sizes.bytes, 15 * sizes.pages * page_bytes) << sizes.bytes;
    }
}

TEST(Heaps, equal_kinds_share_one) {
    const Kind kind = kind_of_machine();
    EXPECT_EQ(heap_of_kind(kind), heap_of_kind(kind));
    EXPECT_NE(heap_of_kind(kind), heap_of_kind(kind_of_machine(Policy::strict)));
}

TEST(Heaps, orderings_of_many_memories_have_each_their_own) {
    // All orders of a few, with nodes behind the first that are not there.
    std::vector<Heap*> made;
    std::int16_t others[] = {1001, 1002, 1003, 1004, 1005, 1006};
    do {
        Kind kind = kind_of_machine();
        kind.count = kind.equals = 1;
        for (const std::int16_t other : others) {
            kind.targets[kind.count++] = other;
        }
        made.push_back(heap_of_kind(kind));
        ASSERT_NE(made.back(), nullptr) << made.size();
    } while (std::next_permutation(std::begin(others), std::end(others)));
    EXPECT_EQ(std::set<Heap*>(made.begin(), made.end()).size(), 720U);
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < made.size(); i += 90) {
        blocks.push_back(allocate(*made[i], 100));
        EXPECT_EQ(heap_of(blocks.back()), made[i]);
    }
    for (void* block : blocks) {
        deallocate(block);
    }
}

TEST(Heaps, kinds_that_make_no_sense_are_refused) {
    const auto refused = [](const Kind& kind) {
        errno = 0;
        return heap_of_kind(kind) == nullptr && errno == EINVAL;
    };
    Kind kind = kind_of_machine();
    kind.count = 0;
    EXPECT_TRUE(refused(kind));
    kind = kind_of_machine();
    kind.equals = 0;
    EXPECT_TRUE(refused(kind));
    kind = kind_of_machine();
    kind.targets[0] = -1;
    EXPECT_TRUE(refused(kind));
    kind.targets[0] = node_limit;
    EXPECT_TRUE(refused(kind));
    kind = {};
    kind.count = 1;
    kind.targets[0] = node_limit - 1; // no machine of ours has it
    EXPECT_TRUE(refused(kind));
}

} // namespace
} // namespace warren::memory
