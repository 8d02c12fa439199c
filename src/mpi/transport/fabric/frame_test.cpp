#include "mpi/transport/fabric/frame.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace warren::transport::fabric {
namespace {

constexpr std::uint64_t secret = 0x1234567890abcdef;
using Bytes = std::vector<std::byte>;
using Fault = FrameReader::Fault;

void append(Bytes& frame, const void* data, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    frame.insert(frame.end(), from, from + bytes);
}

// A frame with a cell of each of these sizes; of more than inline_bytes: a block.
Bytes frame_of(const std::vector<std::uint32_t>& sizes) {
    Bytes frame(sizeof(FrameHeader));
    for (const std::uint32_t size : sizes) {
        const bool block = size > inline_bytes;
        const CellHeader cell = {.kind = 2,
                                 .block = block ? std::uint16_t{1} : std::uint16_t{0},
                                 .slot = 3,
                                 .sender = 4,
                                 .context = 5,
                                 .source = 6,
                                 .tag = 7,
                                 .bytes = size,
                                 .reserved = 0};
        append(frame, &cell, sizeof cell);
        frame.resize(frame.size() + (block ? extra_bytes : 0), std::byte{0xee});
        const Bytes data(size, static_cast<std::byte>(size));
        append(frame, data.data(), size);
        frame.resize(frame.size() + padded(size) - size);
    }
    const FrameHeader header = {.magic = frame_magic,
                                .bytes = static_cast<std::uint32_t>(frame.size()),
                                .secret = secret,
                                .source = 1,
                                .number = 0,
                                .consumed = 0,
                                .cells = static_cast<std::uint32_t>(sizes.size())};
    std::memcpy(frame.data(), &header, sizeof header);
    return frame;
}

// Reads all of a frame that is accepted, each byte of it.
std::uint64_t read_all(FrameReader& reader) {
    std::uint64_t sum = 0;
    FrameCell cell;
    while (reader.next(cell)) {
        for (std::uint32_t byte = 0; byte < cell.header.bytes; ++byte) {
            sum += static_cast<std::uint8_t>(cell.data[byte]);
        }
        for (std::size_t byte = 0; cell.extra != nullptr && byte < extra_bytes; ++byte) {
            sum += static_cast<std::uint8_t>(cell.extra[byte]);
        }
    }
    return sum;
}

TEST(Frame, GivesBackItsCells) {
    const std::vector<std::uint32_t> sizes = {0, 1, 8, 40, 41, 5000, 0};
    const Bytes frame = frame_of(sizes);
    FrameReader reader(frame, secret);
    ASSERT_EQ(reader.fault(), Fault::none);
    FrameCell cell;
    for (const std::uint32_t size : sizes) {
        ASSERT_TRUE(reader.next(cell));
        EXPECT_EQ(cell.header.bytes, size);
        EXPECT_EQ(cell.extra != nullptr, size > inline_bytes);
        EXPECT_EQ(cell.header.tag, 7);
        for (std::uint32_t byte = 0; byte < size; ++byte) {
            ASSERT_EQ(cell.data[byte], static_cast<std::byte>(size));
        }
    }
    EXPECT_FALSE(reader.next(cell));
}

TEST(Frame, HoldsTheLargestBlock) {
    const Bytes frame = frame_of({block_bytes_limit});
    EXPECT_EQ(frame.size(), frame_bytes_limit);
    EXPECT_EQ(FrameReader(frame, secret).fault(), Fault::none);
    EXPECT_NE(FrameReader(frame_of({block_bytes_limit + 1}), secret).fault(), Fault::none);
}

TEST(Frame, OfAnotherJobIsRefused) {
    EXPECT_EQ(FrameReader(frame_of({8}), secret + 1).fault(), Fault::secret);
}

TEST(Frame, CutAtAnyByteIsRefused) {
    const Bytes frame = frame_of({8, 100, 3});
    for (std::size_t bytes = 0; bytes < frame.size(); ++bytes) {
        // A copy of its own, so that a sanitizer sees a read behind it.
        const Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(bytes));
        ASSERT_NE(FrameReader(cut, secret).fault(), Fault::none) << bytes;
    }
    Bytes longer = frame;
    longer.resize(frame.size() + 8);
    EXPECT_EQ(FrameReader(longer, secret).fault(), Fault::length);
}

TEST(Frame, WithLengthsThatLieIsRefused) {
    for (const std::uint32_t wrong : {41U, 4096U, 0x7fffffffU, 0xfffffff8U, 0xffffffffU}) {
        for (const std::uint16_t block : {std::uint16_t{0}, std::uint16_t{1}}) {
            Bytes frame = frame_of({8, 8});
            CellHeader cell;
            std::byte* const place = frame.data() + sizeof(FrameHeader);
            std::memcpy(&cell, place, sizeof cell);
            cell.bytes = wrong;
            cell.block = block;
            std::memcpy(place, &cell, sizeof cell);
            EXPECT_EQ(FrameReader(frame, secret).fault(), Fault::cells) << wrong;
        }
    }
}

// Random bytes, and frames with some bytes changed whose header passes: what is accepted must be
// readable. Run it under AddressSanitizer.
TEST(Frame, OfHostileBytesIsNeverReadBeyondItsEnd) {
    std::minstd_rand random(20260101);
    std::uint64_t accepted = 0;
    std::uint64_t sum = 0;
    for (int turn = 0; turn < 200'000; ++turn) {
        Bytes frame;
        if (turn % 4 == 0) {
            frame.resize(random() % 300);
            for (std::byte& byte : frame) {
                byte = static_cast<std::byte>(random());
            }
        } else {
            frame = frame_of({static_cast<std::uint32_t>(random() % 60),
                              static_cast<std::uint32_t>(random() % 60)});
            for (std::uint32_t changes = random() % 4; changes > 0; --changes) {
                // Beside the secret, which hides what is behind it.
                const std::size_t at = random() % frame.size();
                if (at < 8 || at >= 16) {
                    frame[at] = static_cast<std::byte>(random());
                }
            }
        }
        FrameReader reader(frame, secret);
        if (reader.fault() == Fault::none) {
            ++accepted;
            sum += read_all(reader);
        }
    }
    EXPECT_GT(accepted, 10'000U); // the changes must reach the cells
    EXPECT_GT(sum, 0U);
}

} // namespace
} // namespace warren::transport::fabric
