// Ranks that all want the same scarce memory get equal parts of it: each allocates more of the
// memory of highest bandwidth than its share, and asks the kernel what it got.
//     mpiexec -n 8 --bind-to core fair_ranks MIB-PER-RANK
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mpi.h>
#include <vector>

#include "warren/memory.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const long mebibytes = argc == 2 ? std::strtol(argv[1], nullptr, 10) : 0;
    if (mebibytes < 1) {
        std::fprintf(stderr, "usage: fair_ranks MIB-PER-RANK\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    warren_mem_criteria* criteria = nullptr;
    unsigned best = 0;
    std::uint64_t free = 0;
    if (warren_mem_criteria_parse("bandwidth", &criteria) != WARREN_MEM_SUCCESS ||
        warren_mem_get_best_target(nullptr, criteria, &best) != WARREN_MEM_SUCCESS ||
        warren_mem_get_value(nullptr, WARREN_MEM_AVAILABLE, nullptr, best, &free, nullptr) !=
            WARREN_MEM_SUCCESS) {
        std::fprintf(stderr, "rank %d: %s\n", rank, warren_mem_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD); // the free memory was looked at before anybody takes of it
    long pages_of_best = 0;
    for (long taken = 0; taken < mebibytes; taken += 2) {
        constexpr std::size_t bytes = 2 << 20;
        void* block = warren_mem_alloc(bytes, criteria);
        std::vector<int> nodes(bytes / 4096 + 1);
        std::size_t count = 0;
        if (block == nullptr ||
            warren_mem_where(block, bytes, nodes.size(), nodes.data(), &count) != 0) {
            std::fprintf(stderr, "rank %d: %s\n", rank, warren_mem_error());
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        nodes.resize(count);
        pages_of_best += std::count(nodes.begin(), nodes.end(), static_cast<int>(best));
    }
    const long mine[] = {static_cast<long>(best), pages_of_best, static_cast<long>(free / 4096)};
    std::vector<long> all(3 * static_cast<std::size_t>(ranks));
    MPI_Gather(mine, 3, MPI_LONG, all.data(), 3, MPI_LONG, 0, MPI_COMM_WORLD);
    int failed = 0;
    if (rank == 0) {
        std::map<long, std::vector<long>> parts; // of each memory
        std::map<long, long> free_pages;
        for (std::size_t at = 0; at < all.size(); at += 3) {
            parts[all[at]].push_back(all[at + 1]);
            free_pages[all[at]] = std::max(free_pages[all[at]], all[at + 2]);
        }
        for (auto& [node, pages] : parts) {
            const auto [least, most] = std::minmax_element(pages.begin(), pages.end());
            long sum = 0;
            for (const long each : pages) {
                sum += each;
            }
            const bool fair = *least * 10 >= *most * 9;
            const bool used =
                sum * 10 >=
                std::min(free_pages[node], static_cast<long>(pages.size()) * mebibytes * 256) * 8;
            const bool scarce = sum < static_cast<long>(pages.size()) * mebibytes * 256;
            std::printf("node %ld: %zu ranks have %ld to %ld MiB of %ld%s%s%s\n", node,
                        pages.size(), *least / 256, *most / 256, free_pages[node] / 256,
                        fair ? "" : ": NOT FAIR", used ? "" : ": LEFT UNUSED",
                        scarce ? "" : ": it was not scarce");
            failed |= !fair || !used || !scarce;
        }
    }
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    warren_mem_criteria_free(criteria);
    MPI_Finalize();
    return failed;
}
