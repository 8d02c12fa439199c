// Marks of bytes, against a list of them.
#include "mpi/io/byte_marks.hpp"

#include <array>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace warren::io {
namespace {

TEST(ByteMarks, random_stretches_are_found_again) {
    constexpr std::uint64_t bytes = 500;
    std::mt19937 random(3);
    for (int round = 0; round < 500; ++round) {
        std::array<std::byte, bytes / ByteMarks::bytes_per_mark + 1> map;
        map.fill(std::byte{0xa5});
        const ByteMarks marks(map.data());
        marks.clear(0, bytes);
        std::vector<bool> model(bytes);
        for (auto stretch = random() % 6; stretch > 0; --stretch) {
            const std::uint64_t begin = random() % bytes;
            const std::uint64_t end = begin + random() % (bytes - begin);
            marks.mark(begin, end);
            for (std::uint64_t byte = begin; byte < end; ++byte) {
                model[byte] = true;
            }
        }
        for (std::uint64_t at = random() % bytes; at < bytes;) {
            const std::uint64_t next = marks.change(at, bytes);
            ASSERT_GT(next, at);
            for (std::uint64_t byte = at; byte < next; ++byte) {
                ASSERT_EQ(model[byte], marks.has(at)) << byte;
            }
            ASSERT_TRUE(next == bytes || model[next] != model[at]);
            at = next;
        }
    }
}

} // namespace
} // namespace warren::io
