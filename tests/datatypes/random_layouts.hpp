// Random nested datatypes, each with a naive list of what lies where, and memory of such a type.
// A layout is made of layouts by the constructors of MPI; its list is made beside it, by hand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <mpi.h>

namespace layouts {

struct Entry {
    MPI_Aint offset;
    int size;
};

// A datatype and the entries of its type map, in order.
struct Layout {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::vector<Entry> map;

    MPI_Aint extent() const {
        MPI_Aint lower = 0;
        MPI_Aint extent = 0;
        MPI_Type_get_extent(type, &lower, &extent);
        return extent;
    }
    void add(const Layout& old, MPI_Aint offset) {
        for (const Entry& entry : old.map) {
            map.push_back({offset + entry.offset, entry.size});
        }
    }
};

class Random {
  public:
    explicit Random(unsigned seed) : engine_(seed) {}
    int number(int low, int high) {
        return low + static_cast<int>(engine_() % static_cast<unsigned>(high - low + 1));
    }
    bool chance(int percent) { return number(0, 99) < percent; }

  private:
    std::mt19937 engine_; // the same numbers everywhere, which distributions don't promise
};

// What types are made of: an int, or an int and a double with a gap between them.
inline Layout atom(Random& random, bool pairs) {
    Layout made;
    if (!pairs) {
        MPI_Type_dup(MPI_INT, &made.type);
        made.map = {{0, sizeof(int)}};
        return made;
    }
    const MPI_Aint first = random.number(0, 3) * 4;
    const MPI_Aint displacements[] = {first, first + 4 + random.number(0, 4) * 4};
    const int lengths[] = {1, 1};
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
    MPI_Type_create_struct(2, lengths, displacements, types, &made.type);
    made.map = {{displacements[0], sizeof(int)}, {displacements[1], sizeof(double)}};
    return made;
}

inline void distribute(Random& random, const Layout& old, Layout& made) {
    // Two dimensions, cyclic and block; rank by rank of the grid as the standard counts them.
    const int sizes[] = {random.number(1, 6), random.number(1, 6)};
    const int processes[] = {random.number(1, 2), random.number(1, 2)};
    const int kinds[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
    const int arguments[] = {random.number(1, 2), MPI_DISTRIBUTE_DFLT_DARG};
    const int rank = random.number(0, processes[0] * processes[1] - 1);
    const int order = random.chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    MPI_Type_create_darray(processes[0] * processes[1], rank, 2, sizes, kinds, arguments, processes,
                           order, old.type, &made.type);
    const int block = (sizes[1] + processes[1] - 1) / processes[1];
    const int slow = order == MPI_ORDER_C ? 0 : 1;
    int index[2];
    for (index[slow] = 0; index[slow] < sizes[slow]; ++index[slow]) {
        for (index[1 - slow] = 0; index[1 - slow] < sizes[1 - slow]; ++index[1 - slow]) {
            const int owner =
                index[0] / arguments[0] % processes[0] * processes[1] + index[1] / block;
            if (owner == rank) {
                made.add(old, (index[slow] * sizes[1 - slow] + index[1 - slow]) * old.extent());
            }
        }
    }
}

inline void cut_out(Random& random, const Layout& old, Layout& made) {
    int sizes[3];
    int parts[3];
    int starts[3];
    for (int d = 0; d < 3; ++d) {
        sizes[d] = random.number(1, 4);
        parts[d] = random.number(1, sizes[d]);
        starts[d] = random.number(0, sizes[d] - parts[d]);
    }
    const bool c_order = random.chance(50);
    MPI_Type_create_subarray(3, sizes, parts, starts, c_order ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
                             old.type, &made.type);
    const int slow = c_order ? 0 : 2;
    const int fast = 2 - slow;
    for (int i = 0; i < parts[slow]; ++i) {
        for (int j = 0; j < parts[1]; ++j) {
            for (int k = 0; k < parts[fast]; ++k) {
                const int place = ((starts[slow] + i) * sizes[1] + starts[1] + j) * sizes[fast] +
                                  starts[fast] + k;
                made.add(old, place * old.extent());
            }
        }
    }
}

// Blocks of random lengths at random distances, in all the ways to say that.
inline void list(Random& random, const Layout& old, Layout& made) {
    const int count = random.chance(15) ? random.number(10, 40) : random.number(0, 6);
    const bool in_bytes = random.chance(50);
    const bool same_length = random.chance(50);
    const MPI_Aint unit = in_bytes ? 1 : old.extent();
    std::vector<int> lengths;
    std::vector<int> displacements;
    std::vector<MPI_Aint> addresses;
    const int length = random.number(0, 3);
    MPI_Aint at = random.number(-20, 20);
    for (int i = 0; i < count; ++i) {
        lengths.push_back(same_length ? length : random.number(0, 3));
        displacements.push_back(static_cast<int>(at));
        addresses.push_back(at);
        for (int j = 0; j < lengths.back(); ++j) {
            made.add(old, at * unit + j * old.extent());
        }
        const MPI_Aint filled = in_bytes ? lengths.back() * old.extent() : lengths.back();
        at += filled + (random.chance(50) ? 0 : random.number(-3, 12));
    }
    if (in_bytes && same_length) {
        MPI_Type_create_hindexed_block(count, length, addresses.data(), old.type, &made.type);
    } else if (in_bytes) {
        MPI_Type_create_hindexed(count, lengths.data(), addresses.data(), old.type, &made.type);
    } else if (same_length) {
        MPI_Type_create_indexed_block(count, length, displacements.data(), old.type, &made.type);
    } else {
        MPI_Type_indexed(count, lengths.data(), displacements.data(), old.type, &made.type);
    }
}

inline Layout derive(Random& random, bool pairs, int depth);

inline void structure(Random& random, bool pairs, int depth, Layout& made) {
    const int count = random.number(0, 4);
    std::vector<Layout> members;
    std::vector<int> lengths;
    std::vector<MPI_Aint> displacements;
    std::vector<MPI_Datatype> types;
    MPI_Aint at = random.number(-64, 64);
    for (int i = 0; i < count; ++i) {
        members.push_back(derive(random, pairs, depth - 1));
        const Layout& member = members.back();
        lengths.push_back(random.number(0, 3));
        displacements.push_back(at);
        types.push_back(member.type);
        for (int j = 0; j < lengths.back(); ++j) {
            made.add(member, at + j * member.extent());
        }
        at += lengths.back() * member.extent() + (random.chance(50) ? 0 : random.number(-30, 100));
    }
    MPI_Type_create_struct(count, lengths.data(), displacements.data(), types.data(), &made.type);
    for (Layout& member : members) {
        MPI_Type_free(&member.type);
    }
}

inline Layout derive(Random& random, bool pairs, int depth) {
    if (depth == 0) {
        return atom(random, pairs);
    }
    Layout made;
    const int kind = random.number(0, 8);
    if (kind == 0) {
        structure(random, pairs, depth, made);
        return made;
    }
    Layout old = derive(random, pairs, depth - 1);
    const MPI_Aint extent = old.extent();
    if (kind == 1) {
        const int count = random.number(0, 5);
        for (int i = 0; i < count; ++i) {
            made.add(old, i * extent);
        }
        MPI_Type_contiguous(count, old.type, &made.type);
    } else if (kind <= 3) {
        const int count = random.chance(10) ? random.number(10, 60) : random.number(0, 5);
        const int length = random.number(0, 4);
        const bool in_bytes = kind == 3;
        const MPI_Aint stride = in_bytes ? random.number(-100, 200) : random.number(-4, 8);
        for (int i = 0; i < count; ++i) {
            for (int j = 0; j < length; ++j) {
                made.add(old, i * stride * (in_bytes ? 1 : extent) + j * extent);
            }
        }
        if (in_bytes) {
            MPI_Type_create_hvector(count, length, stride, old.type, &made.type);
        } else {
            MPI_Type_vector(count, length, static_cast<int>(stride), old.type, &made.type);
        }
    } else if (kind == 4) {
        const MPI_Aint length = random.chance(50) ? extent : random.number(-50, 300);
        MPI_Type_create_resized(old.type, random.number(-50, 50), length, &made.type);
        made.map = old.map;
    } else if (kind == 5) {
        cut_out(random, old, made);
    } else if (kind == 6) {
        distribute(random, old, made);
    } else {
        list(random, old, made);
    }
    MPI_Type_free(&old.type);
    return made;
}

// Whether no byte belongs to two entries of `count` elements.
inline bool disjoint(const Layout& layout, int count) {
    std::vector<std::pair<MPI_Aint, MPI_Aint>> places;
    const MPI_Aint extent = layout.extent();
    for (int i = 0; i < count; ++i) {
        for (const Entry& entry : layout.map) {
            const MPI_Aint at = i * extent + entry.offset;
            places.emplace_back(at, at + entry.size);
        }
    }
    std::sort(places.begin(), places.end());
    for (std::size_t i = 1; i < places.size(); ++i) {
        if (places[i].first < places[i - 1].second) {
            return false;
        }
    }
    return true;
}

// A type with data of which enough elements for so many entries have no place in common: each place
// has one value then.
inline Layout make(Random& random, bool pairs, int entries) {
    constexpr std::size_t largest = 2000;
    while (true) {
        Layout made = derive(random, pairs, random.number(1, 4));
        const auto size = static_cast<int>(made.map.size());
        if (size > 0 && made.map.size() <= largest && disjoint(made, entries / size + 1)) {
            MPI_Type_commit(&made.type);
            return made;
        }
        MPI_Type_free(&made.type);
    }
}

inline std::byte value(unsigned seed, std::size_t entry, int byte) {
    std::uint64_t mixed =
        (entry * 16 + static_cast<std::uint64_t>(byte) + seed) * 0x9e3779b97f4a7c15;
    return static_cast<std::byte>(mixed >> 40);
}

inline constexpr std::byte untouched{0xee};

// Memory of `count` elements; entries are numbered through all of them.
class Memory {
  public:
    Memory(const Layout& layout, int count) : layout_(layout), count_(count) {
        MPI_Aint low = 0;
        MPI_Aint high = 1;
        const MPI_Aint last = (count - 1) * layout.extent();
        for (const Entry& entry : layout.map) {
            low = std::min({low, entry.offset, entry.offset + last});
            high = std::max({high, entry.offset + entry.size, entry.offset + last + entry.size});
        }
        bytes_.assign(static_cast<std::size_t>(high - low), untouched);
        origin_ = -low;
    }

    std::byte* base() { return bytes_.data() + origin_; }
    std::size_t entries() const { return layout_.map.size() * static_cast<std::size_t>(count_); }
    int count() const { return count_; }
    MPI_Datatype type() const { return layout_.type; }
    bool operator==(const Memory& other) const { return bytes_ == other.bytes_; }

    // Gives entries [first, first + number) the values 0, 1, … of a seed.
    void fill(unsigned seed, std::size_t number, std::size_t first = 0) {
        const MPI_Aint extent = layout_.extent();
        for (std::size_t i = 0; i < number; ++i) {
            const std::size_t at = first + i;
            const Entry& entry = layout_.map[at % layout_.map.size()];
            std::byte* place =
                base() + static_cast<MPI_Aint>(at / layout_.map.size()) * extent + entry.offset;
            for (int byte = 0; byte < entry.size; ++byte) {
                place[byte] = value(seed, i, byte);
            }
        }
    }

  private:
    const Layout& layout_;
    int count_;
    std::vector<std::byte> bytes_;
    MPI_Aint origin_;
};

} // namespace layouts
