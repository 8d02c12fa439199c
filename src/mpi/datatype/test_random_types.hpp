// Random datatypes, each with its type map beside it, made by hand; for tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "mpi/datatype/construct.hpp"
#include "mpi/datatype/type_table.hpp"

namespace warren::datatype {

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
        const int kind = static_cast<int>(number(0, 8));
        if (kind == 7) {
            structure(depth, pair);
            return pair;
        }
        const Pair old = make(depth - 1);
        switch (kind) {
        case 0:
            contiguous(old, pair);
            break;
        case 1:
        case 2:
            vector(old, pair);
            break;
        case 3:
        case 4:
            indexed(old, pair, kind == 3);
            break;
        case 5:
            resized(old, pair);
            break;
        case 8:
            darray(old, pair);
            break;
        default:
            subarray(old, pair);
        }
        return pair;
    }

    void structure(int depth, Pair& pair) {
        TypeMap& map = pair.map;
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
    }

    void contiguous(const Pair& old, Pair& pair) {
        TypeMap& map = pair.map;
        const Datatype& type = old.draft.type;
        const MPI_Count extent = old.map.extent();
        const MPI_Count count = number(0, 5);
        for (MPI_Count i = 0; i < count; ++i) {
            map.add(old.map, i * extent);
        }
        map.settle();
        EXPECT_FALSE(make_contiguous(count, type, pair.draft));
    }

    void vector(const Pair& old, Pair& pair) {
        TypeMap& map = pair.map;
        const Datatype& type = old.draft.type;
        const MPI_Count extent = old.map.extent();
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
    }

    void indexed(const Pair& old, Pair& pair, bool in_extents) {
        TypeMap& map = pair.map;
        const Datatype& type = old.draft.type;
        const MPI_Count extent = old.map.extent();
        const MPI_Count count = chance(20) ? number(8, 40) : number(0, 6);
        std::vector<int> lengths;
        std::vector<int> displacements;
        const MPI_Count unit = in_extents ? extent : 1;
        int at = static_cast<int>(number(-20, 20));
        for (MPI_Count i = 0; i < count; ++i) {
            lengths.push_back(static_cast<int>(number(0, 3)));
            displacements.push_back(at);
            for (int j = 0; j < lengths.back(); ++j) {
                map.add(old.map, at * unit + j * extent);
            }
            at += static_cast<int>(chance(60) ? lengths.back() * (in_extents ? 1 : extent)
                                              : number(-9, 30));
        }
        map.settle();
        EXPECT_FALSE(make_indexed(count, {.values = lengths.data(), .wide = false},
                                  {.values = displacements.data(), .wide = false}, unit, type,
                                  pair.draft));
    }

    void resized(const Pair& old, Pair& pair) {
        TypeMap& map = pair.map;
        const Datatype& type = old.draft.type;
        const MPI_Count lower = number(-50, 50);
        const MPI_Count length = chance(50) ? type.size : number(-50, 200);
        map.add(old.map, 0);
        map.lower_marks = {lower};
        map.upper_marks = {lower + length};
        EXPECT_FALSE(make_resized(type, lower, length, pair.draft));
    }

    void darray(const Pair& old, Pair& pair) {
        TypeMap& map = pair.map;
        const Datatype& type = old.draft.type;
        const MPI_Count extent = old.map.extent();
        const int sizes[2] = {static_cast<int>(number(1, 6)), static_cast<int>(number(1, 6))};
        const int processes[2] = {static_cast<int>(number(1, 2)), static_cast<int>(number(1, 2))};
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
    }

    void subarray(const Pair& old, Pair& pair) {
        TypeMap& map = pair.map;
        const Datatype& type = old.draft.type;
        const MPI_Count extent = old.map.extent();
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
                map.add(old.map, ((starts[slow] + i) * sizes[fast] + starts[fast] + j) * extent);
            }
        }
        map.lower_marks = {0};
        map.upper_marks = {sizes[0] * sizes[1] * extent};
        EXPECT_FALSE(make_subarray(2, {.values = sizes, .wide = false},
                                   {.values = parts, .wide = false},
                                   {.values = starts, .wide = false},
                                   c_order ? MPI_ORDER_C : MPI_ORDER_FORTRAN, type, pair.draft));
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

} // namespace warren::datatype
