// The predefined table against what MPICH 5.0.2's ABI library says of every handle, and the fast
// path for contiguous types.
#include "mpi/datatype/datatype.hpp"

#include <array>
#include <cstring>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

namespace warren::datatype {
namespace {

struct Expected {
    const char* constant;
    MPI_Datatype handle;
    MPI_Count size;
    MPI_Count extent;
    MPI_Count true_extent;
    const char* name;
};

// Lower bounds are 0 everywhere.
const Expected expectations[] = {
    {"MPI_AINT", MPI_AINT, 8, 8, 8, "MPI_AINT"},
    {"MPI_COUNT", MPI_COUNT, 8, 8, 8, "MPI_COUNT"},
    {"MPI_OFFSET", MPI_OFFSET, 8, 8, 8, "MPI_OFFSET"},
    {"MPI_PACKED", MPI_PACKED, 1, 1, 1, "MPI_PACKED"},
    {"MPI_SHORT", MPI_SHORT, 2, 2, 2, "MPI_SHORT"},
    {"MPI_INT", MPI_INT, 4, 4, 4, "MPI_INT"},
    {"MPI_LONG", MPI_LONG, 8, 8, 8, "MPI_LONG"},
    {"MPI_LONG_LONG", MPI_LONG_LONG, 8, 8, 8, "MPI_LONG_LONG_INT"},
    {"MPI_UNSIGNED_SHORT", MPI_UNSIGNED_SHORT, 2, 2, 2, "MPI_UNSIGNED_SHORT"},
    {"MPI_UNSIGNED", MPI_UNSIGNED, 4, 4, 4, "MPI_UNSIGNED"},
    {"MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG, 8, 8, 8, "MPI_UNSIGNED_LONG"},
    {"MPI_UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG, 8, 8, 8, "MPI_UNSIGNED_LONG_LONG"},
    {"MPI_FLOAT", MPI_FLOAT, 4, 4, 4, "MPI_FLOAT"},
    {"MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX, 8, 8, 8, "MPI_C_COMPLEX"},
    {"MPI_CXX_FLOAT_COMPLEX", MPI_CXX_FLOAT_COMPLEX, 8, 8, 8, "MPI_CXX_FLOAT_COMPLEX"},
    {"MPI_DOUBLE", MPI_DOUBLE, 8, 8, 8, "MPI_DOUBLE"},
    {"MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX, 16, 16, 16, "MPI_C_DOUBLE_COMPLEX"},
    {"MPI_CXX_DOUBLE_COMPLEX", MPI_CXX_DOUBLE_COMPLEX, 16, 16, 16, "MPI_CXX_DOUBLE_COMPLEX"},
    {"MPI_LOGICAL", MPI_LOGICAL, 4, 4, 4, "MPI_LOGICAL"},
    {"MPI_INTEGER", MPI_INTEGER, 4, 4, 4, "MPI_INTEGER"},
    {"MPI_REAL", MPI_REAL, 4, 4, 4, "MPI_REAL"},
    {"MPI_COMPLEX", MPI_COMPLEX, 8, 8, 8, "MPI_COMPLEX"},
    {"MPI_DOUBLE_PRECISION", MPI_DOUBLE_PRECISION, 8, 8, 8, "MPI_DOUBLE_PRECISION"},
    {"MPI_DOUBLE_COMPLEX", MPI_DOUBLE_COMPLEX, 16, 16, 16, "MPI_DOUBLE_COMPLEX"},
    {"MPI_CHARACTER", MPI_CHARACTER, 1, 1, 1, "MPI_CHARACTER"},
    {"MPI_LONG_DOUBLE", MPI_LONG_DOUBLE, 16, 16, 16, "MPI_LONG_DOUBLE"},
    {"MPI_C_LONG_DOUBLE_COMPLEX", MPI_C_LONG_DOUBLE_COMPLEX, 32, 32, 32,
     "MPI_C_LONG_DOUBLE_COMPLEX"},
    {"MPI_CXX_LONG_DOUBLE_COMPLEX", MPI_CXX_LONG_DOUBLE_COMPLEX, 32, 32, 32,
     "MPI_CXX_LONG_DOUBLE_COMPLEX"},
    {"MPI_FLOAT_INT", MPI_FLOAT_INT, 8, 8, 8, "MPI_FLOAT_INT"},
    {"MPI_DOUBLE_INT", MPI_DOUBLE_INT, 12, 16, 12, "MPI_DOUBLE_INT"},
    {"MPI_LONG_INT", MPI_LONG_INT, 12, 16, 12, "MPI_LONG_INT"},
    {"MPI_2INT", MPI_2INT, 8, 8, 8, "MPI_2INT"},
    {"MPI_SHORT_INT", MPI_SHORT_INT, 6, 8, 8, "MPI_SHORT_INT"},
    {"MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT, 20, 32, 20, "MPI_LONG_DOUBLE_INT"},
    {"MPI_2REAL", MPI_2REAL, 8, 8, 8, "MPI_2REAL"},
    {"MPI_2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION, 16, 16, 16, "MPI_2DOUBLE_PRECISION"},
    {"MPI_2INTEGER", MPI_2INTEGER, 8, 8, 8, "MPI_2INTEGER"},
    {"MPI_C_BOOL", MPI_C_BOOL, 1, 1, 1, "MPI_C_BOOL"},
    {"MPI_CXX_BOOL", MPI_CXX_BOOL, 1, 1, 1, "MPI_CXX_BOOL"},
    {"MPI_WCHAR", MPI_WCHAR, 4, 4, 4, "MPI_WCHAR"},
    {"MPI_INT8_T", MPI_INT8_T, 1, 1, 1, "MPI_INT8_T"},
    {"MPI_UINT8_T", MPI_UINT8_T, 1, 1, 1, "MPI_UINT8_T"},
    {"MPI_CHAR", MPI_CHAR, 1, 1, 1, "MPI_CHAR"},
    {"MPI_SIGNED_CHAR", MPI_SIGNED_CHAR, 1, 1, 1, "MPI_SIGNED_CHAR"},
    {"MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR, 1, 1, 1, "MPI_UNSIGNED_CHAR"},
    {"MPI_BYTE", MPI_BYTE, 1, 1, 1, "MPI_BYTE"},
    {"MPI_INT16_T", MPI_INT16_T, 2, 2, 2, "MPI_INT16_T"},
    {"MPI_UINT16_T", MPI_UINT16_T, 2, 2, 2, "MPI_UINT16_T"},
    {"MPI_INT32_T", MPI_INT32_T, 4, 4, 4, "MPI_INT32_T"},
    {"MPI_UINT32_T", MPI_UINT32_T, 4, 4, 4, "MPI_UINT32_T"},
    {"MPI_INT64_T", MPI_INT64_T, 8, 8, 8, "MPI_INT64_T"},
    {"MPI_UINT64_T", MPI_UINT64_T, 8, 8, 8, "MPI_UINT64_T"},
    {"MPI_LOGICAL1", MPI_LOGICAL1, 1, 1, 1, "MPI_LOGICAL1"},
    {"MPI_INTEGER1", MPI_INTEGER1, 1, 1, 1, "MPI_INTEGER1"},
    {"MPI_LOGICAL2", MPI_LOGICAL2, 2, 2, 2, "MPI_LOGICAL2"},
    {"MPI_INTEGER2", MPI_INTEGER2, 2, 2, 2, "MPI_INTEGER2"},
    {"MPI_REAL2", MPI_REAL2, 2, 2, 2, "MPI_REAL2"},
    {"MPI_LOGICAL4", MPI_LOGICAL4, 4, 4, 4, "MPI_LOGICAL4"},
    {"MPI_INTEGER4", MPI_INTEGER4, 4, 4, 4, "MPI_INTEGER4"},
    {"MPI_REAL4", MPI_REAL4, 4, 4, 4, "MPI_REAL4"},
    {"MPI_COMPLEX4", MPI_COMPLEX4, 4, 4, 4, "MPI_COMPLEX4"},
    {"MPI_LOGICAL8", MPI_LOGICAL8, 8, 8, 8, "MPI_LOGICAL8"},
    {"MPI_INTEGER8", MPI_INTEGER8, 8, 8, 8, "MPI_INTEGER8"},
    {"MPI_REAL8", MPI_REAL8, 8, 8, 8, "MPI_REAL8"},
    {"MPI_COMPLEX8", MPI_COMPLEX8, 8, 8, 8, "MPI_COMPLEX8"},
    {"MPI_LOGICAL16", MPI_LOGICAL16, 16, 16, 16, "MPI_LOGICAL16"},
    {"MPI_INTEGER16", MPI_INTEGER16, 16, 16, 16, "MPI_INTEGER16"},
    {"MPI_REAL16", MPI_REAL16, 16, 16, 16, "MPI_REAL16"},
    {"MPI_COMPLEX16", MPI_COMPLEX16, 16, 16, 16, "MPI_COMPLEX16"},
    {"MPI_COMPLEX32", MPI_COMPLEX32, 32, 32, 32, "MPI_COMPLEX32"},
};

TEST(PredefinedDatatypes, HaveTheSizesOfMpichsAbiLibrary) {
    for (const Expected& expected : expectations) {
        SCOPED_TRACE(expected.constant);
        const Datatype* type = predefined(expected.handle);
        ASSERT_NE(type, nullptr);
        EXPECT_EQ(type, &basic(expected.handle));
        EXPECT_EQ(type->size, expected.size);
        EXPECT_EQ(type->lower_bound, 0);
        EXPECT_EQ(type->extent, expected.extent);
        EXPECT_EQ(type->true_lower_bound, 0);
        EXPECT_EQ(type->true_extent, expected.true_extent);
        EXPECT_STREQ(type->predefined_name(), expected.name);
        EXPECT_TRUE(type->committed);
        EXPECT_NE(type->element, Element::none);
        EXPECT_EQ(type->contiguous, expected.size == expected.extent);
        EXPECT_EQ(type->extent % type->alignment, 0);
    }
}

TEST(PredefinedDatatypes, AreFoundByTheirHandlesOnly) {
    std::size_t found = 0;
    for (std::uintptr_t handle = 0; handle < 0x2000; ++handle) {
        const Datatype* type = predefined(reinterpret_cast<MPI_Datatype>(handle));
        found += type != nullptr ? 1 : 0;
    }
    EXPECT_EQ(found, std::size(expectations));
    EXPECT_EQ(predefined(MPI_DATATYPE_NULL), nullptr);
    EXPECT_EQ(predefined(reinterpret_cast<MPI_Datatype>(~std::uintptr_t{0})), nullptr);
}

TEST(PredefinedDatatypes, HaveAShortSizeWhenTheyHaveNoGaps) {
    for (std::uintptr_t index = 0; index < predefined_limit; ++index) {
        const Datatype* type = predefined(reinterpret_cast<MPI_Datatype>(predefined_first + index));
        const bool is_short = type != nullptr && type->contiguous;
        EXPECT_EQ(short_sizes[index], is_short ? type->size : too_long) << index;
    }
    EXPECT_EQ(short_sizes[reinterpret_cast<std::uintptr_t>(MPI_INT) - predefined_first], 4);
}

TEST(PredefinedDatatypes, PackContiguousElementsAsTheyAre) {
    std::array<int, 100> numbers{};
    std::iota(numbers.begin(), numbers.end(), 0);
    std::array<int, 100> packed{};
    const Datatype& type = basic(MPI_INT);
    EXPECT_EQ(type.one_piece(numbers.data(), 100), numbers.data());
    type.pack(numbers.data(), 100, packed.data());
    EXPECT_EQ(packed, numbers);
    std::array<int, 100> unpacked{};
    type.unpack(packed.data(), 10, unpacked.data(), 100);
    EXPECT_EQ(unpacked[1], 1);
    EXPECT_EQ(unpacked[2], 2) << "its lower two bytes";
    EXPECT_EQ(unpacked[3], 0);
}

TEST(PredefinedDatatypes, LeaveTheGapsOfPairsAlone) {
    struct ShortInt {
        short value;
        short gap;
        int index;
    };
    std::array<ShortInt, 3> pairs{{{1, 99, 10}, {2, 99, 20}, {3, 99, 30}}};
    std::array<std::byte, 18> packed{};
    const Datatype& type = basic(MPI_SHORT_INT);
    EXPECT_EQ(type.one_piece(pairs.data(), 1), nullptr);
    type.pack(pairs.data(), 3, packed.data());
    std::array<ShortInt, 3> unpacked{{{0, 7, 0}, {0, 7, 0}, {0, 7, 0}}};
    type.unpack(packed.data(), 18, unpacked.data(), 3);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(unpacked[i].value, pairs[i].value);
        EXPECT_EQ(unpacked[i].gap, 7);
        EXPECT_EQ(unpacked[i].index, pairs[i].index);
    }

    struct DoubleInt {
        double value;
        int index;
        int gap;
    };
    std::array<DoubleInt, 2> two{{{1.5, 10, 99}, {2.5, 20, 99}}};
    const Datatype& larger = basic(MPI_DOUBLE_INT);
    EXPECT_EQ(larger.one_piece(two.data(), 1), two.data());
    EXPECT_EQ(larger.one_piece(two.data(), 2), nullptr);
    std::array<std::byte, 24> packed_two{};
    larger.pack(two.data(), 2, packed_two.data());
    std::array<DoubleInt, 2> back{{{0, 0, 7}, {0, 0, 7}}};
    larger.unpack(packed_two.data(), 24, back.data(), 2);
    EXPECT_EQ(back[1].value, 2.5);
    EXPECT_EQ(back[1].index, 20);
    EXPECT_EQ(back[0].gap, 7);
}

TEST(PredefinedDatatypes, CountElementsInBytes) {
    const Datatype& type = basic(MPI_INT);
    EXPECT_EQ(type.count_in(12), 3);
    EXPECT_EQ(type.elements_in(12), 3);
    EXPECT_EQ(type.count_in(13), MPI_UNDEFINED);
    EXPECT_EQ(type.elements_in(13), MPI_UNDEFINED);
    // Pairs count as two basic elements, as in MPICH.
    const Datatype& pair = basic(MPI_SHORT_INT);
    EXPECT_EQ(pair.count_in(6), 1);
    EXPECT_EQ(pair.elements_in(6), 2);
    EXPECT_EQ(pair.elements_in(8), 3);
    EXPECT_EQ(pair.elements_in(9), MPI_UNDEFINED);
    EXPECT_EQ(pair.count_in(8), MPI_UNDEFINED);
}

TEST(PredefinedDatatypes, CatchOverflowOfSizes) {
    MPI_Count bytes = 0;
    EXPECT_TRUE(basic(MPI_INT).bytes_of(MPI_Count{1} << 60, bytes));
    EXPECT_FALSE(basic(MPI_INT).bytes_of(MPI_Count{1} << 61, bytes));
}

} // namespace
} // namespace warren::datatype
