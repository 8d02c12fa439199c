#include "memory/heap/allocator.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <iterator>
#include <mutex>
#include <random>
#include <set>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "memory/heap/heaps.hpp"
#include "memory/heap/numa.hpp"
#include "memory/heap/size_class.hpp"
#include "memory/heap/test_filling.hpp"
#include "memory/heap/test_heaps.hpp"
#include "memory/heap/thread_cache.hpp"

namespace warren::memory {
namespace {

TEST(Allocator, blocks_of_all_sizes_hold_what_is_written) {
    Heap& own = heap();
    std::vector<std::pair<unsigned char*, std::size_t>> blocks;
    for (std::size_t bytes = 0; bytes < 5'000'000; bytes = bytes * 5 / 4 + 1) {
        auto* block = static_cast<unsigned char*>(allocate(own, bytes));
        ASSERT_NE(block, nullptr) << bytes;
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0U);
        ASSERT_GE(usable_bytes(block), bytes);
        const std::size_t usable = usable_bytes(block);
        std::memset(block, static_cast<int>(blocks.size()), usable);
        blocks.emplace_back(block, usable);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const auto [block, bytes] = blocks[i];
        for (std::size_t at = 0; at < bytes; at += 97) {
            ASSERT_EQ(block[at], static_cast<unsigned char>(i));
        }
        ASSERT_EQ(block[bytes - 1], static_cast<unsigned char>(i));
        EXPECT_EQ(heap_of(block), &own);
        deallocate(block);
    }
}

TEST(Allocator, no_block_is_handed_out_twice) {
    Heap& own = heap();
    for (const std::size_t bytes : {16U, 48U, 1000U, 20'000U, 300'000U}) {
        std::set<char*> blocks;
        const std::size_t count = bytes > 1000 ? 100 : 5000;
        for (std::size_t i = 0; i < count; ++i) {
            auto* block = static_cast<char*>(allocate(own, bytes));
            const auto [at, fresh] = blocks.insert(block);
            ASSERT_TRUE(fresh);
            if (at != blocks.begin()) {
                ASSERT_LE(*std::prev(at) + bytes, block);
            }
            if (std::next(at) != blocks.end()) {
                ASSERT_LE(block + bytes, *std::next(at));
            }
        }
        for (char* block : blocks) {
            deallocate(block);
        }
    }
}

TEST(Allocator, alignments_are_kept) {
    Heap& own = heap();
    for (std::size_t alignment = 1; alignment <= 16U << 20; alignment *= 2) {
        for (const std::size_t bytes :
             {std::size_t{0}, std::size_t{1}, std::size_t{24}, std::size_t{100}, std::size_t{5000},
              std::size_t{70'000}, std::size_t{2'000'000}}) {
            void* block = allocate_aligned(own, alignment, bytes);
            ASSERT_NE(block, nullptr);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U)
                << alignment << " " << bytes;
            EXPECT_GE(usable_bytes(block), bytes);
            std::memset(block, 1, bytes);
            deallocate(block);
        }
    }
    for (const std::size_t wrong : {0U, 3U, 48U}) {
        errno = 0;
        EXPECT_EQ(allocate_aligned(own, wrong, 100), nullptr);
        EXPECT_EQ(errno, EINVAL);
    }
}

TEST(Allocator, sizes_that_no_machine_has_are_refused) {
    Heap& own = heap();
    for (const std::size_t bytes :
         {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2, SIZE_MAX / 2 - 4096, std::size_t{1} << 50}) {
        errno = 0;
        EXPECT_EQ(allocate(own, bytes), nullptr);
        EXPECT_EQ(errno, ENOMEM);
        EXPECT_EQ(allocate_aligned(own, 64, bytes), nullptr);
        void* block = allocate(own, 100);
        EXPECT_EQ(reallocate(block, bytes), nullptr);
        deallocate(block);
    }
    EXPECT_EQ(allocate_aligned(own, std::size_t{1} << 63, 8), nullptr);
}

TEST(Allocator, reallocate_keeps_the_contents_and_the_heap) {
    Heap& own = heap(Policy::strict);
    auto* block = static_cast<unsigned char*>(allocate(own, 1));
    block[0] = 0;
    std::size_t old = 1;
    for (const std::size_t bytes :
         {10U, 100U, 90U, 5000U, 200'000U, 3'000'000U, 9'000'000U, 2'000'000U, 400'000U, 64U, 0U}) {
        block = static_cast<unsigned char*>(reallocate(block, bytes));
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(heap_of(block), &own);
        EXPECT_GE(usable_bytes(block), bytes);
        for (std::size_t i = 0; i < std::min(old, bytes); i += 7) {
            ASSERT_EQ(block[i], static_cast<unsigned char>(i * 31)) << bytes;
        }
        for (std::size_t i = 0; i < bytes; ++i) {
            block[i] = static_cast<unsigned char>(i * 31);
        }
        old = bytes;
    }
    deallocate(block);
}

TEST(Allocator, pages_are_present_and_on_the_targets) {
    for (const Policy policy : {Policy::next, Policy::strict, Policy::interleave}) {
        for (const PageSize page_size : {PageSize::any, PageSize::small, PageSize::huge}) {
            Heap& own = heap(policy, page_size);
            for (const std::size_t bytes : {100U, 300'000U, 5'000'000U}) {
                void* block = allocate(own, bytes);
                ASSERT_NE(block, nullptr);
                const auto begin = reinterpret_cast<std::uintptr_t>(block) / page_bytes;
                const auto end = (reinterpret_cast<std::uintptr_t>(block) + bytes - 1) / page_bytes;
                std::vector<int> nodes(end - begin + 1, -2);
                if (await_nodes_of_pages(reinterpret_cast<void*>(begin * page_bytes), nodes.size(),
                                         nodes.data())) {
                    for (const int node : nodes) {
                        ASSERT_TRUE(allowed_nodes().has(node)) << node;
                    }
                }
                deallocate(block);
            }
        }
    }
}

TEST(Allocator, free_memory_goes_back_to_the_system) {
    Kind kind = kind_of_machine();
    kind.page_size = PageSize::small;
    Heap& own = *heap_of_kind(kind);
    std::vector<void*> blocks;
    for (int i = 0; i < 4000; ++i) {
        blocks.push_back(allocate(own, 10'000));
    }
    EXPECT_GE(own.placed_bytes(), 40'000'000U);
    for (void* block : blocks) {
        deallocate(block);
    }
    EXPECT_LE(own.placed_bytes(), 20'000'000U);
    trim();
    EXPECT_EQ(own.placed_bytes(), 0U);
}

// Makes 64 blocks and frees them.
void use_once(Heap& own, std::size_t bytes) {
    void* blocks[64];
    for (void*& block : blocks) {
        block = allocate(own, bytes);
        ASSERT_NE(block, nullptr);
    }
    for (void* block : blocks) {
        deallocate(block);
    }
}

long page_faults() {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    return use.ru_minflt;
}

TEST(Allocator, large_blocks_that_are_kept_are_few_and_go_back) {
    Heap& own = heap(Policy::interleave);
    for (const std::size_t bytes :
         {std::size_t{1} << 20, std::size_t{1} << 18, std::size_t{1} << 16}) {
        trim();
        const std::size_t before = own.placed_bytes();
        use_once(own, bytes);
        EXPECT_LE(own.placed_bytes(), before + 24'000'000U) << bytes;
    }
    trim();
    EXPECT_EQ(own.placed_bytes(), 0U);
}

TEST(Allocator, memory_that_is_needed_again_at_once_is_kept_while_it_is) {
    Kind kind = kind_of_machine();
    kind.page_size = PageSize::small;
    kind.policy = Policy::interleave;
    Heap& own = *heap_of_kind(kind);
    constexpr std::size_t bytes = 1 << 20;
    for (int round = 0; round < 8; ++round) {
        use_once(own, bytes);
    }
    const long before = page_faults();
    use_once(own, bytes);
    use_once(own, bytes);
    EXPECT_LE(page_faults() - before, 4000); // 64 MiB each time would be 32,768
    EXPECT_LE(own.placed_bytes(), 64 * bytes + region_bytes);
    std::vector<void*> blocks;
    for (int i = 0; i < 64; ++i) {
        blocks.push_back(allocate(own, bytes));
    }
    for (int step = 0; step < 2; ++step) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1100));
        for (int i = 0; i < 32; ++i) {
            deallocate(blocks.back());
            blocks.pop_back();
        }
    }
    EXPECT_LE(own.placed_bytes(), 48 * bytes);
    trim();
    EXPECT_EQ(own.placed_bytes(), 0U);
}

TEST(Allocator, threads_have_their_small_blocks_on_pages_of_their_own) {
    Heap& own = heap(Policy::strict);
    constexpr std::size_t count = 64;
    std::array<std::array<void*, count>, 2> blocks{};
    std::atomic<int> turn = 0;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread) {
        threads.emplace_back([&, thread] {
            for (std::size_t at = 0; at < count; ++at) { // one each in turn
                while (turn.load() != thread) {
                    std::this_thread::yield();
                }
                blocks[static_cast<std::size_t>(thread)][at] = allocate(own, 64);
                turn.store(1 - thread);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    std::set<std::uintptr_t> pages;
    for (void* block : blocks[0]) {
        pages.insert(reinterpret_cast<std::uintptr_t>(block) / page_bytes);
    }
    for (void* block : blocks[1]) {
        EXPECT_FALSE(pages.contains(reinterpret_cast<std::uintptr_t>(block) / page_bytes));
        deallocate(block);
    }
    for (void* block : blocks[0]) {
        deallocate(block);
    }
}

TEST(Allocator, move_brings_a_block_to_another_heap) {
    Heap& from = heap(Policy::next);
    Heap& to = heap(Policy::strict);
    for (const std::size_t bytes : {50U, 50'000U, 5'000'000U}) {
        auto* block = static_cast<unsigned char*>(allocate(from, bytes));
        std::memset(block, 77, bytes);
        auto* moved = static_cast<unsigned char*>(move(block, to));
        ASSERT_NE(moved, nullptr);
        EXPECT_TRUE(bytes < class_size_limit || moved == block);
        EXPECT_EQ(heap_of(moved), &to);
        EXPECT_EQ(move(moved, to), moved);
        for (std::size_t i = 0; i < bytes; ++i) {
            ASSERT_EQ(moved[i], 77);
        }
        deallocate(moved);
    }
}

TEST(Allocator, what_is_not_ours_is_seen) {
    int variable = 0;
    EXPECT_EQ(usable_bytes(&variable), 0U);
    EXPECT_EQ(usable_bytes(nullptr), 0U);
    EXPECT_EQ(usable_bytes(reinterpret_cast<void*>(~std::uintptr_t{0})), 0U);
    EXPECT_EQ(heap_of(&variable), nullptr);
    EXPECT_EQ(reallocate(&variable, 10), nullptr);
    EXPECT_EQ(move(&variable, heap()), nullptr);
    deallocate(nullptr);
    auto* large = static_cast<char*>(allocate(heap(), 3'000'000));
    EXPECT_EQ(usable_bytes(large + 4096), 0U);
    deallocate(large);
    EXPECT_EQ(usable_bytes(large), 0U);
}

// The thread remembers where in the table it found the last block that it freed.
TEST(Allocator, what_is_not_ours_is_left_alone_by_a_thread_that_has_freed_blocks) {
    auto* block = static_cast<char*>(allocate(heap(), 100));
    deallocate(block);
    alignas(16) static char variable[64];
    alignas(16) char local[64];
    constexpr std::uintptr_t end_of_addresses = std::uintptr_t{1} << 47;
    char* region = block - reinterpret_cast<std::uintptr_t>(block) % region_bytes;
    for (char* foreign :
         {variable, local, static_cast<char*>(nullptr), reinterpret_cast<char*>(end_of_addresses),
          reinterpret_cast<char*>(end_of_addresses + 64), reinterpret_cast<char*>(-64), block + 8,
          region + region_bytes - 64, region - 64 * region_bytes}) {
        EXPECT_FALSE(deallocate_ours(foreign)) << static_cast<void*>(foreign);
    }
    std::thread([&] { EXPECT_FALSE(deallocate_ours(variable)); }).join();
}

TEST(Allocator, blocks_far_from_each_other_are_freed_by_turns) {
    constexpr std::size_t leaf_bytes = leaf_entries * region_bytes;
    const auto number = [](const void* address) {
        return reinterpret_cast<std::uintptr_t>(address);
    };
    const auto fresh_heap = [](int unlike) -> Heap& {
        Kind kind = kind_of_machine();
        kind.targets[kind.count++] = static_cast<std::int16_t>(node_limit - unlike);
        return *heap_of_kind(kind);
    };
    Heap& one = fresh_heap(1);
    Heap& other = fresh_heap(2);
    void* near = allocate(one, 64);
    // Where the system maps downwards: what is free above is filled, then all down to where the
    // next region has the same place in another leaf: only the leaf's number tells it from the near
    // one.
    const std::uintptr_t wanted = number(near) / region_bytes * region_bytes - leaf_bytes;
    constexpr std::size_t filled_bytes = 2 * region_bytes; // that the mapping of a region needs
    constexpr unsigned most_gaps = 1000;
    Filling filling;
    std::uintptr_t last = filling.map(filled_bytes);
    for (unsigned gap = 0; last > number(near) && gap < most_gaps; ++gap) {
        last = filling.map(filled_bytes);
    }
    if (last > number(near) || last <= wanted + filled_bytes) {
        deallocate(near);
        GTEST_SKIP() << "addresses don't fall, from " << near << " to " << last;
    }
    for (unsigned piece = 0; last > wanted + filled_bytes && piece < most_gaps; ++piece) {
        last = filling.map_below(last, last - wanted - filled_bytes, filled_bytes);
    }
    void* far = allocate(other, 64);
    if (number(near) / region_bytes - number(far) / region_bytes != leaf_entries) {
        deallocate(far);
        deallocate(near);
        GTEST_SKIP() << "something is in the way: " << far << " and " << near;
    }
    for (int i = 0; i < 4; ++i) {
        deallocate(near);
        deallocate(far);
        EXPECT_EQ(allocate(one, 64), near);
        EXPECT_EQ(allocate(other, 64), far);
    }
    deallocate(far);
    deallocate(near);
    trim();
}

// A large block may end in the middle of what the table knows, where others have memory: whoever
// asks about that meets the descriptions of blocks that come and go.
TEST(Allocator, foreign_memory_can_be_asked_about_while_large_blocks_come_and_go) {
    constexpr std::size_t odd = region_bytes + 5 * page_bytes;
    std::atomic<bool> done{false};
    std::atomic<char*> last{nullptr};
    std::thread owner([&] {
        for (int i = 0; i < 300; ++i) {
            auto* block = static_cast<char*>(allocate(heap(), odd + i % 7 * page_bytes));
            last = block;
            deallocate(block);
        }
        done = true;
    });
    while (!done) {
        if (const char* block = last.load()) {
            // Behind the block, in its last slot of the table.
            ASSERT_EQ(usable_bytes(block + odd + 64 * page_bytes), 0U);
            ASSERT_EQ(heap_of(block + 3 * page_bytes), nullptr);
        }
    }
    owner.join();
}

#ifndef __SANITIZE_THREAD__ // it does not like
TEST(Allocator, blocks_that_a_child_shares_can_be_moved) {
    Heap& to = heap(Policy::strict);
    auto* block = static_cast<char*>(allocate(heap(), 3'000'000));
    std::memset(block, 5, 3'000'000);
    const pid_t child = fork();
    if (child == 0) {
        bool good = move(block, to) == block;
        for (std::size_t i = 0; i < 3'000'000; ++i) {
            good = good && block[i] == 5;
        }
        _exit(good && heap_of(block) == &to ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    deallocate(block);
}
#endif

#ifndef __SANITIZE_THREAD__ // it does not like processes that fork among threads
TEST(AllocatorDeathTest, misuse_ends_the_process_with_a_message) {
    Heap& own = heap();
    char variable[64] = {};
    EXPECT_DEATH(deallocate(variable), "warren_mem: what was freed is no block");
    for (const std::size_t bytes : {24U, 3000U, 40'000U, 700'000U, 2'000'000U}) {
        EXPECT_DEATH(
            {
                void* block = allocate(own, bytes);
                void* other = allocate(own, bytes);
                deallocate(block);
                deallocate(other);
                deallocate(block);
            },
            "warren_mem: .*freed")
            << bytes;
    }
    auto* block = static_cast<char*>(allocate(own, 40'000));
    EXPECT_DEATH(deallocate(block + 8192), "warren_mem: what was freed is no block");
    EXPECT_DEATH(deallocate(block + 1), "warren_mem: what was freed is no block");
    deallocate(block);
    EXPECT_DEATH(
        {
            auto* small = static_cast<char*>(allocate(own, 1024));
            deallocate(small + 512);
            trim();
        },
        "the middle of a block");
    EXPECT_DEATH(
        {
            void* blocks[4];
            for (void*& each : blocks) {
                each = allocate(own, 40);
            }
            for (void* each : blocks) {
                deallocate(each);
            }
            std::memset(blocks[3], 0x11, 8); // it is free
            trim();
        },
        "a block was written to when it was free");
}

TEST(Allocator, a_child_of_fork_among_busy_threads_can_allocate) {
    Heap& own = heap();
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
        threads.emplace_back([&] {
            std::vector<void*> blocks;
            while (!done) {
                for (std::size_t i = 0; i < 300; ++i) {
                    blocks.push_back(allocate(own, i * 100));
                }
                for (void* block : blocks) {
                    deallocate(block);
                }
                blocks.clear();
            }
        });
    }
    for (int i = 0; i < 20; ++i) {
        auto* inherited = static_cast<char*>(allocate(own, 100));
        std::strcpy(inherited, "parent");
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            bool good = std::strcmp(inherited, "parent") == 0;
            for (std::size_t bytes = 1; bytes < 2'000'000; bytes *= 3) {
                void* block = allocate(own, bytes);
                good = good && block != nullptr;
                deallocate(block);
            }
            deallocate(inherited);
            _exit(good ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
        deallocate(inherited);
    }
    done = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
}

TEST(Allocator, a_child_of_fork_owes_what_its_own_thread_has_on_loan) {
    Heap& own = heap(Policy::strict);
    std::atomic<int> step{0};
    std::thread other([&] {
        for (int round = 0; round < 4; ++round) {
            use_once(own, 64 * 1024);
        }
        step = 1;
        while (step == 1) {
            std::this_thread::yield();
        }
    });
    while (step == 0) {
        std::this_thread::yield();
    }
    EXPECT_GT(own.lent_bytes(), 0U);
    flush_caches();
    const pid_t child = fork();
    if (child == 0) {
        _exit(own.lent_bytes() == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_GT(own.lent_bytes(), 0U);
    step = 2;
    other.join();
    EXPECT_EQ(own.lent_bytes(), 0U);
}
#endif

// Threads allocate, write, check, free each other's blocks, end and begin.
TEST(Allocator, threads_share_heaps) {
    Heap* heaps[] = {&heap(), &heap(Policy::strict), &heap(Policy::interleave)};
    std::mutex mutex;
    std::vector<std::pair<unsigned char*, std::size_t>> common;
    constexpr int rounds = 3;
    constexpr unsigned threads = 4;
    for (int round = 0; round < rounds; ++round) {
        std::vector<std::thread> running;
        for (unsigned t = 0; t < threads; ++t) {
            running.emplace_back([&, t] {
                std::mt19937 random(t + static_cast<unsigned>(round) * 100);
                for (int i = 0; i < 3000; ++i) {
                    std::size_t bytes = std::size_t{1} << random() % (i % 16 == 0 ? 20 : 17);
                    bytes = random() % 500 == 0 ? 1'500'000 : bytes + random() % bytes;
                    auto* block =
                        static_cast<unsigned char*>(allocate(*heaps[random() % 3], bytes));
                    ASSERT_NE(block, nullptr);
                    const auto mark = static_cast<unsigned char>(bytes * 7);
                    block[0] = mark;
                    block[bytes - 1] = mark;
                    std::pair<unsigned char*, std::size_t> taken{block, bytes};
                    {
                        const std::lock_guard hold(mutex);
                        if (common.size() < 300) {
                            common.push_back(taken);
                            continue;
                        }
                        std::swap(taken, common[random() % common.size()]);
                    }
                    const auto expected = static_cast<unsigned char>(taken.second * 7);
                    ASSERT_EQ(taken.first[0], expected);
                    ASSERT_EQ(taken.first[taken.second - 1], expected);
                    deallocate(taken.first);
                    if (i % 700 == 0) {
                        trim();
                    }
                }
            });
        }
        for (std::thread& thread : running) {
            thread.join();
        }
    }
    for (const auto& [block, bytes] : common) {
        deallocate(block);
    }
    trim();
    for (Heap* each : heaps) {
        EXPECT_EQ(each->placed_bytes(), 0U); // nothing was lost with the threads
    }
}

} // namespace
} // namespace warren::memory
