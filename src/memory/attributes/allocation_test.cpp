#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <memory_resource>
#include <string>
#include <thread>
#include <vector>

#include "memory/attributes/targets.hpp"
#include "memory/heap/allocator.hpp"
#include "memory/heap/reserve.hpp"
#include "topology/mapping.hpp"
#include "warren/memory.h"
#include "warren/memory.hpp"

namespace {

warren_mem_criteria* parsed(const char* text) {
    warren_mem_criteria* criteria = nullptr;
    EXPECT_EQ(warren_mem_criteria_parse(text, &criteria), WARREN_MEM_SUCCESS) << warren_mem_error();
    return criteria;
}

// The best targets under the criteria, of this machine.
std::vector<unsigned> ordering(const warren_mem_criteria* criteria) {
    std::size_t count = 0;
    EXPECT_EQ(warren_mem_get_ordering(nullptr, criteria, 0, nullptr, nullptr, &count), 0);
    std::vector<unsigned> nodes(count);
    EXPECT_EQ(warren_mem_get_ordering(nullptr, criteria, count, nodes.data(), nullptr, &count), 0);
    return nodes;
}

TEST(Allocation, blocks_are_on_the_best_target) {
    for (const char* text : {"", "bandwidth", "latency~20%,capacity full=strict",
                             "capacity full=interleave", "latency page=4k", "bandwidth page=2M"}) {
        warren_mem_criteria* criteria = parsed(text);
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, std::size_t{3'000'000}}) {
            void* block = warren_mem_alloc(bytes, criteria);
            ASSERT_NE(block, nullptr) << warren_mem_error();
            std::memset(block, 1, bytes);
            EXPECT_GE(warren_mem_usable_size(block), bytes);
            std::vector<int> nodes(2000, -2);
            std::size_t count = 0;
            if (bytes > 0 &&
                warren_mem_where(block, bytes, nodes.size(), nodes.data(), &count) == 0) {
                ASSERT_LE(count, nodes.size());
                const auto best = ordering(criteria);
                for (std::size_t i = 0; i < count; ++i) {
                    EXPECT_EQ(nodes[i], static_cast<int>(best[0])) << text;
                }
            }
            warren_mem_free(block);
        }
        warren_mem_criteria_free(criteria);
    }
}

TEST(Allocation, criteria_that_change_lead_elsewhere) {
    warren_mem_criteria* criteria = parsed("latency");
    void* one = warren_mem_alloc(100, criteria);
    ASSERT_EQ(warren_mem_criteria_set_policy(criteria, WARREN_MEM_STRICT), WARREN_MEM_SUCCESS);
    void* other = warren_mem_alloc(100, criteria);
    EXPECT_NE(warren::memory::heap_of(one), warren::memory::heap_of(other));
    ASSERT_EQ(warren_mem_criteria_set_policy(criteria, WARREN_MEM_NEXT), WARREN_MEM_SUCCESS);
    void* again = warren_mem_alloc(100, criteria);
    EXPECT_EQ(warren::memory::heap_of(one), warren::memory::heap_of(again));
    for (void* block : {one, other, again}) {
        warren_mem_free(block);
    }
    warren_mem_criteria_free(criteria);
}

TEST(Allocation, failures_are_told) {
    const auto failed = [](void* block, int number, const char* words) {
        const bool as_expected = block == nullptr && errno == number &&
                                 std::strstr(warren_mem_error(), words) != nullptr;
        EXPECT_TRUE(as_expected) << errno << " " << warren_mem_error();
    };
    warren_mem_criteria* criteria = parsed("latency full=strict");
    failed(warren_mem_alloc(std::size_t{1} << 46, criteria), ENOMEM, "do not fit node");
    failed(warren_mem_alloc(SIZE_MAX, nullptr), ENOMEM, "do not fit any of the nodes");
    failed(warren_mem_alloc_aligned(48, 10, criteria), EINVAL, "alignment = 48 is no power of two");
    failed(warren_mem_alloc_aligned(0, 10, criteria), EINVAL, "alignment = 0");
    int variable = 0;
    failed(warren_mem_realloc(&variable, 10, criteria), EINVAL, "is no block");
    failed(warren_mem_move(&variable, criteria), EINVAL, "is no block");
    failed(warren_mem_move(nullptr, criteria), EINVAL, "is no block");
    warren_mem_criteria_free(criteria);
    criteria = parsed("page=1G");
    failed(warren_mem_alloc(10, criteria), EINVAL, "page=1G: pages are of the default size");
    warren_mem_criteria_free(criteria);
    criteria = parsed("page=hugetlb:8k");
    failed(warren_mem_alloc(10, criteria), EINVAL, "no pages of that size");
    warren_mem_criteria_free(criteria);
    criteria = parsed("no_such_attribute");
    EXPECT_EQ(warren_mem_alloc(10, criteria), nullptr);
    warren_mem_criteria_free(criteria);
    EXPECT_EQ(warren_mem_where(nullptr, 10, 0, nullptr, nullptr), WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_where(&variable, 0, 0, nullptr, nullptr), WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_where(&variable, SIZE_MAX - 100, 0, nullptr, nullptr), WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_where(&variable, 4, 1, nullptr, nullptr), WARREN_MEM_ERR_ARG);
    std::size_t count = 0;
    EXPECT_EQ(warren_mem_where(&variable, 10'000, 0, nullptr, &count), WARREN_MEM_SUCCESS);
    EXPECT_GE(count, 3U);
    warren_mem_free(nullptr);
    EXPECT_EQ(warren_mem_usable_size(&variable), 0U);
}

// Machines of the tests have such pages; here there may be none, and the reason is said.
TEST(Allocation, reserved_pages_are_had_or_refused_with_the_reason) {
    warren_mem_criteria* criteria = parsed("latency page=hugetlb:2M");
    const auto reserve = warren::memory::look_at_reserve("", 21);
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{3'000'000}}) {
        errno = 0;
        void* block = warren_mem_alloc(bytes, criteria);
        if (block != nullptr) {
            EXPECT_EQ(reserve, warren::memory::Reserve::there);
            std::memset(block, 1, bytes);
            warren_mem_free(block);
        } else if (reserve == warren::memory::Reserve::none) {
            EXPECT_EQ(errno, ENOMEM);
            EXPECT_NE(std::strstr(warren_mem_error(), "no such pages in reserve"), nullptr);
        } else {
            EXPECT_NE(std::string(warren_mem_error()), "");
        }
    }
    warren_mem_criteria_free(criteria);
}

#ifndef __SANITIZE_THREAD__
// The launcher was told to describe another machine.
void use_another_machine() {
    warren_topology* other = nullptr;
    int file = -1;
    std::size_t bytes = 0;
    if (warren_topology_open("synthetic:package:2 [numa(memory=1GB)] core:2 pu:1", &other,
                             nullptr) != 0 ||
        warren::topology::make_image_file(file)) {
        std::exit(1);
    }
    const auto* image = static_cast<const std::byte*>(warren_topology_image(other, &bytes));
    if (warren::topology::fill_image_file(file, {image, bytes})) {
        std::exit(2);
    }
    setenv("WARREN_TOPOLOGY", std::to_string(file).c_str(), 1);
    std::uint64_t value = 0;
    if (warren_mem_get_value(nullptr, WARREN_MEM_CAPACITY, "core:3", 1, &value, nullptr) != 0 ||
        value < 1'000'000'000) {
        std::exit(3);
    }
    warren_mem_criteria* criteria = parsed("capacity from=core:3");
    for (const warren_mem_criteria* each : {static_cast<warren_mem_criteria*>(nullptr), criteria}) {
        if (warren_mem_alloc(100, each) != nullptr || errno != EINVAL) {
            std::exit(4);
        }
    }
    std::fprintf(stderr, "%s\n", warren_mem_error());
    std::exit(0);
}

TEST(AllocationDeathTest, of_another_machine_values_can_be_asked_and_memory_not_be_had) {
    GTEST_FLAG_SET(death_test_style, "threadsafe"); // this node has not been asked about there
    EXPECT_EXIT(use_another_machine(), testing::ExitedWithCode(0), "describes another machine");
}
#endif

TEST(Allocation, realloc_and_move_keep_contents) {
    warren_mem_criteria* strict = parsed("latency full=strict");
    auto* text = static_cast<char*>(warren_mem_realloc(nullptr, 10, strict));
    std::strcpy(text, "contents");
    text = static_cast<char*>(warren_mem_realloc(text, 5'000'000, nullptr));
    EXPECT_STREQ(text, "contents");
    EXPECT_EQ(warren_mem_move(text, nullptr), text);
    text = static_cast<char*>(warren_mem_realloc(text, 20, nullptr));
    text = static_cast<char*>(warren_mem_move(text, strict));
    EXPECT_STREQ(text, "contents");
    warren_mem_free(text);
    warren_mem_trim();
    warren_mem_criteria_free(strict);
}

TEST(Allocation, threads_use_criteria_at_once) {
    warren_mem_criteria* criteria = parsed("bandwidth,capacity");
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([=] {
            for (std::size_t i = 1; i < 2000; ++i) {
                auto* block = static_cast<char*>(warren_mem_alloc(i * 10, criteria));
                ASSERT_NE(block, nullptr);
                block[0] = block[i * 10 - 1] = 1;
                warren_mem_free(block);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    warren_mem_criteria_free(criteria);
}

TEST(Containers, pmr_and_standard_allocators_take_memory_by_attribute) {
    warren::MemoryResource fast("bandwidth");
    warren::MemoryResource near("latency");
    EXPECT_EQ(fast, near); // what one has allocated the other may free
    EXPECT_NE(fast, *std::pmr::new_delete_resource());
    std::pmr::vector<std::pmr::string> words(&fast);
    for (int i = 0; i < 1000; ++i) {
        words.emplace_back("a sentence that is too long for a small string");
    }
    EXPECT_NE(warren_mem_usable_size(words.data()), 0U);
    EXPECT_NE(warren_mem_usable_size(words[999].data()), 0U);

    std::vector<double, warren::Allocator<double>> numbers(1000, 1.5, "latency");
    EXPECT_NE(warren_mem_usable_size(numbers.data()), 0U);
    auto copy = numbers;
    numbers = std::vector<double, warren::Allocator<double>>(10, 2.5, "bandwidth");
    EXPECT_EQ(copy[999], 1.5);
    EXPECT_EQ(numbers.size(), 10U);
    EXPECT_THROW(numbers.reserve(std::size_t{1} << 45), std::bad_alloc);
    EXPECT_THROW(warren::Criteria("no=sense"), warren::MemoryError);
    try {
        warren::Criteria("full=perhaps");
    } catch (const warren::MemoryError& error) {
        EXPECT_EQ(error.code(), WARREN_MEM_ERR_ARG);
        EXPECT_NE(std::string(error.what()), "");
    }
    void* aligned = fast.allocate(100, 4096);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 4096, 0U);
    fast.deallocate(aligned, 100, 4096);
}

} // namespace
