#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "mpi/datatype/construct.hpp"
#include "mpi/datatype/external32.hpp"

namespace warren::datatype {
namespace {

using Bytes = std::vector<int>;

template <typename Value>
Bytes packed(MPI_Datatype handle, const Value& value) {
    const Datatype& type = basic(handle);
    std::vector<std::byte> buffer(static_cast<std::size_t>(external_size(type)));
    pack_external(type, &value, 1, buffer.data());
    Value back;
    std::memset(static_cast<void*>(&back), 0x55, sizeof back);
    unpack_external(type, buffer.data(), &back, 1);
    EXPECT_TRUE(back == value);
    Bytes bytes;
    for (const std::byte byte : buffer) {
        bytes.push_back(std::to_integer<int>(byte));
    }
    return bytes;
}

TEST(External32, IsBigEndian) {
    EXPECT_EQ(packed(MPI_INT, 0x01020304), (Bytes{1, 2, 3, 4}));
    EXPECT_EQ(packed(MPI_SHORT, short{-2}), (Bytes{255, 254}));
    EXPECT_EQ(packed(MPI_CHAR, 'a'), (Bytes{97}));
    EXPECT_EQ(packed(MPI_DOUBLE, 1.0), (Bytes{0x3f, 0xf0, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(packed(MPI_LONG_LONG, 258LL), (Bytes{0, 0, 0, 0, 0, 0, 1, 2}));
}

TEST(External32, HasTheStandardsSizes) {
    EXPECT_EQ(packed(MPI_LONG, -2L), (Bytes{255, 255, 255, 254}));
    EXPECT_EQ(packed(MPI_UNSIGNED_LONG, 0xfffffffeUL), (Bytes{255, 255, 255, 254}));
    EXPECT_EQ(packed(MPI_WCHAR, L'ä'), (Bytes{0, 0xe4}));
    EXPECT_EQ(packed(MPI_LONG_DOUBLE, -1.0L),
              (Bytes{0xbf, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(external_size(basic(MPI_C_LONG_DOUBLE_COMPLEX)), 32);
    EXPECT_EQ(external_size(basic(MPI_LONG_INT)), 8);
    EXPECT_EQ(external_size(basic(MPI_SHORT_INT)), 6);
    EXPECT_EQ(external_size(basic(MPI_AINT)), 8);
    EXPECT_EQ(external_size(basic(MPI_C_BOOL)), 1);
    EXPECT_EQ(external_size(basic(MPI_LOGICAL)), 4);
}

TEST(External32, SwapsEachHalfOfComplexNumbersAndPairs) {
    struct Complex {
        float real;
        float imaginary;
        bool operator==(const Complex&) const = default;
    };
    EXPECT_EQ(packed(MPI_C_COMPLEX, Complex{1, -2}), (Bytes{0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0}));
    struct ShortInt {
        short value;
        int index;
        bool operator==(const ShortInt&) const = default;
    };
    EXPECT_EQ(packed(MPI_SHORT_INT, ShortInt{1, 2}), (Bytes{0, 1, 0, 0, 0, 2}));
}

// A structure of a strided array and pairs, many of them: more than a portion at once.
TEST(External32, FollowsTheTypeMap) {
    struct Item {
        long numbers[3]; // the middle one is not sent
        struct {
            double value;
            int index;
        } pair[2];
        char letter;
    };
    Draft ends;
    ASSERT_FALSE(make_vector(2, 1, 2 * sizeof(long), basic(MPI_LONG), ends));
    Draft item;
    const Datatype* const types[] = {&ends.type, &basic(MPI_DOUBLE_INT), &basic(MPI_CHAR)};
    const MPI_Count lengths[] = {1, 2, 1};
    const MPI_Count places[] = {0, offsetof(Item, pair), offsetof(Item, letter)};
    ASSERT_FALSE(make_struct(3, {.values = lengths}, {.values = places}, types, item));
    ASSERT_EQ(item.type.extent, static_cast<MPI_Count>(sizeof(Item)));
    constexpr MPI_Count item_bytes = 2 * 4 + 2 * (8 + 4) + 1;
    ASSERT_EQ(external_size(item.type), item_bytes);

    constexpr std::size_t items = 300;
    std::vector<Item> sent(items);
    for (std::size_t i = 0; i < items; ++i) {
        const int n = static_cast<int>(i);
        sent[i] = {{n, 77, -n}, {{n + 0.5, n}, {n + 0.25, -n}}, static_cast<char>(n % 128)};
    }
    std::vector<std::byte> buffer(items * item_bytes + 1, std::byte{0x55});
    pack_external(item.type, sent.data(), items, buffer.data());
    EXPECT_EQ(buffer.back(), std::byte{0x55});
    const std::byte* last = &buffer[(items - 1) * item_bytes];
    EXPECT_EQ(last[2], std::byte{299 >> 8});
    EXPECT_EQ(last[3], std::byte{299 & 0xff});
    EXPECT_EQ(last[item_bytes - 1], std::byte{299 % 128});

    std::vector<Item> got(items);
    unpack_external(item.type, buffer.data(), got.data(), items);
    for (std::size_t i = 0; i < items; ++i) {
        EXPECT_EQ(got[i].numbers[0], sent[i].numbers[0]);
        EXPECT_EQ(got[i].numbers[1], 0);
        EXPECT_EQ(got[i].numbers[2], sent[i].numbers[2]);
        EXPECT_EQ(got[i].pair[1].value, sent[i].pair[1].value);
        EXPECT_EQ(got[i].pair[1].index, sent[i].pair[1].index);
        EXPECT_EQ(got[i].letter, sent[i].letter);
    }
}

} // namespace
} // namespace warren::datatype
