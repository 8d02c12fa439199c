#include "memory/heap/page_owners.hpp"

#include <cstddef>
#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace warren::memory {
namespace {

// Addresses are only numbers here.
const std::byte* at(std::uintptr_t address) {
    return reinterpret_cast<const std::byte*>(address);
}

constexpr std::uintptr_t base = 0x7f1234000000; // a leaf's start
constexpr std::uintptr_t leaf = std::uintptr_t{64} << 20;

std::map<std::uint32_t, std::size_t> bytes_by_owner(const PageOwners& owners) {
    std::map<std::uint32_t, std::size_t> sums;
    owners.visit([&](std::byte*, std::size_t bytes, std::uint32_t owner) { sums[owner] += bytes; });
    return sums;
}

TEST(PageOwners, EveryPageWithAByteOfABlockIsItsOwners) {
    PageOwners owners;
    owners.claim(at(base + 5000), 10, 3);
    EXPECT_EQ(owners.owner_of(at(base + 4096)), 3U);
    EXPECT_EQ(owners.owner_of(at(base + 8191)), 3U);
    EXPECT_EQ(owners.owner_of(at(base + 4095)), PageOwners::nobody);
    EXPECT_EQ(owners.owner_of(at(base + 8192)), PageOwners::nobody);
    owners.claim(at(base + 4095), 2, 4); // of both pages
    EXPECT_EQ(owners.owner_of(at(base)), 4U);
    EXPECT_EQ(owners.owner_of(at(base + 4096)), 4U);
    owners.claim(at(base + 9000), 0, 5); // malloc(0) has a place
    EXPECT_EQ(owners.owner_of(at(base + 9000)), 5U);
}

TEST(PageOwners, BlocksMayGoOverSeveralLeaves) {
    PageOwners owners;
    owners.claim(at(base + leaf - 4096), 2 * leaf, 0);
    EXPECT_EQ(owners.owner_of(at(base + leaf - 1)), 0U);
    EXPECT_EQ(owners.owner_of(at(base + 2 * leaf)), 0U);
    EXPECT_EQ(owners.owner_of(at(base + 3 * leaf - 4097)), 0U);
    EXPECT_EQ(owners.owner_of(at(base + 3 * leaf - 4096)), PageOwners::nobody);
    EXPECT_EQ(bytes_by_owner(owners), (std::map<std::uint32_t, std::size_t>{{0, 2 * leaf}}));
}

TEST(PageOwners, ReleasedAreOnlyWholePages) {
    PageOwners owners;
    owners.claim(at(base), 5 * page_bytes, 7);
    owners.release(at(base + 100), 3 * page_bytes);
    EXPECT_EQ(owners.owner_of(at(base)), 7U);
    EXPECT_EQ(owners.owner_of(at(base + page_bytes)), PageOwners::nobody);
    EXPECT_EQ(owners.owner_of(at(base + 2 * page_bytes)), PageOwners::nobody);
    EXPECT_EQ(owners.owner_of(at(base + 3 * page_bytes)), 7U);
    EXPECT_EQ(bytes_by_owner(owners), (std::map<std::uint32_t, std::size_t>{{7, 3 * page_bytes}}));
    owners.release(at(base + 3 * leaf), leaf); // where nothing is
    owners.release(at(base), 10);
    EXPECT_EQ(owners.owner_of(at(base)), 7U);
}

TEST(PageOwners, RunsAreOfOneOwnerAndDoNotOverlap) {
    PageOwners owners;
    owners.claim(at(base), 3 * page_bytes, 1);
    owners.claim(at(base + page_bytes), page_bytes, 2);
    owners.claim(at(base + leaf - page_bytes), page_bytes, 2); // the last of a leaf
    std::map<std::uintptr_t, std::pair<std::size_t, std::uint32_t>> runs;
    owners.visit([&](std::byte* begin, std::size_t bytes, std::uint32_t owner) {
        runs[reinterpret_cast<std::uintptr_t>(begin)] = {bytes, owner};
    });
    const std::map<std::uintptr_t, std::pair<std::size_t, std::uint32_t>> expected{
        {base, {page_bytes, 1}},
        {base + page_bytes, {page_bytes, 2}},
        {base + 2 * page_bytes, {page_bytes, 1}},
        {base + leaf - page_bytes, {page_bytes, 2}}};
    EXPECT_EQ(runs, expected);
}

TEST(PageOwners, AddressesThatNobodyIsGivenAreLeftAlone) {
    PageOwners owners;
    const std::uintptr_t beyond = std::uintptr_t{1} << 47;
    owners.claim(at(beyond), page_bytes, 1);
    EXPECT_EQ(owners.owner_of(at(beyond)), PageOwners::nobody);
    owners.claim(at(beyond - page_bytes), 2 * page_bytes, 1);
    EXPECT_EQ(owners.owner_of(at(beyond - 1)), 1U);
    EXPECT_EQ(bytes_by_owner(owners), (std::map<std::uint32_t, std::size_t>{{1, page_bytes}}));
}

TEST(PageOwners, ThreadsClaimAtOnceWhileOthersLook) {
    PageOwners owners;
    static constexpr std::uint32_t threads = 4;
    constexpr std::size_t blocks = 3000;
    std::atomic<bool> done{false};
    std::thread reader([&] {
        while (!done) {
            owners.visit([](std::byte*, std::size_t bytes, std::uint32_t owner) {
                EXPECT_LT(owner, threads);
                EXPECT_EQ(bytes % page_bytes, 0U);
            });
        }
    });
    std::vector<std::thread> writers;
    for (std::uint32_t writer = 0; writer < threads; ++writer) {
        writers.emplace_back([&, writer] {
            for (std::size_t block = 0; block < blocks; ++block) { // all in the same leaves
                owners.claim(at(base + (block * threads + writer) * 8 * page_bytes), 8 * page_bytes,
                             writer);
            }
        });
    }
    for (std::thread& writer : writers) {
        writer.join();
    }
    done = true;
    reader.join();
    std::map<std::uint32_t, std::size_t> expected;
    for (std::uint32_t writer = 0; writer < threads; ++writer) {
        expected[writer] = blocks * 8 * page_bytes;
    }
    EXPECT_EQ(bytes_by_owner(owners), expected);
}

} // namespace
} // namespace warren::memory
