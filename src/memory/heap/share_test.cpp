#include "memory/heap/share.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "memory/heap/allocator.hpp"
#include "memory/heap/heaps.hpp"
#include "memory/heap/memory_use.hpp"
#include "memory/heap/numa.hpp"
#include "memory/heap/placement.hpp"
#include "mpi/job/segment.hpp"

namespace warren::memory {
namespace {

constexpr std::size_t MiB = 1024 * 1024;

TEST(Share, memory_is_divided_among_the_ranks_near_it) {
    EXPECT_EQ(fair_bytes(800, 1, 8, 0, 64), 100U); // near to all
    EXPECT_EQ(fair_bytes(800, 1, 8, 64, 64), 100U);
    EXPECT_EQ(fair_bytes(800, 1, 8, 16, 64), 400U); // a quarter of the ranks
    EXPECT_EQ(fair_bytes(800, 2, 8, 16, 64), 800U);
    EXPECT_EQ(fair_bytes(800, 4, 8, 16, 64), 800U);     // never more than there is
    EXPECT_EQ(fair_bytes(800, 1, 2, 16, 64), 800U);     // fewer ranks than parts
    EXPECT_EQ(fair_bytes(800, 1, 9, 16, 64), 800U / 3); // rounded up
}

TEST(AllowedNodes, are_read_where_the_kernel_may_not_be_asked) {
    std::string root = testing::TempDir() + "warren-status-XXXXXX";
    ASSERT_NE(mkdtemp(root.data()), nullptr);
    std::filesystem::create_directories(root + "/proc/self");
    const auto nodes_of = [&](const char* text) {
        std::ofstream(root + "/proc/self/status") << text;
        std::string list;
        const NodeSet nodes = nodes_of_status(root.c_str());
        for (int node = 0; node < node_limit; ++node) {
            list += nodes.has(node) ? std::to_string(node) + " " : "";
        }
        return list;
    };
    EXPECT_EQ(nodes_of("Name:\tx\nMems_allowed:\t0000000d\nMems_allowed_list:\t0,2-4,1023\n"),
              "0 2 3 4 1023 ");
    EXPECT_EQ(nodes_of("Mems_allowed_list:\t7\n"), "0 "); // as the first line it is a name
    EXPECT_EQ(nodes_of("Name:\tx\nMems_allowed_list:\t5\nvoluntary:\t1\n"), "5 ");
    EXPECT_EQ(nodes_of("Name:\tx\nMems_allowed_list:\t1000-99999999999999999999\n"),
              nodes_of("Name:\tx\nMems_allowed_list:\t1000-1023\n"));
    EXPECT_EQ(nodes_of("Name:\tx\n"), "0 ");
    std::filesystem::remove_all(root);
    EXPECT_FALSE(nodes_of_status("").empty());
}

TEST(KeptBack, is_what_each_zone_keeps_for_itself_and_others) {
    std::string root = testing::TempDir() + "warren-zones-XXXXXX";
    ASSERT_NE(mkdtemp(root.data()), nullptr);
    std::filesystem::create_directories(root + "/proc");
    const auto zone = [](const char* head, int high, int managed, const char* protection) {
        return std::string(head) + "\n  pages free     9\n        min      1\n        high     " +
               std::to_string(high) + "\n        managed  " + std::to_string(managed) +
               "\n        protection: (" + protection +
               ")\n      nr_free_pages 9\n  pagesets\n    cpu: 0\n              count: 5\n"
               "              high:  70000\n              high_min: 70000\n";
    };
    const std::string longest(5000, '7'); // no such line is known; the next one counts all the same
    std::ofstream(root + "/proc/zoneinfo")
        << zone("Node 1, zone      DMA", 3, 3840, "0, 20, 100, 100") << longest << "\n"
        << zone("Node 1, zone   Normal", 40, 100000, "0, 0, 0, 0")
        << zone("Node 1, zone  Movable", 0, 0, "0, 0, 0, 0")
        << zone("Node 11, zone   Normal", 500, 600, "0, 0, 700, 0")
        << "Node 2, zone   Normal\n        high     5\n        managed  77\n        protection: (";
    const char* const folder = root.c_str();
    EXPECT_EQ(kept_back_bytes(1, folder), (3 + 100 + 40) * 4096);
    EXPECT_EQ(kept_back_bytes(11, folder), 600 * 4096); // not more than there is
    EXPECT_EQ(kept_back_bytes(2, folder), 5 * 4096);
    EXPECT_EQ(kept_back_bytes(0, folder), 0);
    std::filesystem::remove_all(root);
    EXPECT_EQ(kept_back_bytes(1, folder), 0);
    EXPECT_LE(kept_back_bytes(0), std::max<std::int64_t>(droppable_bytes(0), 0));
}

#ifndef __SANITIZE_THREAD__
// Runs a process's use of its share in a child, as shares last as long as the process.
template <typename Body>
int in_job(unsigned ranks, std::uint64_t free, const char* choice, const Body& body) {
    node::Segment segment;
    if (node::Segment::create({.ranks = ranks}, segment)) {
        return -1;
    }
    const pid_t child = fork();
    if (child == 0) {
        setenv("WARREN_SEGMENT", std::to_string(segment.descriptor()).c_str(), 1);
        setenv("WARREN_MEMORY_SHARE", choice, 1);
        segment.at(memory_use)[0].free_bytes = free;
        _exit(body());
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

Kind node_0(Policy policy) {
    Kind kind;
    kind.policy = policy;
    kind.count = 1;
    return kind;
}

TEST(Share, a_rank_gets_its_part_and_gets_it_again) {
    EXPECT_EQ(in_job(4, 64 * MiB + 1, "fair",
                     [] {
                         if (!shares_count() || take_share(0, 10 * MiB) != 10 * MiB ||
                             take_share(0, 10 * MiB) != 6 * MiB || take_share(0, 10 * MiB) != 0) {
                             return 1;
                         }
                         return_share(0, 4 * MiB);
                         return take_share(0, 10 * MiB) == 4 * MiB ? 0 : 2;
                     }),
              0);
}

TEST(Share, a_strict_heap_stops_at_the_share) {
    EXPECT_EQ(in_job(4, 64 * MiB + 1, "fair",
                     [] {
                         Heap& heap = *heap_of_kind(node_0(Policy::strict));
                         for (int round = 0; round < 3; ++round) {
                             void* blocks[8];
                             for (int i = 0; i < 7; ++i) {
                                 if ((blocks[i] = allocate(heap, 2 * MiB)) == nullptr) {
                                     return 1;
                                 }
                             }
                             void* small = allocate(heap, 100);
                             if (small == nullptr || allocate(heap, 3 * MiB) != nullptr) {
                                 return 2;
                             }
                             for (int i = 0; i < 7; ++i) {
                                 deallocate(blocks[i]);
                             }
                             deallocate(small);
                             trim();
                             if (take_share(0, 16 * MiB) != 16 * MiB) {
                                 return 3;
                             }
                             return_share(0, 16 * MiB);
                         }
                         return 0;
                     }),
              0);
}

TEST(Share, huge_pages_that_reach_beyond_it_are_not_given_back_twice) {
    EXPECT_EQ(in_job(4, 12 * MiB + 1, "fair", // 3 MiB each
                     [] {
                         Kind kind = node_0(Policy::strict);
                         kind.page_size = PageSize::huge;
                         constexpr std::size_t bytes = 8 * MiB;
                         void* mapped = mmap(nullptr, bytes + 2 * MiB, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                         char* begin = reinterpret_cast<char*>(
                             (reinterpret_cast<std::uintptr_t>(mapped) + 2 * MiB - 1) / (2 * MiB) *
                             (2 * MiB));
                         advise_page_size(kind, begin, bytes, true);
                         if (place(kind, begin, bytes)) {
                             return 1;
                         }
                         std::vector<int> nodes(bytes / page_bytes);
                         if (await_nodes_of_pages(begin, nodes.size(), nodes.data()) &&
                             std::count(nodes.begin(), nodes.end(), -1) !=
                                 static_cast<std::ptrdiff_t>(nodes.size())) {
                             return 2;
                         }
                         return take_share(0, 8 * MiB) == 3 * MiB ? 0 : 3;
                     }),
              0);
}

TEST(Share, threads_that_use_it_up_at_once_give_all_back) {
    EXPECT_EQ(in_job(4, 64 * MiB + 1, "fair",
                     [] {
                         Heap& heap = *heap_of_kind(node_0(Policy::strict));
                         for (int round = 0; round < 5; ++round) {
                             std::atomic<std::size_t> taken{0};
                             std::vector<std::thread> threads;
                             for (std::size_t t = 0; t < 4; ++t) {
                                 threads.emplace_back([&, bytes = 60'000 << t] {
                                     std::vector<void*> blocks;
                                     while (void* block = allocate(heap, bytes)) {
                                         blocks.push_back(block);
                                     }
                                     taken += blocks.size() * bytes;
                                     for (void* block : blocks) {
                                         deallocate(block);
                                     }
                                 });
                             }
                             for (std::thread& thread : threads) {
                                 thread.join();
                             }
                             trim();
                             if (taken < 8 * MiB || heap.placed_bytes() != 0 ||
                                 take_share(0, 17 * MiB) != 16 * MiB) {
                                 return 1;
                             }
                             return_share(0, 16 * MiB);
                         }
                         return 0;
                     }),
              0);
}

TEST(Share, outside_jobs_nobody_counts) {
    EXPECT_EQ(in_job(4, 64 * MiB + 1, "fair",
                     [] {
                         unsetenv("WARREN_SEGMENT");
                         return !shares_count() && take_share(0, 100 * MiB) == 100 * MiB ? 0 : 1;
                     }),
              0);
}

TEST(Share, first_come_is_served) {
    EXPECT_EQ(
        in_job(4, 64 * MiB + 1, "first",
               [] { return !shares_count() && take_share(0, 100 * MiB) == 100 * MiB ? 0 : 1; }),
        0);
}

TEST(Share, a_foreign_descriptor_is_left_alone) {
    EXPECT_EQ(in_job(4, 64 * MiB + 1, "fair",
                     [] {
                         setenv("WARREN_SEGMENT", "0", 1);
                         return shares_count() ? 1 : 0;
                     }),
              0);
}
#endif

} // namespace
} // namespace warren::memory
