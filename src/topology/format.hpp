// The format of a topology image: what a node is, in one read-only block of bytes.
//
// It has no pointers: an image means the same at every address, in every process, and in a file.
// Everything is in flat arrays (sections), one behind the other, those of the widest elements
// first, so that each begins at a multiple of what it needs; their counts, behind the header, say
// where they are. They refer to other things by indices of 16 bits, wider ones where machines need
// them. Sets of processors and of NUMA nodes are there once each, names too. Small machines have
// small images: what follows from something else (counts, depths, names that all have) is not
// there.
//
// Objects are numbered level by level, the levels of the tree first, from the root down, then one
// level for each type beside the tree (caches of memory, NUMA nodes, bridges, PCI devices, OS
// devices, others), each in its logical order. A parent has therefore a smaller number than its
// children, so walks upwards end, and of two objects on one path the smaller number is the higher
// one.
//
// An image begins with Header. Behind it are the counts of those sections of which is_counted() is
// true, in their order, each in as few bytes as it needs, 7 bits in each, the lowest first, and the
// bit above them set in all but the last; then zeros up to a multiple of 8; then the sections.
// view.hpp reads images, encode.hpp writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "warren/topology.h"

namespace warren::topology {

inline constexpr std::uint64_t image_magic = 0x31306f706f745257; // "WRtopo01" in memory
// Raised with every change of what is below, and of the tables that programs read by themselves
// (warren_topology_index): images of other versions are refused. src/warren.map has it, too, so
// that programs compiled for other tables are.
inline constexpr std::uint32_t image_version = 9;

// Numbers of 16 bits. 400 threads have about 2000 objects; the 8192 that Linux can have at most,
// 40000.
inline constexpr std::uint32_t max_objects = 65534;
inline constexpr std::uint32_t max_image_bytes = 1U << 28;
// Where places need more bits than that, or many more than there are leaves (trees that are uneven
// and deep), or the last column would begin behind 65535, there are none, and whoever wants an
// ancestor walks. It begins at (parting_kinds - 1) times the objects of the tree: a tree whose
// places part in three kinds may have 21845 objects, one of two 32767.
inline constexpr std::uint32_t max_place_bits = 15;
inline constexpr std::uint32_t most_spare_bits = 4;
inline constexpr std::uint32_t no_places = 255;
// Small trees have a table of all pairs of objects instead, as long as it has no more bytes per
// object of the image: about a third of what an image takes without it. Where rows begin takes two
// bytes more per object of the tree: 14 of the tree, where there is nothing beside it.
inline constexpr std::uint32_t most_pair_bytes_per_object = 12;
inline constexpr std::uint32_t max_paired_objects = 255;
// NUMA nodes and initiators, numbers of 15 bits.
inline constexpr std::uint32_t max_targets = 4096;
// hwloc has ten.
inline constexpr std::uint32_t max_attributes = 1024;
// Several may have the same cells and values. Those of the first few that are others' as a whole
// are looked at once (ImageCheck::seen_); else each is checked for itself: so many looks
// altogether, in seconds at most.
constexpr std::uint64_t max_looks(std::uint64_t image_bytes) {
    return 16 * image_bytes + (std::uint64_t{1} << 28);
}
inline constexpr std::uint8_t no_nearest = 255;
// OS indices of processors and nodes; the kernel's limits are 8192 and 1024.
inline constexpr std::uint32_t max_os_index = 65535;
// Objects beside the tree (memory, I/O, Misc) within each other, so that walks down may recurse:
// machines have bridges behind bridges, ten at most.
inline constexpr std::uint32_t max_nested = 256;

inline constexpr std::uint32_t none = 0xffffffff;
inline constexpr std::uint16_t none16 = 0xffff;
inline constexpr std::uint16_t wide16 = 0xfffe; // an OS index that is in `wide_os_indices`

// The 32-bit value of a 16-bit one: none16 becomes none.
constexpr std::uint32_t widen(std::uint16_t number) {
    return number == none16 ? none : number;
}

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
    // Elements of 8 bytes.
    details,    // u64: see details.hpp
    words,      // u64: words of sets
    attributes, // AttributeRecord: multiples of 8 bytes
    // Contents of attributes, in bytes; both sections together are a multiple of 8.
    cells,  // matrices (initiator × target) of numbers of values, of a width
    values, // each WARREN_ORIGIN_…, then a number of a width; and value_margin
    // Records whose fields have at most 4 bytes.
    sets,      // SetRecord
    infos,     // InfoRecord: objects with ObjectFlag::has_infos, sorted; none16: the topology's
    distances, // DistancesRecord
    cpu_kinds, // CpuKindRecord
    wide_os_indices, // WideOsIndex: sorted by object
    // Elements of 4 bytes.
    distance_objects, // u32: object numbers
    // Records whose fields have 2 bytes.
    levels,         // LevelRecord
    initiators,     // InitiatorRecord
    other_children, // OtherChildren: objects with ObjectFlag::has_others, sorted
    complete_sets,  // CompleteSets: objects with ObjectFlag::incomplete, sorted
    allowed,        // u16: indices in `sets`: allowed processors, allowed NUMA nodes
    details_of,     // u16, for each object of a level with details: index in `details`
    // Arrays of u16 with one element per object, by its number.
    arity,       // how many children in the tree
    nodeset_of,  // index in `sets`, none16 (devices and others)
    os_index,    // none16 when it has none, or wide16
    parent,      // none16 for object 0
    first_child, // first child in the tree; or, with ObjectFlag::scattered, index in `children`
    cpuset_of,   // index in `sets`, none16
    // One u16 per object of the tree: its place, the path to the first leaf below it, in place_bits
    // bits: for each object on the way that has several children as many as it takes to number
    // them, the highest bits for the root's. (If the deepest way takes fewer bits than another,
    // zeros follow.) With pairs: where its row begins.
    places,
    // u16: parting_kinds columns, each with a number for each object of the tree: the object at
    // which the place of another one parts from its own, if their parting is of this kind, or
    // itself, where that is higher. Of that and the other one, what is higher is above both.
    above,
    // u16: for each number of place_bits bits where the column begins for the kind of parting of
    // two places that it is the difference (exclusive or) of. The highest bit says the kind; bits
    // at which the same objects part whatever the place are of one kind.
    partings,
    children, // u16: object numbers
    // u16 or i16, by OS index.
    pu_by_os,   // object, none16
    node_by_os, // logical index, -1
    row_by_os,  // initiator of a processor, -1
    // Elements of one byte.
    level_of,       // one per object: index of its level
    flags,          // one per object: ObjectFlag
    nearest,        // one per object: logical index of the NUMA node, or 255: has to be looked for
    pairs,          // for each two objects of the tree that which has both below it
    distance_bytes, // matrices, of little-endian numbers of a width
    orders,  // for each initiator the targets (logical indices), the best first; order_width()
    strings, // each string ends with a null character; the empty one is at 0
    count_
};
inline constexpr std::size_t section_count = static_cast<std::size_t>(Section::count_);
// Behind the last value at least, so that eight bytes can be read at each.
inline constexpr std::uint32_t value_margin = 7;

// Whether a section's count is in the image, or follows from others.
constexpr bool is_counted(Section section) {
    switch (section) {
    case Section::allowed:
    case Section::arity:
    case Section::nodeset_of:
    case Section::os_index:
    case Section::parent:
    case Section::first_child:
    case Section::cpuset_of:
    case Section::places:
    case Section::above:
    case Section::row_by_os:
    case Section::level_of:
    case Section::flags:
    case Section::nearest:
    case Section::pairs:
    case Section::partings:
        return false;
    default:
        return true;
    }
}

// Bytes of an index of a target in `orders`.
constexpr std::uint32_t order_width(std::uint32_t targets) {
    return targets <= 256 ? 1 : 2;
}

struct Header {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t bytes;    // of the whole image, a multiple of 8
    std::uint64_t checksum; // of everything behind this field (checksum.hpp)
    std::uint16_t objects;
    std::uint16_t tree_objects; // those of the tree come first
    std::uint8_t place_bits;    // no_places: there are neither places nor what belongs to them
    std::uint8_t parting_kinds; // 0 without places
    std::uint8_t has_pairs;     // 1: there are pairs, and for places there are their rows
    std::uint8_t sections;
};
inline constexpr std::size_t checksum_end = offsetof(Header, checksum) + sizeof(std::uint64_t);
static_assert(sizeof(Header) % 8 == 0);

namespace object_flag {
inline constexpr std::uint8_t symmetric = 1;  // all below it is alike
inline constexpr std::uint8_t scattered = 2;  // its children don't have consecutive numbers
inline constexpr std::uint8_t has_others = 4; // memory, devices or others are attached to it
inline constexpr std::uint8_t incomplete = 8; // processors or nodes below it are offline or unknown
inline constexpr std::uint8_t has_infos = 16;
inline constexpr std::uint8_t all = 31;
} // namespace object_flag

// A level as descriptions and readers see it.
struct Level {
    std::uint32_t first; // object
    std::uint32_t count; // more than none
    std::int32_t depth;  // 0 for the root; negative beside the tree: minus the type's number
    std::uint32_t type;  // ObjectType
};

struct LevelRecord {
    std::uint16_t first;
    std::uint16_t count;
    std::uint16_t type;
    std::uint16_t details; // index in `details_of` of the first object's, if the type has details
};

// In `children`, one behind the other: memory, I/O, others.
struct OtherChildren {
    std::uint16_t object;
    std::uint16_t first;
    std::uint16_t memory;
    std::uint16_t io;
    std::uint16_t misc;
};

struct CompleteSets {
    std::uint16_t object;
    std::uint16_t cpuset;  // index in `sets`
    std::uint16_t nodeset; // index in `sets`
};

struct WideOsIndex {
    std::uint32_t object;
    std::uint32_t os_index;
};

struct SetRecord {
    std::uint32_t word;  // index in `words`
    std::uint16_t first; // the set's first word has the bits from 64 · first on
    std::uint16_t count; // words
};

// Offsets in `strings`. The object's own name and subtype come under the names below.
struct InfoRecord {
    std::uint16_t object; // none16: the topology
    std::uint16_t name;   // names come first in `strings`
    std::uint32_t value;
};
inline constexpr char name_key[] = "\1";
inline constexpr char subtype_key[] = "\2";

constexpr bool is_own_key(const char* name) {
    return name[0] == name_key[0] || name[0] == subtype_key[0];
}

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

// Processors (or, object other than none16, a device) from which all memory looks alike.
struct InitiatorRecord {
    std::uint16_t cpuset; // index in `sets`
    std::uint16_t object; // none16: processors
};

// Targets are the NUMA nodes in their logical order.
using AttributeRecord = warren_topology_attribute;
namespace attribute_flag {
inline constexpr std::uint8_t cell_bytes = 0x70; // 1, 2 or 4 times 16
inline constexpr std::uint8_t by_initiator = 0x80;
} // namespace attribute_flag

constexpr std::uint32_t cell_bytes(const AttributeRecord& attribute) {
    return (attribute.flags & attribute_flag::cell_bytes) / 16U;
}
constexpr bool is_by_initiator(const AttributeRecord& attribute) {
    return (attribute.flags & attribute_flag::by_initiator) != 0;
}
// With these cells are found in the header; others have cells or rows that are too large.
constexpr bool is_short(const AttributeRecord& attribute, std::uint32_t targets) {
    return cell_bytes(attribute) == 1 && (targets <= 0xff || !is_by_initiator(attribute));
}
constexpr std::uint8_t row_of(const AttributeRecord& attribute, std::uint32_t targets) {
    return static_cast<std::uint8_t>(
        is_by_initiator(attribute) && is_short(attribute, targets) ? targets : 0);
}

inline constexpr const char* predefined_attributes[] = {
    "Capacity",      "Locality",       "Bandwidth",   "Latency",
    "ReadBandwidth", "WriteBandwidth", "ReadLatency", "WriteLatency"};
static_assert(std::size(predefined_attributes) == WARREN_ATTRIBUTE_FIRST_OTHER);

// A value as readers get it.
struct AttributeValueAt {
    std::uint64_t value;
    std::uint32_t origin; // WARREN_ORIGIN_…
};

} // namespace warren::topology
