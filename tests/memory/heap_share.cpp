// A rank whose malloc is of the same memory as its warren_mem_alloc (`warren run`): both together
// have one share.
//     heap_share --begin MIB PROGRAM …    a rank's share is MIB; executes PROGRAM
//     heap_share MIB                      looks whether it is, however it is divided
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/heap/memory_use.hpp"
#include "warren/memory.h"

namespace {

constexpr std::size_t MiB = 1024 * 1024;
constexpr std::size_t block_bytes = 2 * MiB; // with a mapping of its own: what is freed is back
constexpr int most_blocks = 256;

int fail(const char* what) {
    std::fprintf(stderr, "heap_share: %s\n", what);
    return 2;
}

// The job's first processes to come say what can be had, so it is said before.
int begin(std::size_t share_bytes, char** program) {
    const char* segment = std::getenv("WARREN_SEGMENT");
    const int file = segment != nullptr ? std::atoi(segment) : -1;
    warren::node::Directory directory;
    if (pread(file, &directory, sizeof directory, 0) != static_cast<ssize_t>(sizeof directory)) {
        return fail("there is no job");
    }
    for (unsigned node = 0; node < warren::memory::memory_use_limit; ++node) {
        const std::uint64_t all = share_bytes * directory.ranks;
        const auto offset = static_cast<off_t>(directory[warren::memory::memory_use].offset +
                                               node * sizeof(warren::memory::MemoryUse) +
                                               offsetof(warren::memory::MemoryUse, free_bytes));
        if (pwrite(file, &all, sizeof all, offset) != static_cast<ssize_t>(sizeof all)) {
            return fail("the job's segment can't be written to");
        }
    }
    execv(program[0], program);
    return fail("the program can't be executed");
}

template <typename Take>
int take_all(void** blocks, const Take& take) {
    int count = 0;
    while (count < most_blocks && (blocks[count] = take()) != nullptr) {
        ++count;
    }
    return count;
}

} // namespace

int main(int argc, char** argv) {
    if (argc > 3 && std::strcmp(argv[1], "--begin") == 0) {
        return begin(std::strtoul(argv[2], nullptr, 10) * MiB, argv + 3);
    }
    const int share = argc == 2 ? std::atoi(argv[1]) / 2 : 0; // blocks
    warren_mem_criteria* criteria = nullptr;
    if (warren_mem_criteria_parse("capacity full=strict", &criteria) != WARREN_MEM_SUCCESS) {
        return fail(warren_mem_error());
    }
    const auto by_malloc = [] { return std::malloc(block_bytes); };
    const auto by_criteria = [&] { return warren_mem_alloc(block_bytes, criteria); };
    void* first[most_blocks];
    void* second[most_blocks];
    // Of the last block other blocks of the process may have a part.
    const auto is_share = [&](int blocks) { return blocks <= share && blocks >= share - 2; };
    for (int part = 0; part <= share; part += share / 2) {
        int count = 0;
        while (count < part && (first[count] = by_malloc()) != nullptr) {
            ++count;
        }
        const int rest = take_all(second, by_criteria);
        const int none = take_all(second + rest, by_malloc);
        std::printf("%d by malloc, %d by criteria, %d more\n", count, rest, none);
        if (!is_share(count + rest) || none != 0) {
            return fail("that is not one share");
        }
        while (count-- > 0) {
            std::free(first[count]);
        }
        for (int i = 0; i < rest; ++i) {
            warren_mem_free(second[i]);
        }
    }
    warren_mem_criteria_free(criteria);
    return 0;
}
