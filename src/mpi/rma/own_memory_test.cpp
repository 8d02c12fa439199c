// Own memory: what a process may read and write of it, by the kernel's word.
#include "mpi/rma/own_memory.hpp"

#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/page.hpp"

namespace warren::rma {
namespace {

std::byte* map_pages(std::size_t pages, int protection, int descriptor = -1) {
    const int flags = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* const place = mmap(nullptr, pages * page_bytes, protection, flags, descriptor, 0);
    EXPECT_NE(place, MAP_FAILED);
    return static_cast<std::byte*>(place);
}

TEST(OwnMemoryTest, MayBeWrittenOrReadAsItIsProtected) {
    std::byte* const memory = map_pages(3, PROT_READ | PROT_WRITE);
    mprotect(memory + page_bytes, page_bytes, PROT_READ);
    mprotect(memory + 2 * page_bytes, page_bytes, PROT_NONE);
    EXPECT_TRUE(has_memory(memory, page_bytes, MemoryUse::writes));
    EXPECT_FALSE(has_memory(memory, page_bytes + 1, MemoryUse::writes));
    EXPECT_TRUE(has_memory(memory, 2 * page_bytes, MemoryUse::reads));
    EXPECT_FALSE(has_memory(memory, 2 * page_bytes + 1, MemoryUse::reads));
    EXPECT_FALSE(has_memory_surely(memory + page_bytes, 1, MemoryUse::writes));
    EXPECT_TRUE(has_memory(memory + 2 * page_bytes, 0, MemoryUse::writes)) << "no bytes";
    munmap(memory, page_bytes);
    EXPECT_FALSE(has_memory(memory, 1, MemoryUse::reads));
    munmap(memory + page_bytes, 2 * page_bytes);
}

TEST(OwnMemoryTest, HasNoneBehindTheEndOfAFile) {
    const int file = memfd_create("test", MFD_CLOEXEC);
    ASSERT_GE(file, 0);
    ASSERT_EQ(ftruncate(file, page_bytes), 0);
    std::byte* const memory = map_pages(2, PROT_READ | PROT_WRITE, file);
    if (has_memory_surely(memory, 1, MemoryUse::writes)) { // Linux 5.14
        EXPECT_FALSE(has_memory(memory + page_bytes, 1, MemoryUse::reads));
    }
    munmap(memory, 2 * page_bytes);
    close(file);
}

// The kernel's data for its clocks has no pages that could be faulted in.
TEST(OwnMemoryTest, AsksTheListOfMappingsWhereTheKernelCannotSay) {
    std::FILE* const maps = std::fopen("/proc/self/maps", "re");
    ASSERT_NE(maps, nullptr);
    char line[512];
    unsigned long long first = 0;
    while (std::fgets(line, sizeof line, maps) != nullptr) {
        if (std::strstr(line, "[vvar]") != nullptr) {
            std::sscanf(line, "%llx", &first);
        }
    }
    std::fclose(maps);
    const auto* place = reinterpret_cast<const std::byte*>(first);
    if (first == 0 || has_memory_surely(place, 1, MemoryUse::reads)) {
        GTEST_SKIP() << "there is no such memory";
    }
    EXPECT_TRUE(has_memory(place, 1, MemoryUse::reads));
    EXPECT_FALSE(has_memory(place, 1, MemoryUse::writes));
}

std::vector<std::byte> request_for(ServedKind kind, const std::vector<ServedPiece>& pieces) {
    ServedHead head = {.kind = kind, .pieces = static_cast<std::uint32_t>(pieces.size())};
    std::vector<std::byte> memory(sizeof head + pieces.size() * sizeof(ServedPiece));
    std::memcpy(memory.data(), &head, sizeof head);
    std::memcpy(memory.data() + sizeof head, pieces.data(), pieces.size() * sizeof(ServedPiece));
    return memory;
}

TEST(OwnMemoryTest, HasARequestsMemoryIfItHasAllPieces) {
    constexpr std::size_t pages = 100;
    std::byte* const memory = map_pages(pages, PROT_READ | PROT_WRITE);
    mprotect(memory + 50 * page_bytes, page_bytes, PROT_READ);
    const auto at = [memory](std::size_t page) {
        return ServedPiece{.address = reinterpret_cast<std::uint64_t>(memory + page * page_bytes),
                           .bytes = 8};
    };
    const std::vector<ServedPiece> around = {at(99), at(0), at(1), at(49), at(51), at(2)};
    EXPECT_TRUE(has_memory(ServedRequest(request_for(ServedKind::write, around))));
    for (std::size_t place = 0; place <= around.size(); ++place) {
        std::vector<ServedPiece> pieces = around;
        pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(place), at(50));
        EXPECT_FALSE(has_memory(ServedRequest(request_for(ServedKind::write, pieces)))) << place;
        EXPECT_TRUE(has_memory(ServedRequest(request_for(ServedKind::read, pieces)))) << place;
    }
    std::vector<ServedPiece> dense;
    for (std::size_t page = 40; page < 60; ++page) {
        dense.push_back(at(page));
    }
    EXPECT_FALSE(has_memory(ServedRequest(request_for(ServedKind::accumulate, dense))));
    munmap(memory, pages * page_bytes);
}

} // namespace
} // namespace warren::rma
