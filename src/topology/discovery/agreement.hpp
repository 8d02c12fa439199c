// For tests: compares a topology with the hwloc topology that it was made of, through the C API,
// object by object: everything that programs can ask for. Each difference fails the test.
#pragma once

#include <cstdint>
#include <gtest/gtest.h>
#include <hwloc.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "warren/topology.h"

namespace warren::discovery {

class Agreement {
  public:
    Agreement(hwloc_topology_t theirs, const warren_topology* ours)
        : theirs_(theirs), ours_(ours) {}

    void check_all() {
        number_objects();
        ASSERT_EQ(numbers_.size(), warren_topology_objects(ours_));
        for (const auto& [object, number] : numbers_) {
            check_object(object, number);
            check_sets(object, number);
            check_relations(object, number);
            check_details(object, number);
            if (testing::Test::HasFailure()) {
                return; // one is enough to look at
            }
        }
        check_ancestors();
        check_coverings();
        check_distances();
        check_cpu_kinds();
        check_attributes();
    }

  private:
    static int our_type(hwloc_obj_type_t type) {
        return warren_object_type_by_name(hwloc_obj_type_string(type));
    }

    void number_objects() {
        for (int type = 0; type < HWLOC_OBJ_TYPE_MAX; ++type) {
            std::uint32_t index = 0;
            // A type may have several depths.
            std::vector<int> depths;
            const int depth = hwloc_get_type_depth(theirs_, static_cast<hwloc_obj_type_t>(type));
            if (depth == HWLOC_TYPE_DEPTH_MULTIPLE) {
                for (int level = 0; level < hwloc_topology_get_depth(theirs_); ++level) {
                    if (hwloc_get_depth_type(theirs_, level) == type) {
                        depths.push_back(level);
                    }
                }
            } else if (depth != HWLOC_TYPE_DEPTH_UNKNOWN) {
                depths.push_back(depth);
            }
            const int own = our_type(static_cast<hwloc_obj_type_t>(type));
            ASSERT_GE(own, 0);
            for (const int level : depths) {
                for (unsigned at = 0; at < hwloc_get_nbobjs_by_depth(theirs_, level); ++at) {
                    const warren_object number = warren_topology_object(ours_, own, index++);
                    ASSERT_NE(number, WARREN_NO_OBJECT);
                    numbers_[hwloc_get_obj_by_depth(theirs_, level, at)] = number;
                }
            }
            EXPECT_EQ(warren_topology_count(ours_, own), index);
            EXPECT_EQ(warren_topology_object(ours_, own, index), WARREN_NO_OBJECT);
        }
    }

    void check_object(hwloc_obj_t object, warren_object number) {
        SCOPED_TRACE("object " + std::to_string(number));
        EXPECT_EQ(warren_object_type(ours_, number), our_type(object->type));
        EXPECT_EQ(warren_object_depth(ours_, number), object->depth < 0 ? -1 : object->depth);
        EXPECT_EQ(warren_object_logical_index(ours_, number), object->logical_index);
        EXPECT_EQ(warren_object_os_index(ours_, number), object->os_index);
        EXPECT_EQ(warren_object_is_symmetric(ours_, number), object->symmetric_subtree != 0);
        same_text(warren_object_name(ours_, number), object->name);
        same_text(warren_object_subtype(ours_, number), object->subtype);
        EXPECT_EQ(warren_object_memory_bytes(ours_, number), object->total_memory);
        ASSERT_EQ(warren_object_info_count(ours_, number), object->infos_count);
        for (unsigned index = 0; index < object->infos_count; ++index) {
            const char* name = nullptr;
            const char* value = nullptr;
            ASSERT_EQ(warren_object_info_at(ours_, number, index, &name, &value), 0);
            same_text(name, object->infos[index].name);
            same_text(value, object->infos[index].value);
            same_text(warren_object_info(ours_, number, name),
                      hwloc_obj_get_info_by_name(object, name));
        }
    }

    static void same_text(const char* ours, const char* theirs) {
        ASSERT_EQ(ours == nullptr, theirs == nullptr);
        EXPECT_STREQ(ours, theirs);
    }

    static void same_set(const warren_set& ours, hwloc_const_bitmap_t theirs) {
        ASSERT_NE(theirs, nullptr);
        EXPECT_EQ(warren_set_count(ours), static_cast<unsigned>(hwloc_bitmap_weight(theirs)));
        int bit = hwloc_bitmap_first(theirs);
        for (std::uint32_t member = warren_set_next(ours, 0); member != WARREN_NO_INDEX;
             member = warren_set_next(ours, member + 1)) {
            EXPECT_EQ(static_cast<int>(member), bit);
            EXPECT_EQ(warren_set_has(ours, member), 1);
            bit = hwloc_bitmap_next(theirs, bit);
        }
        EXPECT_EQ(bit, -1);
    }

    void check_sets(hwloc_obj_t object, warren_object number) {
        SCOPED_TRACE("sets of object " + std::to_string(number));
        while (object->cpuset == nullptr) { // of what it is attached to
            object = object->parent;
        }
        same_set(warren_object_cpus(ours_, number), object->cpuset);
        same_set(warren_object_nodes(ours_, number), object->nodeset);
        same_set(warren_object_complete_cpus(ours_, number), object->complete_cpuset);
        same_set(warren_object_complete_nodes(ours_, number), object->complete_nodeset);
    }

    void check_relations(hwloc_obj_t object, warren_object number) {
        SCOPED_TRACE("relations of object " + std::to_string(number));
        EXPECT_EQ(warren_object_parent(ours_, number),
                  object->parent != nullptr ? numbers_.at(object->parent) : WARREN_NO_OBJECT);
        const std::pair<unsigned, hwloc_obj_t> kinds[] = {
            {object->arity, object->first_child},
            {object->memory_arity, object->memory_first_child},
            {object->io_arity, object->io_first_child},
            {object->misc_arity, object->misc_first_child}};
        for (int kind = WARREN_CHILD_TREE; kind <= WARREN_CHILD_MISC; ++kind) {
            ASSERT_EQ(warren_object_child_count(ours_, number, kind), kinds[kind].first);
            hwloc_obj_t child = kinds[kind].second;
            for (std::uint32_t index = 0; child != nullptr; ++index) {
                EXPECT_EQ(warren_object_child(ours_, number, kind, index), numbers_.at(child));
                child = child->next_sibling;
            }
        }
        hwloc_obj_t cousin = object->next_cousin;
        if (hwloc_get_type_depth(theirs_, object->type) != HWLOC_TYPE_DEPTH_MULTIPLE) {
            EXPECT_EQ(warren_topology_next(ours_, our_type(object->type), number),
                      cousin != nullptr ? numbers_.at(cousin) : WARREN_NO_OBJECT);
        }
        if (object->type == HWLOC_OBJ_PU || object->type == HWLOC_OBJ_NUMANODE) {
            EXPECT_EQ(warren_topology_by_os_index(ours_, our_type(object->type), object->os_index),
                      number);
        }
        hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(theirs_, HWLOC_OBJ_PACKAGE, object);
        if (object->depth >= 0) {
            EXPECT_EQ(warren_object_ancestor(ours_, number, WARREN_OBJECT_PACKAGE),
                      package != nullptr ? numbers_.at(package) : WARREN_NO_OBJECT);
        }
    }

    void check_details(hwloc_obj_t object, warren_object number) {
        SCOPED_TRACE("details of object " + std::to_string(number));
        warren_cache cache{};
        const bool is_cache =
            hwloc_obj_type_is_cache(object->type) != 0 || object->type == HWLOC_OBJ_MEMCACHE;
        ASSERT_EQ(warren_object_cache(ours_, number, &cache) == WARREN_TOPOLOGY_SUCCESS, is_cache);
        if (is_cache) {
            EXPECT_EQ(cache.bytes, object->attr->cache.size);
            EXPECT_EQ(cache.line_bytes, object->attr->cache.linesize);
            EXPECT_EQ(cache.associativity, object->attr->cache.associativity);
            EXPECT_EQ(cache.depth, object->attr->cache.depth);
            EXPECT_EQ(cache.kind, static_cast<unsigned>(object->attr->cache.type));
        }
        if (object->type == HWLOC_OBJ_NUMANODE) {
            const auto& node = object->attr->numanode;
            EXPECT_EQ(warren_object_memory_bytes(ours_, number), node.local_memory);
            ASSERT_EQ(warren_object_page_sizes(ours_, number), node.page_types_len);
            for (unsigned index = 0; index < node.page_types_len; ++index) {
                std::uint64_t bytes = 0;
                std::uint64_t pages = 0;
                ASSERT_EQ(warren_object_page_size(ours_, number, index, &bytes, &pages), 0);
                EXPECT_EQ(bytes, node.page_types[index].size);
                EXPECT_EQ(pages, node.page_types[index].count);
            }
        }
        if (object->type == HWLOC_OBJ_GROUP) {
            warren_group group{};
            ASSERT_EQ(warren_object_group(ours_, number, &group), 0);
            EXPECT_EQ(group.depth, object->attr->group.depth);
            EXPECT_EQ(group.kind, object->attr->group.kind);
            EXPECT_EQ(group.subkind, object->attr->group.subkind);
        }
        check_devices(object, number);
    }

    void check_devices(hwloc_obj_t object, warren_object number) {
        const bool is_bridge = object->type == HWLOC_OBJ_BRIDGE;
        const bool is_on_bus =
            object->type == HWLOC_OBJ_PCI_DEVICE ||
            (is_bridge && object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI);
        warren_pci_device device{};
        ASSERT_EQ(warren_object_pci_device(ours_, number, &device) == 0, is_on_bus);
        if (is_on_bus) {
            const auto& pci = object->attr->pcidev; // first of a bridge's attributes, too
            EXPECT_EQ(device.domain, pci.domain);
            EXPECT_EQ(device.bus, pci.bus);
            EXPECT_EQ(device.device, pci.dev);
            EXPECT_EQ(device.function, pci.func);
            EXPECT_EQ(device.class_id, pci.class_id);
            EXPECT_EQ(device.vendor_id, pci.vendor_id);
            EXPECT_EQ(device.device_id, pci.device_id);
            EXPECT_EQ(device.subvendor_id, pci.subvendor_id);
            EXPECT_EQ(device.subdevice_id, pci.subdevice_id);
            EXPECT_EQ(device.revision, pci.revision);
            EXPECT_EQ(device.link_gigabytes_per_second, pci.linkspeed);
        }
        warren_bridge bridge{};
        ASSERT_EQ(warren_object_bridge(ours_, number, &bridge) == 0, is_bridge);
        if (is_bridge) {
            const auto& below = object->attr->bridge.downstream.pci;
            EXPECT_EQ(bridge.is_host != 0,
                      object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST);
            EXPECT_EQ(bridge.depth, object->attr->bridge.depth);
            EXPECT_EQ(bridge.domain, below.domain);
            EXPECT_EQ(bridge.secondary_bus, below.secondary_bus);
            EXPECT_EQ(bridge.subordinate_bus, below.subordinate_bus);
        }
        EXPECT_EQ(warren_object_device_kind(ours_, number),
                  object->type == HWLOC_OBJ_OS_DEVICE ? static_cast<int>(object->attr->osdev.type)
                                                      : -1);
    }

    // By walking up, for up to some ten thousand pairs of objects of all kinds.
    void check_ancestors() {
        std::vector<hwloc_obj_t> objects;
        for (const auto& [object, number] : numbers_) {
            objects.push_back(object);
        }
        constexpr std::size_t pairs = 20'000;
        const std::size_t step = 1 + objects.size() * objects.size() / pairs;
        for (std::size_t pair = 0; pair < objects.size() * objects.size(); pair += step) {
            hwloc_obj_t one = objects[pair / objects.size()];
            hwloc_obj_t other = objects[pair % objects.size()];
            hwloc_obj_t above = one;
            const auto is_above = [](hwloc_obj_t top, hwloc_obj_t object) {
                while (object != nullptr && object != top) {
                    object = object->parent;
                }
                return object == top;
            };
            while (!is_above(above, other)) {
                above = above->parent;
            }
            ASSERT_EQ(warren_object_common_ancestor(ours_, numbers_.at(one), numbers_.at(other)),
                      numbers_.at(above))
                << numbers_.at(one) << " and " << numbers_.at(other);
            ASSERT_EQ(warren_object_is_below(ours_, numbers_.at(other), numbers_.at(one)),
                      is_above(one, other));
        }
    }

    void check_coverings() {
        const int depth = hwloc_topology_get_depth(theirs_);
        for (const auto& [object, number] : numbers_) {
            if (object->depth < 0 || object->next_cousin == nullptr) {
                continue;
            }
            hwloc_bitmap_t set = hwloc_bitmap_dup(object->cpuset);
            hwloc_bitmap_or(set, set, object->next_cousin->cpuset);
            hwloc_obj_t covering = hwloc_get_obj_covering_cpuset(theirs_, set);
            std::vector<std::uint64_t> words;
            for (int word = 0; word <= hwloc_bitmap_last(set) / 64; ++word) {
                words.push_back(hwloc_bitmap_to_ith_ulong(set, static_cast<unsigned>(word)));
            }
            const warren_set own{words.data(), 0, static_cast<std::uint32_t>(words.size())};
            EXPECT_EQ(warren_topology_covering(ours_, own),
                      hwloc_bitmap_iszero(set) != 0 ? WARREN_NO_OBJECT : numbers_.at(covering));
            hwloc_obj_t inside = nullptr;
            warren_object our_inside = WARREN_NO_OBJECT;
            do {
                inside = hwloc_get_next_obj_inside_cpuset_by_depth(theirs_, set, depth - 1, inside);
                our_inside = warren_topology_next_inside(ours_, own, WARREN_OBJECT_PU, our_inside);
                EXPECT_EQ(our_inside, inside != nullptr ? numbers_.at(inside) : WARREN_NO_OBJECT);
            } while (inside != nullptr && our_inside != WARREN_NO_OBJECT);
            hwloc_bitmap_free(set);
        }
    }

    void check_distances() {
        unsigned count = 64;
        std::vector<hwloc_distances_s*> matrices(count);
        ASSERT_EQ(hwloc_distances_get(theirs_, &count, matrices.data(), 0, 0), 0);
        ASSERT_EQ(warren_topology_distances_count(ours_), count);
        for (unsigned index = 0; index < count; ++index) {
            hwloc_distances_s* matrix = matrices[index];
            warren_distances own{};
            ASSERT_EQ(warren_topology_distances(ours_, index, &own), 0);
            same_text(own.name, hwloc_distances_get_name(theirs_, matrix));
            EXPECT_EQ(own.kind, matrix->kind);
            ASSERT_EQ(own.count, matrix->nbobjs);
            for (unsigned one = 0; one < matrix->nbobjs; ++one) {
                EXPECT_EQ(own.objects[one], numbers_.at(matrix->objs[one]));
                for (unsigned other = 0; other < matrix->nbobjs; ++other) {
                    std::uint64_t value = 0;
                    EXPECT_EQ(warren_topology_distance(ours_, index, one, other, &value), 0);
                    EXPECT_EQ(value, matrix->values[one * matrix->nbobjs + other]);
                }
            }
            hwloc_distances_release(theirs_, matrix);
        }
    }

    void check_cpu_kinds() {
        const int count = hwloc_cpukinds_get_nr(theirs_, 0);
        ASSERT_EQ(warren_topology_cpu_kinds(ours_), static_cast<unsigned>(count));
        hwloc_bitmap_t set = hwloc_bitmap_alloc();
        for (unsigned kind = 0; kind < static_cast<unsigned>(count); ++kind) {
            int efficiency = 0;
            unsigned infos = 0;
            hwloc_info_s* info = nullptr;
            hwloc_cpukinds_get_info(theirs_, kind, set, &efficiency, &infos, &info, 0);
            warren_set own{};
            int own_efficiency = 0;
            ASSERT_EQ(warren_topology_cpu_kind(ours_, kind, &own, &own_efficiency), 0);
            same_set(own, set);
            EXPECT_EQ(own_efficiency, efficiency);
            ASSERT_EQ(warren_topology_cpu_kind_info_count(ours_, kind), infos);
            for (unsigned index = 0; index < infos; ++index) {
                const char* name = nullptr;
                const char* value = nullptr;
                ASSERT_EQ(warren_topology_cpu_kind_info(ours_, kind, index, &name, &value), 0);
                same_text(name, info[index].name);
                same_text(value, info[index].value);
            }
        }
        hwloc_bitmap_free(set);
    }

    // Every value of hwloc is there as it is; every pair has one; orders are sorted.
    void check_attributes() {
        for (hwloc_memattr_id_t id = 0;; ++id) {
            const char* name = nullptr;
            if (hwloc_memattr_get_name(theirs_, id, &name) != 0) {
                break;
            }
            SCOPED_TRACE(name);
            unsigned long flags = 0;
            hwloc_memattr_get_flags(theirs_, id, &flags);
            const std::uint32_t own = warren_topology_attribute_by_name(ours_, name);
            ASSERT_NE(own, WARREN_NO_INDEX);
            EXPECT_EQ(warren_topology_attribute_flags(ours_, own), flags);
            EXPECT_STREQ(warren_topology_attribute_name(ours_, own), name);
            for (std::uint32_t row = 0; row < warren_topology_initiators(ours_); ++row) {
                check_initiator(id, own, row, flags);
            }
        }
    }

    void check_initiator(hwloc_memattr_id_t id, std::uint32_t own, std::uint32_t row,
                         unsigned long flags) {
        warren_set cpus{};
        warren_object device = WARREN_NO_OBJECT;
        ASSERT_EQ(warren_topology_initiator(ours_, row, &cpus, &device), 0);
        hwloc_bitmap_t set = hwloc_bitmap_alloc();
        for (std::uint32_t cpu = warren_set_next(cpus, 0); cpu != WARREN_NO_INDEX;
             cpu = warren_set_next(cpus, cpu + 1)) {
            hwloc_bitmap_set(set, cpu);
            if (device == WARREN_NO_OBJECT) {
                EXPECT_EQ(warren_topology_initiator_of_cpu(ours_, cpu), row);
            }
        }
        hwloc_location location{};
        location.type = HWLOC_LOCATION_TYPE_CPUSET;
        location.location.cpuset = set;
        for (const auto& [object, number] : numbers_) {
            if (number == device) {
                location.type = HWLOC_LOCATION_TYPE_OBJECT;
                location.location.object = object;
            }
        }
        hwloc_uint64_t best_of_firmware = 0;
        hwloc_obj_t best = nullptr;
        const bool has_best = hwloc_memattr_get_best_target(theirs_, id, &location, 0, &best,
                                                            &best_of_firmware) == 0 &&
                              best->type == HWLOC_OBJ_NUMANODE; // XML may speak of others
        bool seen_best = false;
        std::uint64_t before = 0;
        const std::uint32_t nodes = warren_topology_count(ours_, WARREN_OBJECT_NUMA_NODE);
        for (std::uint32_t place = 0; place < nodes; ++place) {
            const std::uint32_t target = warren_topology_best_target(ours_, own, row, place);
            hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(theirs_, target);
            ASSERT_NE(node, nullptr);
            std::uint64_t value = 0;
            int origin = 0;
            const int status = warren_topology_value(ours_, own, row, target, &value, &origin);
            hwloc_uint64_t theirs = 0;
            const bool is_known =
                hwloc_memattr_get_value(theirs_, id, node, &location, 0, &theirs) == 0;
            EXPECT_EQ(status == 0 && origin == WARREN_ORIGIN_FIRMWARE, is_known);
            if (is_known) {
                EXPECT_EQ(value, theirs);
                if (!seen_best && has_best && own != WARREN_ATTRIBUTE_LOCALITY) {
                    EXPECT_EQ(value, best_of_firmware);
                    seen_best = true;
                }
            }
            if (own < WARREN_ATTRIBUTE_FIRST_OTHER) {
                EXPECT_EQ(status, 0);
            }
            if (place > 0 && status == 0 && own != WARREN_ATTRIBUTE_LOCALITY) {
                EXPECT_TRUE((flags & HWLOC_MEMATTR_FLAG_HIGHER_FIRST) != 0 ? value <= before
                                                                           : value >= before);
            }
            before = value;
        }
        EXPECT_EQ(warren_topology_best_target(ours_, own, row, nodes), WARREN_NO_INDEX);
        EXPECT_TRUE(seen_best || !has_best || own == WARREN_ATTRIBUTE_LOCALITY);
        hwloc_bitmap_free(set);
    }

    hwloc_topology_t theirs_;
    const warren_topology* ours_;
    std::map<hwloc_obj_t, warren_object> numbers_;
};

} // namespace warren::discovery
