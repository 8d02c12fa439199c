// The C API (warren/topology.h): what is near, distances, kinds of processors, attributes of
// memory.
#include <strings.h>

#include "topology/handle.hpp"

#define WARREN_API extern "C" [[gnu::visibility("default")]]

namespace {

using warren::topology::is_object;
using warren::topology::none;
using warren::topology::ObjectType;
using warren::topology::TopologyView;
using warren::topology::c_api::nothing;
using warren::topology::c_api::success;
using warren::topology::c_api::wrong;

constexpr uint32_t public_flags = WARREN_ATTRIBUTE_HIGHER_IS_BETTER |
                                  WARREN_ATTRIBUTE_LOWER_IS_BETTER |
                                  WARREN_ATTRIBUTE_NEEDS_INITIATOR;

} // namespace

WARREN_API warren_object warren_topology_find_nearest_memory(const warren_topology* topology,
                                                             warren_object object) {
    return is_object(topology, object) ? topology->view.nearest_memory(object) : WARREN_NO_OBJECT;
}

WARREN_API warren_object warren_topology_nearest_memory_of_cpu(const warren_topology* topology,
                                                               uint32_t cpu) {
    return topology != nullptr
               ? topology->view.nearest_of_initiator(topology->view.initiator_of_cpu(cpu))
               : WARREN_NO_OBJECT;
}

WARREN_API warren_object warren_topology_nearest_device(const warren_topology* topology,
                                                        warren_object object, int kind,
                                                        uint32_t index) {
    if (!is_object(topology, object)) {
        return WARREN_NO_OBJECT;
    }
    // Devices are few: with each pass the next best, by how far down the common ancestor is (it is
    // above the object, so a larger number is further down), then by number.
    const TopologyView& view = topology->view;
    uint32_t last_ancestor = none;
    uint32_t last = none;
    for (uint64_t pass = 0; pass <= index; ++pass) {
        uint32_t best = none;
        uint32_t best_ancestor = 0;
        for (uint32_t device = view.next(ObjectType::os_device, none); device != none;
             device = view.next(ObjectType::os_device, device)) {
            if (static_cast<int>(view.details(device)[0]) != kind) {
                continue;
            }
            const uint32_t ancestor = view.common_ancestor(object, device);
            const bool is_left = last == none || ancestor < last_ancestor ||
                                 (ancestor == last_ancestor && device > last);
            if (is_left && (best == none || ancestor > best_ancestor)) {
                best = device;
                best_ancestor = ancestor;
            }
        }
        if (best == none) {
            return WARREN_NO_OBJECT;
        }
        last = best;
        last_ancestor = best_ancestor;
    }
    return last;
}

// ---- Distances

WARREN_API uint32_t warren_topology_distances_count(const warren_topology* topology) {
    return topology != nullptr ? static_cast<uint32_t>(topology->view.distances().size()) : 0;
}

WARREN_API int warren_topology_distances(const warren_topology* topology, uint32_t matrix,
                                         warren_distances* distances) {
    if (matrix >= warren_topology_distances_count(topology) || distances == nullptr) {
        return wrong;
    }
    const warren::topology::DistancesRecord& record = topology->view.distances()[matrix];
    *distances = {record.name == 0 ? nullptr : topology->view.string(record.name), record.kind,
                  record.count, topology->view.distance_objects(record)};
    return success;
}

WARREN_API int warren_topology_distance(const warren_topology* topology, uint32_t matrix,
                                        uint32_t from, uint32_t to, uint64_t* value) {
    if (matrix >= warren_topology_distances_count(topology) || value == nullptr) {
        return wrong;
    }
    const warren::topology::DistancesRecord& record = topology->view.distances()[matrix];
    if (from >= record.count || to >= record.count) {
        return wrong;
    }
    *value = topology->view.distance(record, from, to);
    return success;
}

// ---- Kinds of processors

WARREN_API uint32_t warren_topology_cpu_kinds(const warren_topology* topology) {
    return topology != nullptr ? static_cast<uint32_t>(topology->view.cpu_kinds().size()) : 0;
}

WARREN_API int warren_topology_cpu_kind(const warren_topology* topology, uint32_t kind,
                                        warren_set* cpus, int* efficiency) {
    if (kind >= warren_topology_cpu_kinds(topology)) {
        return wrong;
    }
    const warren::topology::CpuKindRecord& record = topology->view.cpu_kinds()[kind];
    if (cpus != nullptr) {
        *cpus = topology->view.set(record.cpuset);
    }
    if (efficiency != nullptr) {
        *efficiency = record.efficiency;
    }
    return success;
}

WARREN_API uint32_t warren_topology_cpu_kind_info_count(const warren_topology* topology,
                                                        uint32_t kind) {
    return kind < warren_topology_cpu_kinds(topology) ? topology->view.cpu_kinds()[kind].infos : 0;
}

WARREN_API int warren_topology_cpu_kind_info(const warren_topology* topology, uint32_t kind,
                                             uint32_t index, const char** name,
                                             const char** value) {
    if (index >= warren_topology_cpu_kind_info_count(topology, kind) || name == nullptr ||
        value == nullptr) {
        return wrong;
    }
    const TopologyView& view = topology->view;
    const warren::topology::InfoRecord& record = view.infos(view.cpu_kinds()[kind])[index];
    *name = view.string(record.name);
    *value = view.string(record.value);
    return success;
}

// ---- Attributes of memory

WARREN_API uint32_t warren_topology_attributes(const warren_topology* topology) {
    return topology != nullptr ? static_cast<uint32_t>(topology->view.attributes().size()) : 0;
}

WARREN_API uint32_t warren_topology_attribute_by_name(const warren_topology* topology,
                                                      const char* name) {
    const uint32_t count = name != nullptr ? warren_topology_attributes(topology) : 0;
    for (uint32_t attribute = 0; attribute < count; ++attribute) {
        if (strcasecmp(name, warren_topology_attribute_name(topology, attribute)) == 0) {
            return attribute;
        }
    }
    return WARREN_NO_INDEX;
}

WARREN_API const char* warren_topology_attribute_name(const warren_topology* topology,
                                                      uint32_t attribute) {
    return attribute < warren_topology_attributes(topology)
               ? topology->view.attribute_name(attribute)
               : nullptr;
}

WARREN_API uint32_t warren_topology_attribute_flags(const warren_topology* topology,
                                                    uint32_t attribute) {
    return attribute < warren_topology_attributes(topology)
               ? topology->view.attributes()[attribute].flags & public_flags
               : 0;
}

WARREN_API uint32_t warren_topology_initiators(const warren_topology* topology) {
    return topology != nullptr ? static_cast<uint32_t>(topology->view.initiators().size()) : 0;
}

WARREN_API uint32_t warren_topology_find_initiator_of_cpu(const warren_topology* topology,
                                                          uint32_t cpu) {
    return topology != nullptr ? topology->view.initiator_of_cpu(cpu) : WARREN_NO_INDEX;
}

WARREN_API uint32_t warren_topology_initiator_of_cpus(const warren_topology* topology,
                                                      warren_set cpus) {
    return topology != nullptr && warren::topology::is_set(cpus)
               ? topology->view.initiator_of_cpus(cpus)
               : WARREN_NO_INDEX;
}

WARREN_API uint32_t warren_topology_initiator_of_object(const warren_topology* topology,
                                                        warren_object object) {
    return is_object(topology, object) ? topology->view.initiator_of_object(object)
                                       : WARREN_NO_INDEX;
}

WARREN_API int warren_topology_initiator(const warren_topology* topology, uint32_t initiator,
                                         warren_set* cpus, warren_object* device) {
    if (initiator >= warren_topology_initiators(topology)) {
        return wrong;
    }
    const warren::topology::InitiatorRecord& record = topology->view.initiators()[initiator];
    if (cpus != nullptr) {
        *cpus = topology->view.set(record.cpuset);
    }
    if (device != nullptr) {
        *device = warren::topology::widen(record.object);
    }
    return success;
}

WARREN_API warren_topology_found warren_topology_find_value(const warren_topology* topology,
                                                            uint32_t attribute, uint32_t initiator,
                                                            uint32_t node) {
    if (topology == nullptr) {
        return {0, 0, wrong};
    }
    const TopologyView& view = topology->view;
    const uint32_t target = view.target_of_node(node);
    if (attribute >= view.attributes().size() || target == none) {
        return {0, 0, wrong};
    }
    const warren_topology_attribute& record = view.attributes()[attribute];
    if (initiator >= view.initiators().size()) {
        if ((record.flags & WARREN_ATTRIBUTE_NEEDS_INITIATOR) != 0 ||
            warren::topology::is_by_initiator(record)) {
            return {0, 0, wrong};
        }
        initiator = 0;
    }
    const warren::topology::AttributeValueAt found = view.value(record, initiator, target);
    return {found.value, static_cast<int>(found.origin), found.origin != 0 ? success : nothing};
}

WARREN_API uint32_t warren_topology_find_best_target(const warren_topology* topology,
                                                     uint32_t attribute, uint32_t initiator,
                                                     uint32_t place) {
    if (topology == nullptr) {
        return WARREN_NO_INDEX;
    }
    const TopologyView& view = topology->view;
    if (attribute >= view.attributes().size() || initiator >= view.initiators().size() ||
        place >= view.targets()) {
        return WARREN_NO_INDEX;
    }
    return view.os_index(
        view.target_object(view.ordered_target(view.attributes()[attribute], initiator, place)));
}
