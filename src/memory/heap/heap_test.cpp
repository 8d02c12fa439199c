#include "memory/heap/heap.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "memory/heap/heaps.hpp"
#include "memory/heap/numa.hpp"
#include "memory/heap/size_class.hpp"

namespace {

// The system's answer when memory is to be placed: an errno, or 0 when it places it.
constinit std::atomic<int (*)()> answer_to_placing{nullptr};

} // namespace

// The C library's, but for that.
extern "C" int madvise(void* begin, std::size_t bytes, int advice) noexcept {
    constexpr int populate_write = 23;
    auto* const answer = answer_to_placing.load();
    if (advice == populate_write && answer != nullptr) {
        if (const int error = answer()) {
            errno = error;
            return -1;
        }
    }
    return static_cast<int>(syscall(SYS_madvise, begin, bytes, advice));
}

namespace warren::memory {
namespace {

constexpr unsigned small_class = class_of(64);

// A heap that no other test has.
Heap& new_heap() {
    static std::int16_t different = 0;
    Kind kind;
    const NodeSet allowed = allowed_nodes();
    for (int node = 0; node < node_limit && kind.count < 4; ++node) {
        if (allowed.has(node)) {
            kind.targets[kind.count++] = static_cast<std::int16_t>(node);
        }
    }
    kind.targets[kind.count++] = static_cast<std::int16_t>(node_limit - 1 - ++different);
    kind.page_size = PageSize::small;
    Heap* made = heap_of_kind(kind);
    EXPECT_NE(made, nullptr);
    return *made;
}

// How many blocks of a class the heap has, up to `most`, which are taken. errno is that of the last
// try.
unsigned take(Heap& heap, unsigned size_class, unsigned most = 1) {
    unsigned sum = 0;
    unsigned taken = 0;
    while (sum < most && heap.take_blocks(size_class, 1, &taken, nullptr) != nullptr) {
        sum += taken;
    }
    return sum;
}

// A system with room for so many units, which notes how often it is asked.
constinit std::atomic<int> units_left{0};
constinit std::atomic<int> tries{0};

int take_unit() {
    ++tries;
    if (units_left.fetch_sub(1) > 0) {
        return 0;
    }
    ++units_left;
    return ENOMEM;
}

void await_tries(int count) {
    while (tries < count) {
        std::this_thread::yield();
    }
}

class Placing : public testing::Test {
  protected:
    ~Placing() override { answer_to_placing = nullptr; }

    static void answer(int (*function)(), int units) {
        tries = 0;
        units_left = units;
        answer_to_placing = function;
    }
};

TEST_F(Placing, memory_that_another_thread_is_placing_is_waited_for_where_there_is_no_other) {
    Heap& heap = new_heap();
    answer(
        [] {
            const bool first = tries == 0;
            const int error = take_unit();
            if (first) {
                await_tries(2); // the other thread was refused
            }
            return error;
        },
        1);
    unsigned first = 0;
    std::thread other([&] { first = take(heap, small_class); });
    await_tries(1);
    EXPECT_EQ(take(heap, class_of(1000)), 1U);
    other.join();
    EXPECT_EQ(first, 1U);
}

TEST_F(Placing, threads_that_take_the_last_memory_from_each_other_get_it_in_turns) {
    Heap& heap = new_heap();
    answer(
        [] {
            if (tries < 2) {
                ++tries;
                await_tries(2);
                return ENOMEM; // each had some of it
            }
            return take_unit();
        },
        1);
    std::atomic<unsigned> taken{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
        threads.emplace_back([&] { taken += take(heap, small_class); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(taken, 2U);
    EXPECT_EQ(tries, 3);
}

TEST_F(Placing, memory_that_is_used_up_is_refused_to_all) {
    Heap& heap = new_heap();
    answer(take_unit, 0);
    std::atomic<unsigned> refused{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 100; ++i) {
                errno = 0;
                refused += take(heap, small_class) == 0 && errno == ENOMEM;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(refused, 400U);
    EXPECT_EQ(heap.placed_bytes(), 0U);
    units_left = 1;
    EXPECT_EQ(take(heap, small_class), 1U);
}

#ifndef __SANITIZE_THREAD__ // it does not like processes that fork among threads
constinit std::atomic<bool> forking{false};

TEST_F(Placing, a_child_of_fork_has_what_another_thread_was_placing) {
    Heap& heap = new_heap();
    // Runs before the heaps' handler, which is older.
    ASSERT_EQ(pthread_atfork([] { forking = true; }, nullptr, nullptr), 0);
    answer(
        [] {
            const int error = take_unit();
            while (!forking) {
                std::this_thread::yield();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            return error;
        },
        1);
    std::thread other([&] { EXPECT_EQ(take(heap, small_class), 1U); });
    await_tries(1);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        constexpr unsigned blocks = unit_bytes / 64;
        const unsigned taken = take(heap, small_class, 2 * blocks);
        _exit(taken == blocks - 1 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    other.join();
    EXPECT_EQ(take(heap, small_class, 10), 10U);
}

TEST(Heap, forks_among_threads_that_place_memory_leave_both_sides_whole) {
    Heap& heap = new_heap();
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
        threads.emplace_back([&] {
            while (!done) {
                for (const unsigned size_class : {small_class, class_of(300'000)}) {
                    unsigned taken = 0;
                    void* list = heap.take_blocks(size_class, 3, &taken, nullptr);
                    EXPECT_NE(list, nullptr);
                    heap.give_blocks(size_class, list, taken);
                }
                heap.trim();
            }
        });
    }
    for (int i = 0; i < 100; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            heap.trim();
            _exit(take(heap, small_class, 10'000) == 10'000 ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
    done = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
    heap.trim();
    EXPECT_EQ(heap.placed_bytes(), 0U);
}
#endif

TEST(Heap, memory_that_was_kept_for_long_in_vain_goes_back_at_once) {
    Heap& heap = new_heap();
    constexpr std::size_t bytes = class_size_limit;
    constexpr unsigned large_class = class_of(bytes);
    constexpr int count = 128;
    for (int round = 0; round < 6; ++round) {
        std::vector<void*> blocks;
        for (int i = 0; i < count; ++i) {
            unsigned taken = 0;
            blocks.push_back(heap.take_blocks(large_class, 1, &taken, nullptr));
            ASSERT_NE(blocks.back(), nullptr);
        }
        for (void* block : blocks) {
            heap.give_blocks(large_class, block, 1);
        }
    }
    EXPECT_GE(heap.placed_bytes(), 112 * bytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    unsigned taken = 0;
    heap.give_blocks(large_class, heap.take_blocks(large_class, 1, &taken, nullptr), 1);
    EXPECT_LE(heap.placed_bytes(), 72 * bytes);
    heap.trim();
    EXPECT_EQ(heap.placed_bytes(), 0U);
}

} // namespace
} // namespace warren::memory
