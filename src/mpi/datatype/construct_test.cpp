// Derived types of the shapes that programs use most.
#include "mpi/datatype/construct.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "mpi/datatype/buffer.hpp"
#include "mpi/datatype/type_table.hpp"

namespace warren::datatype {
namespace {

std::size_t steps_of(const Draft& draft) {
    return draft.type.layout == nullptr ? 0 : draft.type.layout->steps.size();
}

TEST(DerivedDatatypes, NeedOneStepForAMillionBlocks) {
    Draft vector;
    ASSERT_FALSE(make_vector(1'000'000, 1, 16, basic(MPI_DOUBLE), vector));
    EXPECT_EQ(steps_of(vector), 1U);
    EXPECT_EQ(vector.type.size, 8'000'000);
    EXPECT_EQ(vector.type.extent, 16 * 999'999 + 8);

    // Blocks that are named one by one, evenly spaced.
    std::vector<int> displacements(1000);
    for (std::size_t i = 0; i < displacements.size(); ++i) {
        displacements[i] = static_cast<int>(3 * i);
    }
    Draft indexed;
    ASSERT_FALSE(make_indexed(1000, {.same = 2}, {.values = displacements.data(), .wide = false}, 8,
                              basic(MPI_DOUBLE), indexed));
    EXPECT_EQ(steps_of(indexed), 1U);
    EXPECT_EQ(indexed.type.layout->steps[0].bytes, 16);
}

TEST(DerivedDatatypes, ListIrregularBlocksInOneStep) {
    std::vector<int> displacements(10'000);
    int at = 0;
    for (std::size_t i = 0; i < displacements.size(); ++i) {
        displacements[i] = at;
        at += 1 + static_cast<int>(i * i % 7);
    }
    Draft indexed;
    ASSERT_FALSE(make_indexed(10'000, {.same = 1}, {.values = displacements.data(), .wide = false},
                              4, basic(MPI_INT), indexed));
    EXPECT_EQ(steps_of(indexed), 1U);
    EXPECT_EQ(indexed.type.layout->places.size(), 10'000U);
    std::vector<int> numbers(static_cast<std::size_t>(at));
    std::iota(numbers.begin(), numbers.end(), 0);
    std::vector<int> packed(10'000);
    indexed.type.pack(numbers.data(), 1, packed.data());
    EXPECT_EQ(packed, displacements);

    // A regular part behind it stays a loop.
    for (std::size_t i = 5000; i < displacements.size(); ++i) {
        displacements[i] = displacements[4999] + 3 * static_cast<int>(i - 4999);
    }
    Draft half;
    ASSERT_FALSE(make_indexed(10'000, {.same = 1}, {.values = displacements.data(), .wide = false},
                              4, basic(MPI_INT), half));
    EXPECT_LE(steps_of(half), 3U);
    EXPECT_LE(half.type.layout->places.size(), 5010U);
}

TEST(DerivedDatatypes, AreCopiedPastTheCachesAlike) {
    // More than cache_bytes, in blocks of all ways to copy: words, odd sizes, whole lines.
    for (const MPI_Count length : {4, 8, 24, 100, 300, 5000}) {
        const MPI_Count stride = length + 100 + length % 8 * 3;
        const MPI_Count blocks = (MPI_Count{9} << 20) / std::max<MPI_Count>(length, 64);
        Draft vector;
        ASSERT_FALSE(make_vector(blocks, length, stride, basic(MPI_BYTE), vector));
        std::vector<std::byte> packed(static_cast<std::size_t>(vector.type.size));
        for (std::size_t i = 0; i < packed.size(); ++i) {
            packed[i] = static_cast<std::byte>(i * 7 + i / 251);
        }
        std::vector<std::byte> memory(static_cast<std::size_t>(blocks * stride + 3), std::byte{1});
        const MPI_Count cut = vector.type.size / 3;
        vector.type.unpack_part(packed.data(), 0, cut, memory.data() + 3, 1);
        vector.type.unpack_part(packed.data() + cut, cut, vector.type.size - cut, memory.data() + 3,
                                1);
        std::vector<std::byte> back(packed.size());
        vector.type.pack(memory.data() + 3, 1, back.data());
        ASSERT_EQ(std::memcmp(back.data(), packed.data(), packed.size()), 0) << length;
        for (MPI_Count i = 0; i < blocks; ++i) { // and nothing between the blocks
            const auto gap = static_cast<std::size_t>(3 + i * stride + length);
            ASSERT_EQ(memory[gap], std::byte{1});
            ASSERT_EQ(memory[gap + static_cast<std::size_t>(stride - length) - 1], std::byte{1});
        }
    }
}

TEST(DerivedDatatypes, ReachAnyPlaceOfHugeLayouts) {
    // 2^33 columns of 2^20 rows: 64 PiB of data. Only the places that are asked for exist.
    const MPI_Count columns = MPI_Count{1} << 33;
    const MPI_Count rows = MPI_Count{1} << 20;
    Draft column;
    Draft resized;
    Draft matrix;
    ASSERT_FALSE(make_vector(rows, 1, 64, basic(MPI_DOUBLE), column));
    ASSERT_FALSE(make_resized(column.type, 0, rows * 64, resized));
    ASSERT_FALSE(make_contiguous(columns, resized.type, matrix));
    EXPECT_EQ(matrix.type.size, columns * rows * 8);
    EXPECT_EQ(matrix.type.elements_in(matrix.type.size), columns * rows);
    for (const MPI_Count element :
         {MPI_Count{0}, rows - 1, rows, columns * rows / 3, columns * rows - 2}) {
        double values[2 * 8] = {};
        values[0] = 1.5;
        values[8] = 2.5;
        const auto base =
            reinterpret_cast<std::uintptr_t>(values) - static_cast<std::uintptr_t>(element * 64);
        double packed[2] = {};
        matrix.type.pack_part(reinterpret_cast<void*>(base), 1, element * 8, 16, packed);
        EXPECT_EQ(packed[0], 1.5) << element;
        EXPECT_EQ(packed[1], 2.5) << element;
        MPI_Count covered = 0;
        iovec pieces[3];
        EXPECT_EQ(matrix.type.pieces(reinterpret_cast<void*>(base), 1, element * 8, 16, pieces, 3,
                                     covered),
                  2U);
        EXPECT_EQ(pieces[1].iov_base, static_cast<void*>(values + 8));
        packed[1] = 3.5;
        matrix.type.unpack_part(packed, element * 8, 16, reinterpret_cast<void*>(base), 1);
        EXPECT_EQ(values[8], 3.5);
    }
}

TEST(DerivedDatatypes, JoinNeighbours) {
    Draft contiguous;
    ASSERT_FALSE(make_contiguous(100, basic(MPI_INT), contiguous));
    EXPECT_TRUE(contiguous.type.contiguous);
    EXPECT_EQ(contiguous.type.layout, nullptr);

    Draft vector;
    ASSERT_FALSE(make_vector(10, 5, 20, basic(MPI_INT), vector));
    EXPECT_TRUE(vector.type.contiguous) << "its blocks touch";

    const MPI_Count displacements[] = {0, 4, 8, 16};
    const int lengths[] = {1, 1, 2, 1};
    const Datatype* types[] = {&basic(MPI_INT), &basic(MPI_FLOAT), &basic(MPI_INT),
                               &basic(MPI_DOUBLE)};
    Draft structure;
    ASSERT_FALSE(make_struct(4, {.values = lengths, .wide = false}, {.values = displacements},
                             types, structure));
    EXPECT_TRUE(structure.type.contiguous);
    EXPECT_EQ(structure.type.extent, 24);
    EXPECT_EQ(structure.type.elements_in(16), 4);
    EXPECT_EQ(structure.type.elements_in(20), MPI_UNDEFINED);
}

TEST(DerivedDatatypes, PadAStructureAsC) {
    struct Record {
        double value;
        char letter;
    };
    const MPI_Count displacements[] = {offsetof(Record, value), offsetof(Record, letter)};
    const Datatype* types[] = {&basic(MPI_DOUBLE), &basic(MPI_CHAR)};
    Draft record;
    ASSERT_FALSE(make_struct(2, {.same = 1}, {.values = displacements}, types, record));
    EXPECT_EQ(record.type.extent, MPI_Count{sizeof(Record)});
    EXPECT_EQ(record.type.true_extent, 9);
    EXPECT_FALSE(record.type.contiguous);

    Draft resized;
    ASSERT_FALSE(make_resized(record.type, 0, 9, resized));
    EXPECT_TRUE(resized.type.contiguous);
}

TEST(DerivedDatatypes, TakeAbsoluteAddressesWithBottom) {
    int number = 42;
    double fraction = 0.5;
    const MPI_Count addresses[] = {reinterpret_cast<MPI_Aint>(&number),
                                   reinterpret_cast<MPI_Aint>(&fraction)};
    const Datatype* types[] = {&basic(MPI_INT), &basic(MPI_DOUBLE)};
    Draft both;
    ASSERT_FALSE(make_struct(2, {.same = 1}, {.values = addresses}, types, both));
    std::byte packed[12];
    both.type.pack(MPI_BOTTOM, 1, packed);
    number = 0;
    fraction = 0;
    both.type.unpack(packed, 12, MPI_BOTTOM, 1);
    EXPECT_EQ(number, 42);
    EXPECT_EQ(fraction, 0.5);
}

TEST(DerivedDatatypes, RefuseWhatIsTooLarge) {
    Draft draft;
    Draft half;
    ASSERT_FALSE(make_contiguous(MPI_Count{1} << 59, basic(MPI_BYTE), half));
    Error error = make_contiguous(5, half.type, draft);
    EXPECT_EQ(error.error_class(), MPI_ERR_VALUE_TOO_LARGE);
    error.drop();
    error = make_contiguous(MPI_Count{1} << 62, basic(MPI_DOUBLE), draft);
    EXPECT_EQ(error.error_class(), MPI_ERR_VALUE_TOO_LARGE);
    error.drop();
    error = make_vector(3, 1, MPI_Count{1} << 62, basic(MPI_INT), draft);
    EXPECT_EQ(error.error_class(), MPI_ERR_VALUE_TOO_LARGE);
    error.drop();
    error = make_vector(3, -1, 8, basic(MPI_INT), draft);
    EXPECT_EQ(error.error_class(), MPI_ERR_ARG);
    error.drop();
}

TEST(DerivedDatatypes, LiveAsLongAsSomebodyUsesThem) {
    TypeTable table;
    Draft draft;
    ASSERT_FALSE(make_vector(3, 1, 8, basic(MPI_INT), draft));
    MPI_Datatype handle = MPI_DATATYPE_NULL;
    ASSERT_FALSE(table.insert(std::move(draft), handle));
    const Datatype* type = table.find(handle);
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(TypeTable::handle_of(*type), handle);

    Draft user;
    ASSERT_FALSE(make_contiguous(2, *type, user));
    user.derived->contents.types = {type};
    MPI_Datatype user_handle = MPI_DATATYPE_NULL;
    ASSERT_FALSE(table.insert(std::move(user), user_handle));

    retain(*type); // a request
    ASSERT_FALSE(TypeTable::free(*type));
    EXPECT_EQ(table.find(handle), nullptr) << "the program's handle is gone";
    EXPECT_EQ(type->size, 12);
    release(*type);
    EXPECT_EQ(table.live(), 2U) << "the other type's contents";
    EXPECT_EQ(TypeTable::share(*type), handle);
    EXPECT_EQ(table.find(handle), type);
    ASSERT_FALSE(TypeTable::free(*type));
    ASSERT_FALSE(TypeTable::free(*table.find(user_handle)));
    EXPECT_EQ(table.live(), 0U);

    Error error = TypeTable::free(basic(MPI_INT));
    EXPECT_EQ(error.error_class(), MPI_ERR_TYPE);
    error.drop();
}

} // namespace
} // namespace warren::datatype
