// Derived types against a naive interpreter of the standard's type maps (MPI 5.0, 5.1), on random
// nested types, and the shapes that programs use most.
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

// A type map as the standard defines it, entry by entry.
struct TypeMap {
    struct Entry {
        std::uint8_t basic; // handle - MPI_DATATYPE_NULL
        MPI_Count size;
        MPI_Count offset;
    };
    std::vector<Entry> entries;
    std::vector<MPI_Count> lower_marks;
    std::vector<MPI_Count> upper_marks;
    MPI_Count padding = 0; // epsilon, at the end

    MPI_Count lower() const {
        if (!lower_marks.empty()) {
            return *std::min_element(lower_marks.begin(), lower_marks.end());
        }
        MPI_Count low = entries.empty() ? 0 : entries[0].offset;
        for (const Entry& entry : entries) {
            low = std::min(low, entry.offset);
        }
        return low;
    }
    MPI_Count upper() const {
        if (!upper_marks.empty()) {
            return *std::max_element(upper_marks.begin(), upper_marks.end());
        }
        MPI_Count high = entries.empty() ? 0 : entries[0].offset + entries[0].size;
        for (const Entry& entry : entries) {
            high = std::max(high, entry.offset + entry.size);
        }
        return high + padding;
    }
    MPI_Count extent() const { return upper() - lower(); }
    MPI_Count size() const {
        return std::accumulate(entries.begin(), entries.end(), MPI_Count{0},
                               [](MPI_Count sum, const Entry& entry) { return sum + entry.size; });
    }
    // Adds another map's entries; returns the upper bound that its padded end has here.
    void add(const TypeMap& other, MPI_Count offset) {
        for (Entry entry : other.entries) {
            entry.offset += offset;
            entries.push_back(entry);
        }
        for (const MPI_Count mark : other.lower_marks) {
            lower_marks.push_back(mark + offset);
        }
        for (const MPI_Count mark : other.upper_marks) {
            upper_marks.push_back(mark + offset);
        }
        if (!other.entries.empty() && other.upper_marks.empty()) {
            padded_high_ =
                std::max(padded_high_.value_or(other.upper() + offset), other.upper() + offset);
        }
    }
    // The padding of what was added stays at the end (a C structure of structures).
    void settle() {
        if (padded_high_ && upper_marks.empty()) {
            padding = 0;
            padding = *padded_high_ - upper();
        }
    }
    void pad(MPI_Count alignment) {
        if (upper_marks.empty() && !entries.empty()) {
            const MPI_Count rounded = (extent() + alignment - 1) / alignment * alignment;
            padding += rounded - extent();
        }
    }

  private:
    std::optional<MPI_Count> padded_high_;
};

struct Pair {
    TypeMap map;
    Draft draft;
};

class Generator {
  public:
    explicit Generator(unsigned seed) : random_(seed) {}

    Pair make(int depth) {
        if (depth == 0 || chance(5)) {
            return leaf();
        }
        while (true) {
            Pair made = derive(depth);
            if (made.map.entries.size() <= 3000) {
                return made;
            }
        }
    }

    MPI_Count number(MPI_Count low, MPI_Count high) {
        return std::uniform_int_distribution<MPI_Count>(low, high)(random_);
    }

  private:
    bool chance(int percent) { return number(0, 99) < percent; }

    Pair leaf() {
        static const MPI_Datatype handles[] = {MPI_CHAR,        MPI_SHORT,     MPI_INT,
                                               MPI_DOUBLE,      MPI_SHORT_INT, MPI_DOUBLE_INT,
                                               MPI_LONG_DOUBLE, MPI_C_BOOL};
        const MPI_Datatype handle = handles[number(0, std::size(handles) - 1)];
        const Datatype& type = basic(handle);
        Pair pair;
        const BasicParts parts = parts_of(type.basic);
        pair.map.entries.push_back({type.basic, parts.first, 0});
        if (parts.second != 0) {
            pair.map.entries.push_back({type.basic, parts.second, parts.second_offset});
            pair.map.padding = type.extent - (parts.second_offset + parts.second);
        }
        make_duplicate(type, pair.draft);
        return pair;
    }

    Pair derive(int depth) {
        Pair pair;
        TypeMap& map = pair.map;
        const int kind = static_cast<int>(number(0, 8));
        if (kind == 7) { // struct
            const MPI_Count count = number(0, 4);
            std::vector<Pair> members;
            std::vector<int> lengths;
            std::vector<MPI_Count> displacements;
            std::vector<const Datatype*> types;
            MPI_Count at = number(-64, 64);
            MPI_Count alignment = 1;
            for (MPI_Count i = 0; i < count; ++i) {
                members.push_back(make(depth - 1));
            }
            for (const Pair& member : members) {
                lengths.push_back(static_cast<int>(number(0, 3)));
                displacements.push_back(at);
                types.push_back(&member.draft.type);
                for (int j = 0; j < lengths.back(); ++j) {
                    map.add(member.map, at + j * member.map.extent());
                }
                if (lengths.back() > 0) {
                    alignment = std::max<MPI_Count>(alignment, member.draft.type.alignment);
                }
                at += chance(50) ? lengths.back() * member.map.extent() : number(-100, 200);
            }
            map.settle();
            map.pad(alignment);
            EXPECT_FALSE(make_struct(count, {.values = lengths.data(), .wide = false},
                                     {.values = displacements.data()}, types.data(), pair.draft));
            return pair;
        }
        const Pair old = make(depth - 1);
        const Datatype& type = old.draft.type;
        const MPI_Count extent = old.map.extent();
        switch (kind) {
        case 0: {
            const MPI_Count count = number(0, 5);
            for (MPI_Count i = 0; i < count; ++i) {
                map.add(old.map, i * extent);
            }
            map.settle();
            EXPECT_FALSE(make_contiguous(count, type, pair.draft));
            break;
        }
        case 1:
        case 2: {
            const MPI_Count count = number(0, 5);
            const MPI_Count length = number(0, 4);
            const MPI_Count stride = chance(50) ? number(-4, 8) * extent : number(-100, 200);
            for (MPI_Count i = 0; i < count; ++i) {
                for (MPI_Count j = 0; j < length; ++j) {
                    map.add(old.map, i * stride + j * extent);
                }
            }
            map.settle();
            EXPECT_FALSE(make_vector(count, length, stride, type, pair.draft));
            break;
        }
        case 3:
        case 4: {
            const MPI_Count count = chance(20) ? number(8, 40) : number(0, 6);
            std::vector<int> lengths;
            std::vector<int> displacements;
            const MPI_Count unit = kind == 3 ? extent : 1;
            int at = static_cast<int>(number(-20, 20));
            for (MPI_Count i = 0; i < count; ++i) {
                lengths.push_back(static_cast<int>(number(0, 3)));
                displacements.push_back(at);
                for (int j = 0; j < lengths.back(); ++j) {
                    map.add(old.map, at * unit + j * extent);
                }
                at += static_cast<int>(chance(60) ? lengths.back() * (kind == 3 ? 1 : extent)
                                                  : number(-9, 30));
            }
            map.settle();
            EXPECT_FALSE(make_indexed(count, {.values = lengths.data(), .wide = false},
                                      {.values = displacements.data(), .wide = false}, unit, type,
                                      pair.draft));
            break;
        }
        case 5: {
            const MPI_Count lower = number(-50, 50);
            const MPI_Count length = chance(50) ? type.size : number(-50, 200);
            map.add(old.map, 0);
            map.lower_marks = {lower};
            map.upper_marks = {lower + length};
            EXPECT_FALSE(make_resized(type, lower, length, pair.draft));
            break;
        }
        case 8: {
            const int sizes[2] = {static_cast<int>(number(1, 6)), static_cast<int>(number(1, 6))};
            const int processes[2] = {static_cast<int>(number(1, 2)),
                                      static_cast<int>(number(1, 2))};
            const int kinds[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
            const int arguments[2] = {static_cast<int>(number(1, 2)), MPI_DISTRIBUTE_DFLT_DARG};
            const int ranks = processes[0] * processes[1];
            const int rank = static_cast<int>(number(0, ranks - 1));
            const int block = (sizes[1] + processes[1] - 1) / processes[1];
            for (int i = 0; i < sizes[0]; ++i) {
                for (int j = 0; j < sizes[1]; ++j) {
                    if (i / arguments[0] % processes[0] * processes[1] + j / block == rank) {
                        map.add(old.map, (i * sizes[1] + j) * extent);
                    }
                }
            }
            map.lower_marks = {0};
            map.upper_marks = {sizes[0] * sizes[1] * extent};
            EXPECT_FALSE(make_darray(
                {.size = ranks, .rank = rank, .dimensions = 2, .processes = processes},
                {.values = sizes, .wide = false}, kinds, arguments, MPI_ORDER_C, type, pair.draft));
            break;
        }
        default: {
            const int sizes[2] = {static_cast<int>(number(1, 5)), static_cast<int>(number(1, 5))};
            const int parts[2] = {static_cast<int>(number(1, sizes[0])),
                                  static_cast<int>(number(1, sizes[1]))};
            const int starts[2] = {static_cast<int>(number(0, sizes[0] - parts[0])),
                                   static_cast<int>(number(0, sizes[1] - parts[1]))};
            const bool c_order = chance(50);
            const int slow = c_order ? 0 : 1;
            const int fast = 1 - slow;
            for (int i = 0; i < parts[slow]; ++i) {
                for (int j = 0; j < parts[fast]; ++j) {
                    map.add(old.map,
                            ((starts[slow] + i) * sizes[fast] + starts[fast] + j) * extent);
                }
            }
            map.lower_marks = {0};
            map.upper_marks = {sizes[0] * sizes[1] * extent};
            EXPECT_FALSE(
                make_subarray(2, {.values = sizes, .wide = false}, {.values = parts, .wide = false},
                              {.values = starts, .wide = false},
                              c_order ? MPI_ORDER_C : MPI_ORDER_FORTRAN, type, pair.draft));
        }
        }
        return pair;
    }

    std::mt19937 random_;
};

// Memory that the elements of a type may touch, whatever its bounds.
struct Arena {
    Arena(const TypeMap& map, MPI_Count count) {
        MPI_Count low = 0;
        MPI_Count high = 1;
        for (const TypeMap::Entry& entry : map.entries) {
            for (const MPI_Count i : {MPI_Count{0}, count - 1}) {
                low = std::min(low, entry.offset + i * map.extent());
                high = std::max(high, entry.offset + entry.size + i * map.extent());
            }
        }
        bytes.resize(static_cast<std::size_t>(high - low));
        origin = -low;
    }
    std::byte* base() { return bytes.data() + origin; }

    std::vector<std::byte> bytes;
    MPI_Count origin;
};

class RandomTypes : public testing::TestWithParam<unsigned> {};

TEST_P(RandomTypes, PackAsTheirTypeMapsSay) {
    Generator generator(GetParam());
    for (int round = 0; round < 150; ++round) {
        const Pair made = generator.make(static_cast<int>(generator.number(1, 4)));
        const TypeMap& map = made.map;
        const Datatype& type = made.draft.type;
        SCOPED_TRACE(testing::Message() << "round " << round);
        ASSERT_EQ(type.size, map.size());
        ASSERT_EQ(type.lower_bound, map.lower());
        ASSERT_EQ(type.extent, map.extent());
        if (!map.entries.empty()) {
            TypeMap plain;
            plain.entries = map.entries;
            ASSERT_EQ(type.true_lower_bound, plain.lower());
            ASSERT_EQ(type.true_extent, plain.extent());
        }

        const MPI_Count count = generator.number(1, 6);
        Arena arena(map, count);
        for (std::byte& byte : arena.bytes) {
            byte = static_cast<std::byte>(generator.number(0, 255));
        }
        std::vector<std::byte> expected;
        std::vector<MPI_Count> ends; // of basic elements
        for (MPI_Count i = 0; i < count; ++i) {
            for (const TypeMap::Entry& entry : map.entries) {
                const std::byte* from = arena.base() + i * map.extent() + entry.offset;
                expected.insert(expected.end(), from, from + entry.size);
                ends.push_back(static_cast<MPI_Count>(expected.size()));
            }
        }
        const auto bytes = static_cast<MPI_Count>(expected.size());
        std::vector<std::byte> packed(expected.size());
        type.pack(arena.base(), count, packed.data());
        ASSERT_EQ(packed, expected);

        if (void* piece = type.one_piece(arena.base(), count); piece != nullptr && bytes != 0) {
            ASSERT_EQ(std::memcmp(piece, expected.data(), expected.size()), 0);
        }

        // In parts that begin and end anywhere.
        std::fill(packed.begin(), packed.end(), std::byte{0});
        for (MPI_Count at = 0; at < bytes;) {
            const MPI_Count now = std::min(bytes - at, generator.number(1, bytes));
            type.pack_part(arena.base(), count, at, now, packed.data() + at);
            at += now;
        }
        ASSERT_EQ(packed, expected);

        // As a list of pieces, begun anew wherever it was full.
        packed.clear();
        for (MPI_Count at = 0; at < bytes;) {
            std::vector<iovec> pieces(static_cast<std::size_t>(generator.number(1, 20)));
            MPI_Count covered = 0;
            const std::size_t listed = type.pieces(arena.base(), count, at,
                                                   std::min(bytes - at, generator.number(1, bytes)),
                                                   pieces.data(), pieces.size(), covered);
            ASSERT_GT(covered, 0);
            for (std::size_t i = 0; i < listed; ++i) {
                const auto* from = static_cast<const std::byte*>(pieces[i].iov_base);
                packed.insert(packed.end(), from, from + pieces[i].iov_len);
                ASSERT_TRUE(i == 0 || from != static_cast<std::byte*>(pieces[i - 1].iov_base) +
                                                  pieces[i - 1].iov_len);
            }
            at += covered;
            ASSERT_EQ(static_cast<MPI_Count>(packed.size()), at);
        }
        ASSERT_EQ(packed, expected);

        // Unpack a beginning of the data, and compare all of the memory.
        const MPI_Count some = generator.number(0, bytes);
        Arena model(map, count);
        Arena target(map, count);
        std::fill(model.bytes.begin(), model.bytes.end(), std::byte{0xee});
        target.bytes = model.bytes;
        // A place that occurs twice would depend on the order: give every place one value.
        MPI_Count at = 0;
        for (MPI_Count i = 0; i < count; ++i) {
            for (const TypeMap::Entry& entry : map.entries) {
                for (MPI_Count k = 0; k < entry.size && at < some; ++k, ++at) {
                    model.base()[i * map.extent() + entry.offset + k] =
                        expected[static_cast<std::size_t>(at)];
                }
            }
        }
        const MPI_Count cut = generator.number(0, some);
        type.unpack_part(expected.data() + cut, cut, some - cut, target.base(), count);
        type.unpack_part(expected.data(), 0, cut, target.base(), count);
        ASSERT_EQ(target.bytes, model.bytes);

        // Elements in any number of bytes.
        for (int sample = 0; sample < 20 && bytes > 0; ++sample) {
            const MPI_Count length =
                sample < 10 ? generator.number(0, bytes)
                            : ends[static_cast<std::size_t>(
                                  generator.number(0, static_cast<MPI_Count>(ends.size()) - 1))];
            const auto end = std::lower_bound(ends.begin(), ends.end(), length);
            const bool whole = length == 0 || (end != ends.end() && *end == length);
            const MPI_Count elements = length == 0 ? 0 : end - ends.begin() + 1;
            ASSERT_EQ(type.elements_in(length), whole ? elements : MPI_UNDEFINED) << length;
        }
    }
}

// Whether no byte belongs to two entries of `count` elements.
bool disjoint(const TypeMap& map, MPI_Count count) {
    std::vector<std::pair<MPI_Count, MPI_Count>> places;
    for (MPI_Count i = 0; i < count; ++i) {
        for (const TypeMap::Entry& entry : map.entries) {
            const MPI_Count at = i * map.extent() + entry.offset;
            places.emplace_back(at, at + entry.size);
        }
    }
    std::sort(places.begin(), places.end());
    return std::adjacent_find(places.begin(), places.end(), [](const auto& a, const auto& b) {
               return b.first < a.second;
           }) == places.end();
}

TEST_P(RandomTypes, CopyIntoEachOther) {
    Generator generator(GetParam() + 100);
    for (int round = 0; round < 40; ++round) {
        SCOPED_TRACE(testing::Message() << "round " << round);
        const Pair source = generator.make(static_cast<int>(generator.number(1, 3)));
        const Pair target = generator.make(static_cast<int>(generator.number(1, 3)));
        const MPI_Count out_count = generator.number(1, 200);
        const MPI_Count in_count = generator.number(1, 200);
        if (!disjoint(target.map, in_count)) {
            continue;
        }
        Arena out(source.map, out_count);
        Arena in(target.map, in_count);
        Arena expected(target.map, in_count);
        for (std::byte& byte : out.bytes) {
            byte = static_cast<std::byte>(generator.number(0, 255));
        }
        const Buffer from{out.base(), out_count, &source.draft.type};
        const Buffer to{in.base(), in_count, &target.draft.type};
        const MPI_Count bytes = generator.number(0, std::min(from.bytes(), to.bytes()));
        std::vector<std::byte> packed(static_cast<std::size_t>(from.bytes()));
        from.type->pack(from.base, from.count, packed.data());
        to.type->unpack(packed.data(), bytes, expected.base(), in_count);
        copy_data(from, to, 0, bytes);
        ASSERT_EQ(in.bytes, expected.bytes) << bytes << " of " << from.bytes();

        // In parts that begin and end anywhere, the last first.
        Arena parts(target.map, in_count);
        for (MPI_Count end = bytes; end > 0;) {
            const MPI_Count now = std::min(end, generator.number(1, bytes));
            end -= now;
            copy_data(from, {parts.base(), in_count, &target.draft.type}, end, now);
        }
        ASSERT_EQ(parts.bytes, expected.bytes) << bytes << " of " << from.bytes();
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTypes, testing::Range(0U, 8U));

std::size_t steps_of(const Draft& draft) {
    return draft.type.layout == nullptr ? 0 : draft.type.layout->steps.size();
}

TEST(DerivedDatatypes, NeedOneStepForAMillionBlocks) {
    Draft vector;
    ASSERT_FALSE(make_vector(1'000'000, 1, 16, basic(MPI_DOUBLE), vector));
    EXPECT_EQ(steps_of(vector), 1U);
    EXPECT_EQ(vector.type.size, 8'000'000);
    EXPECT_EQ(vector.type.extent, 16 * 999'999 + 8);

    // The same, told block by block.
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
