// Copies between a program's buffer and a bounce buffer: every byte, none beside, at all
// alignments.

#include "mpi/transport/shm/copy_large.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace warren::transport {
namespace {

using Copy = std::function<void(void* to, const void* from, std::size_t bytes)>;

void copies_all_and_nothing_else(const Copy& copy) {
    constexpr std::size_t line = LargeCopy::line_bytes;
    constexpr unsigned char untouched = 0xA5;
    for (const std::size_t bytes : {0U, 1U, 63U, 64U, 65U, 127U, 1000U, 8192U, 16385U, 40000U}) {
        for (std::size_t to = 0; to < line; to += 7) {
            for (const std::size_t from : {std::size_t{0}, std::size_t{1}, std::size_t{33}, to}) {
                std::vector<unsigned char> source(bytes + line + 1);
                for (std::size_t i = 0; i < source.size(); ++i) {
                    source[i] = static_cast<unsigned char>(i * 31 >> 3);
                }
                std::vector<unsigned char> target(bytes + 3 * line, untouched);
                copy(target.data() + line + to, source.data() + from, bytes);
                for (std::size_t i = 0; i < target.size(); ++i) {
                    const bool inside = i >= line + to && i < line + to + bytes;
                    ASSERT_EQ(target[i], inside ? source[from + i - line - to] : untouched)
                        << bytes << " bytes from " << from << " to " << to << ", at " << i;
                }
            }
        }
    }
}

TEST(LargeCopy, puts_gets_and_passes_every_byte) {
    const LargeCopy copy;
    copies_all_and_nothing_else(
        [&](void* to, const void* from, std::size_t bytes) { copy.put(to, from, bytes); });
    copies_all_and_nothing_else(LargeCopy::pass);
    for (const std::uint64_t total : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
        copies_all_and_nothing_else([&](void* to, const void* from, std::size_t bytes) {
            copy.get(to, from, bytes, total);
        });
    }
}

TEST(LargeCopy, what_has_passed_is_there_with_the_word_that_says_so) {
    constexpr std::size_t bytes = 4096;
    constexpr int rounds = 2000;
    std::vector<unsigned char> shared(bytes);
    std::atomic<int> written{0};
    std::atomic<int> read{0};
    std::thread reader([&] {
        for (int round = 1; round <= rounds; ++round) {
            while (written.load(std::memory_order_acquire) < round) {
            }
            // The bytes written last may be the last to arrive.
            EXPECT_EQ(shared.back(), static_cast<unsigned char>(round));
            EXPECT_EQ(std::count(shared.begin(), shared.end(), static_cast<unsigned char>(round)),
                      static_cast<std::ptrdiff_t>(bytes));
            read.store(round, std::memory_order_release);
        }
    });
    for (int round = 1; round <= rounds; ++round) {
        const std::vector<unsigned char> data(bytes, static_cast<unsigned char>(round));
        LargeCopy::pass(shared.data(), data.data(), bytes);
        written.store(round, std::memory_order_release);
        while (read.load(std::memory_order_acquire) < round) {
        }
    }
    reader.join();
}

} // namespace
} // namespace warren::transport
