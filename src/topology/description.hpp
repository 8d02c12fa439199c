// Description: a node in the form in which it is put together, changed and completed, before
// encode.hpp makes an image of it. Plain values that own their memory.
//
// Objects have the numbers that format.hpp describes: level by level. A discovery fills in what it
// knows; complete_attributes (guess.hpp) adds what follows from it.
// Thread rule: a value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/format.hpp"

namespace warren::topology {

// A set of numbers: bit b of word w is 64 · w + b. Zero words at the end mean nothing.
using Bits = std::vector<std::uint64_t>;

void add_bit(Bits& bits, std::size_t bit);
bool has_bit(const Bits& bits, std::size_t bit);
bool includes(const Bits& bits, const Bits& part);
bool intersects(const Bits& one, const Bits& other);
bool is_empty(const Bits& bits);

struct Info {
    std::string name;
    std::string value;
};

// The kinds of children, in the order of the lists in Object.
enum class ChildKind : std::uint8_t { tree, memory, io, misc };

struct Object {
    std::uint32_t os_index = none;
    std::uint32_t parent = none;
    bool symmetric = false;
    bool has_sets = false;
    Bits cpus;
    Bits nodes;
    Bits complete_cpus;
    Bits complete_nodes;
    std::array<std::vector<std::uint32_t>, 4> children; // by ChildKind
    std::optional<std::string> name;
    std::optional<std::string> subtype;
    std::vector<Info> infos;
    std::vector<std::uint64_t> details; // as details.hpp packs them
};

struct Distances {
    std::optional<std::string> name;
    std::uint32_t kind = 0; // WARREN_DISTANCES_… bits
    std::vector<std::uint32_t> objects;
    std::vector<std::uint64_t> values; // row by row
};

struct CpuKind {
    Bits cpus;
    std::int32_t efficiency = -1;
    std::vector<Info> infos;
};

// One value of an attribute, as somebody says it. The initiator: a device, or processors (none:
// all).
struct AttributeValue {
    std::uint32_t initiator_object = none;
    Bits initiator_cpus;
    std::uint32_t target = 0; // the node's logical index
    std::uint64_t value = 0;
    std::uint32_t origin = 0; // WARREN_ORIGIN_…
};

struct Attribute {
    std::string name;
    std::uint32_t flags = 0; // WARREN_ATTRIBUTE_… bits
    // Among several values for a pair, a measured one precedes the firmware's; otherwise the first
    // one counts, as in hwloc.
    std::vector<AttributeValue> values;
};

// Processors (or a device) from which all memory looks alike.
struct Initiator {
    Bits cpus;
    std::uint32_t object = none;
};

// The completed attribute: for each initiator (or once) and target a value.
struct AttributeMatrix {
    struct Cell {
        std::uint64_t value = 0;
        std::uint32_t origin = 0; // 0: there is none
        bool operator==(const Cell&) const = default;
        auto operator<=>(const Cell&) const = default;
    };

    std::string name;
    std::uint32_t flags = 0;
    std::size_t rows = 0;             // initiators, or 1
    std::vector<Cell> cells;          // rows · targets
    std::vector<std::uint16_t> order; // initiators · targets
};

struct Description {
    std::vector<Level> levels;
    std::vector<Object> objects;
    Bits allowed_cpus;
    Bits allowed_nodes;
    std::vector<Distances> distances;
    std::vector<CpuKind> cpu_kinds;
    std::vector<Attribute> attributes; // what is known
    std::vector<Info> infos;           // of the topology

    // Made by complete_attributes().
    std::vector<Initiator> initiators;
    std::vector<AttributeMatrix> matrices;

    ObjectType type_of(std::uint32_t object) const;
    // The object numbers of all NUMA nodes: the targets.
    std::vector<std::uint32_t> targets() const;
};

} // namespace warren::topology
