// Partitions are those of OpenMP; vectors' pages are there, and where the threads are, before the
// program uses them; resize() leaves elements alone.
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "warren/first_touch.hpp"

namespace {

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::printf("line %d: %s\n", __LINE__, #condition);                                    \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (false)

void expect_schedules(std::size_t count, int threads) {
    std::vector<std::size_t> owner(count);
    const warren::StaticPartition by_block;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (std::size_t i = 0; i < count; ++i) {
        owner[i] = static_cast<std::size_t>(omp_get_thread_num());
    }
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT(by_block(i, count, threads) == owner[i]);
    }
    for (const int chunk : {1, 3, 64}) {
        const warren::BlockPartition by_chunk(static_cast<std::size_t>(chunk));
#pragma omp parallel for schedule(static, chunk) num_threads(threads)
        for (std::size_t i = 0; i < count; ++i) {
            owner[i] = static_cast<std::size_t>(omp_get_thread_num());
        }
        for (std::size_t i = 0; i < count; ++i) {
            EXPECT(by_chunk(i, count, threads) == owner[i]);
        }
    }
}

void expect_boxes() {
    const warren::BoxPartition boxes(8, 6, 10, 2, 3, 2);
    std::vector<int> sizes(12);
    for (std::size_t i = 0; i < 8; ++i) {
        for (std::size_t j = 0; j < 6; ++j) {
            for (std::size_t k = 0; k < 10; ++k) {
                const std::size_t owner = boxes((i * 6 + j) * 10 + k, 480, 12);
                EXPECT(owner == (i / 4 * 3 + j / 2) * 2 + k / 5);
                ++sizes[owner];
            }
        }
    }
    for (const int size : sizes) {
        EXPECT(size == 40);
    }
    EXPECT(boxes(479, 480, 4) == 3);  // fewer threads than boxes
    EXPECT(boxes(500, 600, 12) < 12); // more than the array has
    bool refused = false;
    try {
        warren::BoxPartition(0, 1, 1, 1, 1, 1);
    } catch (const std::invalid_argument&) {
        refused = true;
    }
    EXPECT(refused);
}

std::vector<int> nodes_of(const void* begin, std::size_t pages) {
    std::vector<const void*> addresses;
    for (std::size_t i = 0; i < pages; ++i) {
        addresses.push_back(static_cast<const char*>(begin) + i * 4096);
    }
    std::vector<int> nodes(pages, -1);
    if (syscall(SYS_move_pages, 0, pages, addresses.data(), nullptr, nodes.data(), 0) != 0) {
        return {}; // the system does not tell
    }
    return nodes;
}

// OMP_PROC_BIND keeps the threads where they are.
std::vector<int> nodes_of_threads() {
    std::vector<int> nodes(static_cast<std::size_t>(omp_get_max_threads()), -1);
#pragma omp parallel
    {
        unsigned node = 0;
        syscall(SYS_getcpu, nullptr, &node, nullptr);
        nodes[static_cast<std::size_t>(omp_get_thread_num())] = static_cast<int>(node);
    }
    return nodes;
}

template <typename Partition>
void expect_places(const Partition& partition) {
    constexpr std::size_t count = 1'000'000;
    using Vector = std::vector<double, warren::FirstTouchAllocator<double, Partition>>;
    Vector values(count, warren::FirstTouchAllocator<double, Partition>(partition));
    const std::vector<int> threads = nodes_of_threads();
    const std::vector<int> pages = nodes_of(values.data(), count * sizeof(double) / 4096);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < pages.size(); ++i) {
        EXPECT(pages[i] >= 0);
        wrong += pages[i] != threads[partition(i * 512, count, omp_get_max_threads())];
    }
    EXPECT(omp_get_proc_bind() == omp_proc_bind_false || wrong * 100 <= pages.size());
    EXPECT(std::accumulate(values.begin(), values.end(), 0.0) == 0); // fresh memory is zero
}

void expect_resize_does_not_write() {
    std::vector<int, warren::FirstTouchAllocator<int>> values(100'000);
    std::iota(values.begin(), values.end(), 0);
    values.resize(10);
    values.resize(100'000);
    EXPECT(values[99'999] == 99'999); // as it was
    values.resize(300'000, 7);        // a value is written
    EXPECT(values[0] == 0 && values[99'999] == 99'999 && values[299'999] == 7);
    auto copy = values;
    EXPECT(copy == values);
    std::vector<int, warren::FirstTouchAllocator<int>> few(3); // no pages of its own
    few.push_back(4);
    EXPECT(few.size() == 4 && few[3] == 4);
    std::vector<std::vector<int>, warren::FirstTouchAllocator<std::vector<int>>> objects(5000);
    objects[4999].push_back(1); // constructed
    EXPECT(objects[0].empty());
}

} // namespace

int main() {
    for (const std::size_t count : {1U, 7U, 64U, 1000U}) {
        for (const int threads : {1, 2, 3, 7}) {
            expect_schedules(count, threads);
        }
    }
    expect_boxes();
    expect_places(warren::StaticPartition());
    expect_places(warren::BlockPartition(4096));
    expect_places(warren::BoxPartition(100, 100, 100, 2, 2, 1));
    expect_resize_does_not_write();
    return 0;
}
