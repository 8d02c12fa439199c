// TopologyView: reads a topology image (format.hpp) where it is.
//
// check() tests everything that readers follow before anything is followed: sizes, every index,
// every string's end, that parents precede their children. Afterwards no function here can leave
// the image or loop for ever, whatever the bytes are, as long as they don't change. check() does
// not test whether the image is true of the machine: its maker has to be trusted for that.
//
// Functions take numbers that are in range: the C API (api.cpp) checks its arguments. They take
// constant time unless they say otherwise, and allocate nothing. Thread rule: a value; const from
// check() on.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "topology/details.hpp"
#include "topology/format.hpp"
#include "warren/topology.h"

namespace warren::topology {

class TopologyView {
  public:
    TopologyView() = default; // of nothing; only to be assigned to

    // `view` reads `image`, which begins at a multiple of 8, from now on.
    // Errors: WARREN_TOPOLOGY_ERR_DAMAGED.
    static Error check(std::span<const std::byte> image, TopologyView& view);

    std::span<const std::byte> image() const { return image_; }
    std::uint32_t objects() const { return objects_; }
    std::uint32_t tree_objects() const { return tree_objects_; }

    // Levels; those of the tree come first.
    std::uint32_t level_count() const { return level_count_; }
    std::uint32_t depth() const { return depth_; }
    Level level(std::uint32_t index) const {
        const LevelRecord& record = levels_[index];
        const bool is_beside = record.type >= static_cast<std::uint16_t>(ObjectType::numa_node);
        return {record.first, record.count,
                is_beside ? -static_cast<std::int32_t>(record.type)
                          : static_cast<std::int32_t>(index),
                record.type};
    }
    std::uint32_t level_index(std::uint32_t object) const { return level_of_[object]; }
    Level level_of(std::uint32_t object) const { return level(level_of_[object]); }
    ObjectType type(std::uint32_t object) const {
        return static_cast<ObjectType>(levels_[level_of_[object]].type);
    }
    // The first level of a type, level_count() when there is none.
    std::uint32_t first_level(ObjectType type) const {
        return first_level_[static_cast<std::size_t>(type)];
    }
    std::uint32_t next_level(std::uint32_t index) const {
        const std::uint32_t type = levels_[index].type;
        do {
            ++index;
        } while (index < level_count_ && levels_[index].type != type);
        return index;
    }
    std::uint32_t count(ObjectType type) const;
    std::uint32_t object(ObjectType type, std::uint32_t index) const;
    std::uint32_t by_os_index(ObjectType type, std::uint32_t os_index) const; // may search
    std::uint32_t next(ObjectType type, std::uint32_t object) const;          // none: the first

    std::uint32_t os_index(std::uint32_t object) const {
        const std::uint16_t index = os_index_[object];
        return index == wide16 ? wide_os_index(object) : widen(index);
    }
    std::uint32_t parent(std::uint32_t object) const { return widen(parent_[object]); }
    bool is_symmetric(std::uint32_t object) const { return has(object, object_flag::symmetric); }
    bool is_in_tree(std::uint32_t object) const { return object < tree_objects_; }

    std::uint32_t child_count(std::uint32_t object, int kind) const;
    std::uint32_t child(std::uint32_t object, int kind, std::uint32_t index) const;

    // The next child of the tree of the same parent, none behind the last; searches in uneven
    // trees.
    std::uint32_t next_sibling(std::uint32_t object) const;

    // The object itself, or what a device or other is attached to: what has sets.
    std::uint32_t with_sets(std::uint32_t object) const {
        while (cpuset_of_[object] == none16) {
            object = parent_[object];
        }
        return object;
    }
    warren_set cpus(std::uint32_t object) const { return set(cpuset_of_[with_sets(object)]); }
    warren_set nodes(std::uint32_t object) const { return set(nodeset_of_[with_sets(object)]); }
    warren_set complete_cpus(std::uint32_t object) const;
    warren_set complete_nodes(std::uint32_t object) const;
    warren_set allowed_cpus() const { return set(allowed_[0]); }
    warren_set allowed_nodes() const { return set(allowed_[1]); }

    std::uint32_t ancestor(std::uint32_t object, ObjectType type) const;
    std::uint32_t common_ancestor(std::uint32_t one, std::uint32_t other) const;
    // For the header's own look-ups.
    const warren_topology_index& index() const { return index_; }
    bool is_below(std::uint32_t object, std::uint32_t ancestor) const;
    // The lowest object of the tree that has all these processors; looks at each of them.
    std::uint32_t covering(const warren_set& cpus) const;

    // Null when there are none.
    const char* name(std::uint32_t object) const { return info(object, name_key); }
    const char* subtype(std::uint32_t object) const { return info(object, subtype_key); }
    const char* info(std::uint32_t object, std::string_view name) const;
    // Without name and subtype; object none: of the topology.
    std::span<const InfoRecord> infos(std::uint32_t object) const;
    const char* string(std::uint32_t offset) const { return strings_ + offset; }

    // As details.hpp has them; null for types without.
    const std::uint64_t* details(std::uint32_t object) const {
        const LevelRecord& level = levels_[level_of_[object]];
        return detail_words(static_cast<ObjectType>(level.type)) == 0
                   ? nullptr
                   : details_ + details_of_[std::uint32_t{level.details} + object - level.first];
    }
    // Bytes of a NUMA node, or of all NUMA nodes at or below another object.
    std::uint64_t memory_bytes(std::uint32_t object) const;

    std::span<const DistancesRecord> distances() const { return distances_; }
    const std::uint32_t* distance_objects(const DistancesRecord& matrix) const {
        return distance_objects_ + matrix.objects;
    }
    std::uint64_t distance(const DistancesRecord& matrix, std::uint32_t from,
                           std::uint32_t to) const {
        return number(distance_bytes_ + matrix.bytes, matrix.width,
                      std::size_t{from} * matrix.count + to);
    }

    std::span<const CpuKindRecord> cpu_kinds() const { return cpu_kinds_; }
    std::span<const InfoRecord> infos(const CpuKindRecord& kind) const {
        return {infos_.data() + kind.first_info, kind.infos};
    }
    warren_set set(std::uint32_t index) const {
        const SetRecord& record = sets_[index];
        return {words_ + record.word, record.first, record.count};
    }

    // Targets are NUMA nodes by logical index, here.
    std::uint32_t targets() const { return index_.targets; }
    std::uint32_t target_object(std::uint32_t target) const { return index_.first_target + target; }
    std::uint32_t target_of_node(std::uint32_t os_index) const {
        return os_index < index_.nodes ? extend(index_.target_by_node[os_index]) : none;
    }
    std::span<const InitiatorRecord> initiators() const { return initiators_; }
    std::uint32_t initiator_of_cpu(std::uint32_t os_index) const {
        return os_index < index_.cpus ? extend(index_.initiator_by_cpu[os_index]) : none;
    }
    std::uint32_t initiator_of_cpus(const warren_set& cpus) const; // looks at each
    std::uint32_t initiator_of_object(std::uint32_t object) const;

    // The memory that is nearest to an object's processors, none if there is none.
    std::uint32_t nearest_memory(std::uint32_t object) const;
    std::uint32_t nearest_of_initiator(std::uint32_t initiator) const;

    std::span<const AttributeRecord> attributes() const {
        return {index_.attributes, index_.attribute_count};
    }
    const char* attribute_name(std::uint32_t attribute) const {
        const std::uint16_t name = index_.attributes[attribute].name;
        return name == 0 && attribute < WARREN_ATTRIBUTE_FIRST_OTHER
                   ? predefined_attributes[attribute]
                   : string(name);
    }
    AttributeValueAt value(const AttributeRecord& attribute, std::uint32_t initiator,
                           std::uint32_t target) const {
        const std::size_t row = is_by_initiator(attribute) ? initiator : 0;
        const auto* first = reinterpret_cast<const std::uint8_t*>(index_.attributes);
        const std::size_t cell =
            number(first + attribute.cells, cell_bytes(attribute), row * index_.targets + target);
        const std::uint8_t* at = first + attribute.values + cell * attribute.value_stride;
        return {number(at + 1, attribute.value_stride - 1U, 0), *at};
    }
    // The target that is the index-th in the order for an initiator, the best first.
    std::uint32_t ordered_target(const AttributeRecord& attribute, std::uint32_t initiator,
                                 std::uint32_t index) const {
        const std::size_t row = std::size_t{attribute.order} * index_.initiators + initiator;
        return static_cast<std::uint32_t>(
            number(index_.orders, order_width(index_.targets), row * index_.targets + index));
    }

  private:
    friend class ImageCheck;

    static std::uint32_t extend(std::int16_t index) { // -1: none
        return static_cast<std::uint32_t>(std::int32_t{index});
    }
    bool has(std::uint32_t object, std::uint8_t flag) const { return (flags_[object] & flag) != 0; }

    static std::uint64_t number(const std::uint8_t* bytes, std::uint32_t width, std::size_t index) {
        const std::uint8_t* at = bytes + index * width;
        switch (width) {
        case 1:
            return *at;
        case 2: {
            std::uint16_t value;
            std::memcpy(&value, at, sizeof value);
            return value;
        }
        case 4: {
            std::uint32_t value;
            std::memcpy(&value, at, sizeof value);
            return value;
        }
        default: {
            std::uint64_t value;
            std::memcpy(&value, at, sizeof value);
            return value;
        }
        }
    }

    std::uint32_t wide_os_index(std::uint32_t object) const;
    const OtherChildren& others(std::uint32_t object) const;
    const CompleteSets* complete(std::uint32_t object) const;
    std::span<const InfoRecord> all_infos(std::uint32_t object) const;

    warren_topology_index index_ = {}; // first: handle.hpp
    std::span<const std::byte> image_;
    std::uint32_t objects_ = 0;
    std::uint32_t tree_objects_ = 0;
    std::uint32_t level_count_ = 0;
    std::uint32_t depth_ = 0;
    std::uint8_t first_level_[object_types] = {};

    const std::uint8_t* level_of_ = nullptr;
    const std::uint8_t* flags_ = nullptr;
    const std::uint16_t* arity_ = nullptr;
    const std::uint16_t* details_of_ = nullptr;
    const std::uint16_t* nodeset_of_ = nullptr;
    const std::uint16_t* os_index_ = nullptr;
    const std::uint16_t* parent_ = nullptr;
    const std::uint16_t* first_child_ = nullptr;
    const std::uint16_t* cpuset_of_ = nullptr;
    std::span<const OtherChildren> other_children_;
    std::span<const CompleteSets> complete_sets_;
    std::span<const InfoRecord> infos_;
    const LevelRecord* levels_ = nullptr;
    const std::uint16_t* children_ = nullptr;
    const std::uint64_t* details_ = nullptr;
    const SetRecord* sets_ = nullptr;
    const std::uint64_t* words_ = nullptr;
    const char* strings_ = nullptr;
    std::span<const DistancesRecord> distances_;
    const std::uint32_t* distance_objects_ = nullptr;
    const std::uint8_t* distance_bytes_ = nullptr;
    std::span<const CpuKindRecord> cpu_kinds_;
    std::span<const InitiatorRecord> initiators_;
    std::span<const WideOsIndex> wide_os_indices_;
    const std::uint16_t* allowed_ = nullptr;
};

} // namespace warren::topology
