// The format of a topology image: what a node is, in one read-only block of bytes.
//
// It has no pointers: an image means the same at every address, in every process, and in a file.
// Everything is in flat arrays (sections) that begin at a multiple of 8 bytes, and refers to other
// things by 32-bit indices, smaller ones where a limit below allows it. Sets of processors and of
// NUMA nodes are there once each, names too.
//
// Objects are numbered level by level, the levels of the tree first, from the root down, then one
// level for each type beside the tree (caches of memory, NUMA nodes, bridges, PCI devices, OS
// devices, others), each in its logical order. A parent has therefore a smaller number than its
// children, so walks upwards end, and of two objects on one path the smaller number is the higher
// one.
//
// An image begins with Header, behind it sections[]. view.hpp reads images, encode.hpp writes them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::topology {

inline constexpr std::uint64_t image_magic = 0x31306f706f745257; // "WRtopo01" in memory
// Raised with every change of what is below: other versions are refused.
inline constexpr std::uint32_t image_version = 2;

// 16 Mi is far above any node (400 threads have about 2000 objects), and keeps sums below 2^32.
inline constexpr std::uint32_t max_objects = 1U << 20;
inline constexpr std::uint32_t max_image_bytes = 1U << 28;
// Objects of the tree with several children: numbers of 16 bits.
inline constexpr std::uint32_t max_branches = 65535;
// Where places need more bits than that, or many more than there are leaves (trees that are uneven
// and deep), there are none, and whoever wants an ancestor walks.
inline constexpr std::uint32_t max_place_bits = 20;
inline constexpr std::uint32_t most_spare_bits = 4;
inline constexpr std::uint32_t no_places = 255;
// NUMA nodes and initiators, numbers of 16 bits, and their product.
inline constexpr std::uint32_t max_targets = 4096;
// OS indices of processors and nodes; the kernel's limits are 8192 and 1024.
inline constexpr std::uint32_t max_os_index = 65535;
// Objects beside the tree (memory, I/O, Misc) within each other, so that walks down may recurse:
// machines have bridges behind bridges, ten at most.
inline constexpr std::uint32_t max_nested = 256;

inline constexpr std::uint32_t none = 0xffffffff;
inline constexpr std::uint16_t none16 = 0xffff;

// In the order of WARREN_OBJECT_… in warren/topology.h.
enum class ObjectType : std::uint8_t {
    machine,
    package,
    die,
    core,
    pu,
    l1_cache,
    l2_cache,
    l3_cache,
    l4_cache,
    l5_cache,
    l1i_cache,
    l2i_cache,
    l3i_cache,
    group,
    numa_node,
    memory_cache,
    bridge,
    pci_device,
    os_device,
    misc
};
inline constexpr std::size_t object_types = 20;

enum class Section : std::uint32_t {
    // Arrays with one element per object, by its number.
    level_of,    // u8: index of its Level
    flags,       // u8: ObjectFlag
    arity,       // u16: how many children in the tree
    details_of,  // u16: index in `details`, none16
    nodeset_of,  // u16: index in `sets`, none16 (devices and others)
    os_index,    // u32: none when it has none
    parent,      // u32: none for object 0
    first_child, // u32: first child in the tree; or, with ObjectFlag::scattered, index in
                 // `children`
    cpuset_of,   // u32: index in `sets`, none
    // One element per object of the tree: its place, the path to the first leaf below it. A place
    // is
    // a bit that is set, and below it place_bits bits: for each object on the way that has several
    // children as many as it takes to number them, the highest bits for the root's. (If the deepest
    // way takes fewer bits than another, zeros follow.)
    places, // u32
    // 2^place_bits elements. Two places whose first different bit is bit b part at element
    // place >> (b + 1), which is the number of the object where they do.
    branches, // u16
    // Exceptions, sorted by object.
    other_children, // OtherChildren: objects with ObjectFlag::has_others
    complete_sets,  // CompleteSets: objects with ObjectFlag::incomplete
    infos,          // InfoRecord: objects with ObjectFlag::has_infos; object none: of the topology
    // What the others refer to.
    levels,   // Level
    children, // u32: object numbers
    details,  // u64: see details.hpp
    sets,     // SetRecord
    words,    // u64: words of sets
    strings,  // char: each string ends with a null character; the empty one is at 0
    // By OS index.
    pu_by_os,   // u32: object, none
    node_by_os, // u32: object, none
    row_by_os,  // u16: initiator of a processor, none16
    // Distances, kinds of processors.
    distances,        // DistancesRecord
    distance_objects, // u32: object numbers
    distance_bytes,   // u8: matrices, of little-endian numbers of a width
    cpu_kinds,        // CpuKindRecord
    // Attributes of memory for each pair of initiator and target.
    initiators, // InitiatorRecord
    attributes, // AttributeRecord
    cells,      // u8: matrices (initiator × target) of indices in `values`, of a width
    orders,     // u16: for each initiator the targets (logical indices), the best first
    values,     // ValueRecord
    allowed,    // u32: indices in `sets`: allowed processors, allowed NUMA nodes
    count_
};
inline constexpr std::size_t section_count = static_cast<std::size_t>(Section::count_);

struct SectionRecord {
    std::uint32_t offset; // bytes from the image's begin; a multiple of 8
    std::uint32_t count;  // elements
};

struct Header {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t bytes;    // of the whole image, a multiple of 8
    std::uint64_t checksum; // of everything behind this field (checksum.hpp)
    std::uint32_t objects;
    std::uint32_t tree_objects; // those of the tree come first
    std::uint32_t place_bits;   // no_places: there are neither places nor branches
    std::uint32_t section_records;
    SectionRecord sections[section_count];
};
inline constexpr std::size_t checksum_end = offsetof(Header, checksum) + sizeof(std::uint64_t);

namespace object_flag {
inline constexpr std::uint8_t symmetric = 1;  // all below it is alike
inline constexpr std::uint8_t scattered = 2;  // its children don't have consecutive numbers
inline constexpr std::uint8_t has_others = 4; // memory, devices or others are attached to it
inline constexpr std::uint8_t incomplete = 8; // processors or nodes below it are offline or unknown
inline constexpr std::uint8_t has_infos = 16;
inline constexpr std::uint8_t all = 31;
} // namespace object_flag

struct Level {
    std::uint32_t first; // object
    std::uint32_t count; // more than none
    std::int32_t depth;  // 0 for the root; negative beside the tree: minus the type's number
    std::uint32_t type;  // ObjectType
};

// In `children`, one behind the other: memory, I/O, others.
struct OtherChildren {
    std::uint32_t object;
    std::uint32_t first;
    std::uint32_t memory;
    std::uint32_t io;
    std::uint32_t misc;
};

struct CompleteSets {
    std::uint32_t object;
    std::uint32_t cpuset;  // index in `sets`
    std::uint32_t nodeset; // index in `sets`
};

struct SetRecord {
    std::uint32_t word;  // index in `words`
    std::uint16_t first; // the set's first word has the bits from 64 · first on
    std::uint16_t count; // words
};

// Offsets in `strings`. The object's own name and subtype come under the names below.
struct InfoRecord {
    std::uint32_t object;
    std::uint32_t name;
    std::uint32_t value;
};
inline constexpr char name_key[] = "\1name";
inline constexpr char subtype_key[] = "\1subtype";

struct DistancesRecord {
    std::uint32_t name;    // offset in `strings`, 0: none
    std::uint32_t kind;    // WARREN_DISTANCES_… bits
    std::uint32_t count;   // objects; the matrix has count · count numbers
    std::uint32_t objects; // index in `distance_objects`
    std::uint32_t bytes;   // index in `distance_bytes`: row by row, from the row's object
    std::uint32_t width;   // bytes per number: 1, 2, 4 or 8
};

struct CpuKindRecord {
    std::uint32_t cpuset;     // index in `sets`
    std::int32_t efficiency;  // higher: faster; -1: not known
    std::uint32_t first_info; // index in `infos`
    std::uint32_t infos;
};

// Processors (or, object other than none, a device) from which all memory looks alike.
struct InitiatorRecord {
    std::uint32_t cpuset; // index in `sets`
    std::uint32_t object; // none: processors
};

// Targets are the NUMA nodes in their logical order.
struct AttributeRecord {
    std::uint32_t name;   // offset in `strings`
    std::uint32_t flags;  // WARREN_ATTRIBUTE_… bits
    std::uint32_t cells;  // index in `cells`
    std::uint32_t width;  // bytes per cell: 1, 2 or 4
    std::uint32_t rows;   // initiators; 1 when the value doesn't depend on them
    std::uint32_t order;  // index in `orders`: initiators · targets elements
    std::uint32_t values; // index in `values` of this attribute's values
    std::uint32_t value_count;
};

struct ValueRecord {
    std::uint64_t value;
    std::uint64_t origin; // WARREN_ORIGIN_…
};

} // namespace warren::topology
