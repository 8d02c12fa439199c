#include "topology/discovery/describe.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "topology/details.hpp"
#include "topology/discovery/isolated.hpp"
#include "topology/discovery/memory_account.hpp"
#include "topology/encode.hpp"
#include "topology/guess.hpp"
#include "topology/handle.hpp"
#include "topology/mapping.hpp"
#include "topology/values_file.hpp"
#include "warren/topology.h"

namespace warren::discovery {

namespace {

using topology::Bits;
using topology::Description;
using topology::Object;
using topology::ObjectType;

// hwloc's special levels in our order.
constexpr struct {
    int depth;
    ObjectType type;
} beside_tree[] = {
    {HWLOC_TYPE_DEPTH_MEMCACHE, ObjectType::memory_cache},
    {HWLOC_TYPE_DEPTH_NUMANODE, ObjectType::numa_node},
    {HWLOC_TYPE_DEPTH_BRIDGE, ObjectType::bridge},
    {HWLOC_TYPE_DEPTH_PCI_DEVICE, ObjectType::pci_device},
    {HWLOC_TYPE_DEPTH_OS_DEVICE, ObjectType::os_device},
    {HWLOC_TYPE_DEPTH_MISC, ObjectType::misc},
};

bool tree_type(hwloc_obj_type_t type, ObjectType& own) {
    static constexpr struct {
        hwloc_obj_type_t type;
        ObjectType own;
    } types[] = {
        {HWLOC_OBJ_MACHINE, ObjectType::machine},
        {HWLOC_OBJ_PACKAGE, ObjectType::package},
        {HWLOC_OBJ_DIE, ObjectType::die},
        {HWLOC_OBJ_CORE, ObjectType::core},
        {HWLOC_OBJ_PU, ObjectType::pu},
        {HWLOC_OBJ_L1CACHE, ObjectType::l1_cache},
        {HWLOC_OBJ_L2CACHE, ObjectType::l2_cache},
        {HWLOC_OBJ_L3CACHE, ObjectType::l3_cache},
        {HWLOC_OBJ_L4CACHE, ObjectType::l4_cache},
        {HWLOC_OBJ_L5CACHE, ObjectType::l5_cache},
        {HWLOC_OBJ_L1ICACHE, ObjectType::l1i_cache},
        {HWLOC_OBJ_L2ICACHE, ObjectType::l2i_cache},
        {HWLOC_OBJ_L3ICACHE, ObjectType::l3i_cache},
        {HWLOC_OBJ_GROUP, ObjectType::group},
    };
    for (const auto& entry : types) {
        if (entry.type == type) {
            own = entry.own;
            return true;
        }
    }
    return false;
}

// Bits that are passed on as they are.
static_assert(int{HWLOC_DISTANCES_KIND_FROM_OS} == int{WARREN_DISTANCES_FROM_OS} &&
              int{HWLOC_DISTANCES_KIND_HETEROGENEOUS_TYPES} == int{WARREN_DISTANCES_MIXED_TYPES});
static_assert(int{HWLOC_MEMATTR_FLAG_HIGHER_FIRST} == int{WARREN_ATTRIBUTE_HIGHER_IS_BETTER} &&
              int{HWLOC_MEMATTR_FLAG_LOWER_FIRST} == int{WARREN_ATTRIBUTE_LOWER_IS_BETTER} &&
              int{HWLOC_MEMATTR_FLAG_NEED_INITIATOR} == int{WARREN_ATTRIBUTE_NEEDS_INITIATOR});

Error strange(const char* what) {
    return fail(WARREN_TOPOLOGY_ERR_DISCOVERY, "hwloc's topology has %s", what);
}

// hwloc takes any number of an XML for a kind. Copied, since one that is no kind is not to be
// looked at as one.
template <typename Kind>
std::uint32_t number_of(const Kind& kind) {
    std::uint32_t number = 0;
    static_assert(sizeof number == sizeof kind);
    std::memcpy(&number, &kind, sizeof number);
    return number;
}

class Describer {
  public:
    Describer(const HwlocLibrary& hwloc, hwloc_topology_t topology, Description& description)
        : hwloc_(hwloc), topology_(topology), description_(description) {}

    Error run();

  private:
    Error find_levels();
    Error add_object(hwloc_obj_t object);
    Error add_sets(hwloc_obj_t object, Object& own) const;
    static Error add_details(ObjectType type, hwloc_obj_t object, Object& own);
    Error add_distances();
    Error add_cpu_kinds();
    Error add_attributes();
    Error add_values_of(hwloc_memattr_id_t id, std::uint32_t target,
                        topology::Attribute& attribute);

    Error bits(hwloc_const_bitmap_t bitmap, Bits& bits) const;
    std::uint32_t number(hwloc_obj_t object) const {
        return first_.at(object->depth) + object->logical_index;
    }

    const HwlocLibrary& hwloc_;
    hwloc_topology_t topology_;
    Description& description_;
    std::map<int, std::uint32_t> first_; // object number by hwloc's depth
};

Error Describer::bits(hwloc_const_bitmap_t bitmap, Bits& bits) const {
    bits.clear();
    const int last = hwloc_.bitmap_last(bitmap);
    if (last < 0) {
        return hwloc_.bitmap_next(bitmap, -1) < 0 ? Error{} : strange("an infinite set");
    }
    if (static_cast<std::uint32_t>(last) > topology::max_os_index) {
        return fail(WARREN_TOPOLOGY_ERR_LIMIT, "a processor or NUMA node has the OS index %d",
                    last);
    }
    for (unsigned word = 0; word <= static_cast<unsigned>(last) / 64; ++word) {
        bits.push_back(hwloc_.bitmap_to_ith_ulong(bitmap, word));
    }
    return {};
}

Error Describer::find_levels() {
    std::uint32_t number = 0;
    const auto add = [&](int depth, ObjectType type, std::int32_t own_depth) {
        const unsigned count = hwloc_.get_nbobjs_by_depth(topology_, depth);
        if (count > 0) {
            first_[depth] = number;
            description_.levels.push_back(
                {number, count, own_depth, static_cast<std::uint32_t>(type)});
            number += count;
        }
    };
    const int depth = hwloc_.topology_get_depth(topology_);
    for (int level = 0; level < depth; ++level) {
        ObjectType type{};
        if (!tree_type(hwloc_.get_depth_type(topology_, level), type)) {
            return strange("a level of an unknown type");
        }
        add(level, type, level);
    }
    for (const auto& level : beside_tree) {
        add(level.depth, level.type, -static_cast<std::int32_t>(level.type));
    }
    return {};
}

warren_pci_device pci_device(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
    warren_pci_device device{};
    device.domain = pci.domain;
    device.bus = pci.bus;
    device.device = pci.dev;
    device.function = pci.func;
    device.revision = pci.revision;
    device.class_id = pci.class_id;
    device.vendor_id = pci.vendor_id;
    device.device_id = pci.device_id;
    device.subvendor_id = pci.subvendor_id;
    device.subdevice_id = pci.subdevice_id;
    device.link_gigabytes_per_second = pci.linkspeed;
    return device;
}

Error Describer::add_details(ObjectType type, hwloc_obj_t object, Object& own) {
    const hwloc_obj_attr_u* attributes = object->attr;
    if (attributes == nullptr) {
        own.details.assign(topology::detail_words(type), 0);
    } else if (topology::is_cache(type)) {
        const auto& cache = attributes->cache;
        own.details =
            topology::pack(warren_cache{cache.size, cache.linesize, cache.associativity,
                                        cache.depth, static_cast<std::uint32_t>(cache.type)});
    } else if (type == ObjectType::numa_node) {
        const auto& node = attributes->numanode;
        own.details = {node.local_memory, node.page_types_len};
        for (unsigned index = 0; index < node.page_types_len; ++index) {
            own.details.push_back(node.page_types[index].size);
            own.details.push_back(node.page_types[index].count);
        }
    } else if (type == ObjectType::group) {
        own.details = topology::pack(warren_group{attributes->group.depth, attributes->group.kind,
                                                  attributes->group.subkind});
    } else if (type == ObjectType::pci_device) {
        own.details = topology::pack(pci_device(attributes->pcidev));
    } else if (type == ObjectType::bridge) {
        const auto& bridge = attributes->bridge;
        const std::uint32_t above = number_of(bridge.upstream_type);
        const std::uint32_t beneath = number_of(bridge.downstream_type);
        if (above > HWLOC_OBJ_BRIDGE_PCI || beneath != HWLOC_OBJ_BRIDGE_PCI) {
            return fail(WARREN_TOPOLOGY_ERR_DISCOVERY,
                        "hwloc's topology has a bridge of the unknown kind %u-%u", above, beneath);
        }
        const bool is_host = above == HWLOC_OBJ_BRIDGE_HOST;
        const auto& below = bridge.downstream.pci;
        own.details =
            topology::pack(warren_bridge{is_host, bridge.depth, below.domain, below.secondary_bus,
                                         below.subordinate_bus},
                           is_host ? warren_pci_device{} : pci_device(bridge.upstream.pci));
    } else if (type == ObjectType::os_device) {
        const std::uint32_t kind = number_of(attributes->osdev.type);
        if (kind > WARREN_DEVICE_MEMORY) {
            return fail(WARREN_TOPOLOGY_ERR_DISCOVERY,
                        "hwloc's topology has a device of the unknown kind %u", kind);
        }
        own.details = {kind};
    }
    return {};
}

Error Describer::add_sets(hwloc_obj_t object, Object& own) const {
    own.has_sets = object->cpuset != nullptr && object->nodeset != nullptr;
    if (!own.has_sets) {
        return {};
    }
    const std::pair<hwloc_const_bitmap_t, Bits*> sets[] = {
        {object->cpuset, &own.cpus},
        {object->nodeset, &own.nodes},
        {object->complete_cpuset != nullptr ? object->complete_cpuset : object->cpuset,
         &own.complete_cpus},
        {object->complete_nodeset != nullptr ? object->complete_nodeset : object->nodeset,
         &own.complete_nodes},
    };
    for (const auto& [bitmap, set] : sets) {
        if (Error error = bits(bitmap, *set)) {
            return error;
        }
    }
    return {};
}

Error Describer::add_object(hwloc_obj_t object) {
    Object& own = description_.objects.emplace_back();
    const ObjectType type =
        description_.type_of(static_cast<std::uint32_t>(description_.objects.size() - 1));
    own.os_index = object->os_index; // HWLOC_UNKNOWN_INDEX is our none
    own.parent = object->parent != nullptr ? number(object->parent) : topology::none;
    own.symmetric = object->symmetric_subtree != 0;
    if (Error error = add_sets(object, own)) {
        return error;
    }
    const hwloc_obj_t first_children[] = {object->first_child, object->memory_first_child,
                                          object->io_first_child, object->misc_first_child};
    for (std::size_t kind = 0; kind < own.children.size(); ++kind) {
        for (hwloc_obj_t child = first_children[kind]; child != nullptr;
             child = child->next_sibling) {
            own.children[kind].push_back(number(child));
        }
    }
    if (object->name != nullptr) {
        own.name = object->name;
    }
    if (object->subtype != nullptr) {
        own.subtype = object->subtype;
    }
    for (unsigned index = 0; index < object->infos_count; ++index) {
        own.infos.push_back({object->infos[index].name, object->infos[index].value});
    }
    return add_details(type, object, own);
}

Error Describer::add_distances() {
    unsigned count = 0;
    if (hwloc_.distances_get(topology_, &count, nullptr, 0, 0) != 0) {
        return strange("distances that can't be read");
    }
    std::vector<hwloc_distances_s*> matrices(count);
    if (count > 0 && hwloc_.distances_get(topology_, &count, matrices.data(), 0, 0) != 0) {
        return strange("distances that can't be read");
    }
    // All of them, also when one is refused.
    const std::unique_ptr<hwloc_distances_s*, std::function<void(hwloc_distances_s**)>> release(
        matrices.data(), [&](hwloc_distances_s**) {
            for (hwloc_distances_s* matrix : matrices) {
                hwloc_.distances_release(topology_, matrix);
            }
        });
    for (hwloc_distances_s* matrix : matrices) {
        topology::Distances& own = description_.distances.emplace_back();
        if (const char* name = hwloc_.distances_get_name(topology_, matrix)) {
            own.name = name;
        }
        own.kind = static_cast<std::uint32_t>(matrix->kind);
        for (unsigned index = 0; index < matrix->nbobjs; ++index) {
            own.objects.push_back(number(matrix->objs[index]));
        }
        own.values.assign(matrix->values,
                          matrix->values + std::size_t{matrix->nbobjs} * matrix->nbobjs);
        if (matrix->kind > UINT32_MAX) {
            return fail(WARREN_TOPOLOGY_ERR_DISCOVERY,
                        "hwloc's topology has distances of the unknown kind %lu", matrix->kind);
        }
    }
    return {};
}

Error Describer::add_cpu_kinds() {
    const int count = hwloc_.cpukinds_get_nr(topology_, 0);
    for (int index = 0; index < count; ++index) {
        topology::CpuKind& own = description_.cpu_kinds.emplace_back();
        hwloc_bitmap_t set = hwloc_.bitmap_alloc();
        int efficiency = -1;
        unsigned infos = 0;
        hwloc_info_s* info = nullptr;
        Error error = hwloc_.cpukinds_get_info(topology_, static_cast<unsigned>(index), set,
                                               &efficiency, &infos, &info, 0) != 0
                          ? strange("kinds of processors that can't be read")
                          : bits(set, own.cpus);
        hwloc_.bitmap_free(set);
        if (error) {
            return error;
        }
        own.efficiency = efficiency;
        for (unsigned at = 0; at < infos; ++at) {
            own.infos.push_back({info[at].name, info[at].value});
        }
    }
    return {};
}

// The values of one target.
Error Describer::add_values_of(hwloc_memattr_id_t id, std::uint32_t target,
                               topology::Attribute& attribute) {
    hwloc_obj_t node = hwloc_.get_obj_by_depth(topology_, HWLOC_TYPE_DEPTH_NUMANODE, target);
    topology::AttributeValue value;
    value.target = target;
    value.origin = WARREN_ORIGIN_FIRMWARE;
    if ((attribute.flags & WARREN_ATTRIBUTE_NEEDS_INITIATOR) == 0) {
        hwloc_uint64_t number = 0;
        if (hwloc_.memattr_get_value(topology_, id, node, nullptr, 0, &number) == 0) {
            value.value = number;
            attribute.values.push_back(value);
        }
        return {};
    }
    unsigned count = 0;
    if (hwloc_.memattr_get_initiators(topology_, id, node, 0, &count, nullptr, nullptr) != 0 ||
        count == 0) {
        return {}; // nothing is known of it
    }
    std::vector<hwloc_location> initiators(count);
    std::vector<hwloc_uint64_t> values(count);
    if (hwloc_.memattr_get_initiators(topology_, id, node, 0, &count, initiators.data(),
                                      values.data()) != 0) {
        return {};
    }
    for (unsigned index = 0; index < count; ++index) {
        value.initiator_object = topology::none;
        value.initiator_cpus.clear();
        if (initiators[index].type == HWLOC_LOCATION_TYPE_OBJECT) {
            value.initiator_object = number(initiators[index].location.object);
        } else if (Error error = bits(initiators[index].location.cpuset, value.initiator_cpus)) {
            return error;
        } else if (topology::is_empty(value.initiator_cpus)) {
            continue; // processors that are offline
        }
        value.value = values[index];
        attribute.values.push_back(value);
    }
    return {};
}

Error Describer::add_attributes() {
    description_.attributes = topology::standard_attributes();
    const std::size_t targets = description_.targets().size();
    for (hwloc_memattr_id_t id = 0;; ++id) {
        const char* name = nullptr;
        unsigned long flags = 0;
        if (hwloc_.memattr_get_name(topology_, id, &name) != 0 ||
            hwloc_.memattr_get_flags(topology_, id, &flags) != 0) {
            return {};
        }
        auto own = std::find_if(
            description_.attributes.begin(), description_.attributes.end(),
            [name](const topology::Attribute& attribute) { return attribute.name == name; });
        if (own == description_.attributes.end()) {
            description_.attributes.push_back({name, static_cast<std::uint32_t>(flags), {}});
            own = std::prev(description_.attributes.end());
        }
        for (std::uint32_t target = 0; target < targets; ++target) {
            if (Error error = add_values_of(id, target, *own)) {
                return error;
            }
        }
    }
}

Error Describer::run() {
    description_ = {};
    if (Error error = find_levels()) {
        return error;
    }
    for (const auto& [depth, first] : first_) {
        if (hwloc_.get_nbobjs_by_depth(topology_, depth) > topology::max_objects) {
            return fail(WARREN_TOPOLOGY_ERR_LIMIT, "the topology has more than %u objects",
                        topology::max_objects);
        }
    }
    // In the order of our numbers.
    std::map<std::uint32_t, int> depths;
    for (const auto& [depth, first] : first_) {
        depths[first] = depth;
    }
    for (const auto& [first, depth] : depths) {
        const unsigned count = hwloc_.get_nbobjs_by_depth(topology_, depth);
        for (unsigned index = 0; index < count; ++index) {
            if (Error error = add_object(hwloc_.get_obj_by_depth(topology_, depth, index))) {
                return error;
            }
        }
    }
    if (Error error =
            bits(hwloc_.topology_get_allowed_cpuset(topology_), description_.allowed_cpus)) {
        return error;
    }
    if (Error error =
            bits(hwloc_.topology_get_allowed_nodeset(topology_), description_.allowed_nodes)) {
        return error;
    }
    if (hwloc_.topology_is_thissystem(topology_) != 0) {
        description_.infos.push_back({topology::this_system_key, "1"});
    }
    for (Error (Describer::*step)() :
         {&Describer::add_distances, &Describer::add_cpu_kinds, &Describer::add_attributes}) {
        if (Error error = (this->*step)()) {
            return error;
        }
    }
    return {};
}

} // namespace

Error describe(const HwlocLibrary& hwloc, hwloc_topology_t topology,
               topology::Description& description) {
    Describer describer(hwloc, topology, description);
    return describer.run();
}

Error discover(const Source& source, topology::Description& description) {
    std::string problem;
    const HwlocLibrary* hwloc = HwlocLibrary::get(problem);
    if (hwloc == nullptr) {
        return fail(WARREN_TOPOLOGY_ERR_DISCOVERY, "discovery needs hwloc 2.9 or newer: %s",
                    problem.c_str());
    }
    {
        const std::lock_guard lock(HwlocLibrary::calls());
        hwloc_topology_t topology = nullptr;
        if (Error error = load(*hwloc, source, topology)) {
            return error;
        }
        Error error = describe(*hwloc, topology, description);
        hwloc->topology_destroy(topology);
        if (error.error_class() == WARREN_TOPOLOGY_ERR_DISCOVERY &&
            source.kind == SourceKind::xml) { // what is strange is so in the text
            const std::unique_ptr<ErrorRecord> record(error.take());
            return fail(WARREN_TOPOLOGY_ERR_DAMAGED, "%s: %s", source.text.c_str(),
                        record->text.c_str());
        }
        if (error) {
            return error;
        }
    }
    if (source.kind != SourceKind::native) { // what hwloc takes a dump's folder for
        std::erase_if(description.infos,
                      [](const auto& info) { return info.name == topology::this_system_key; });
    }
    if (source.kind == SourceKind::native || source.kind == SourceKind::dump) {
        reconcile_memory(source.text, description);
    }
    std::string refused;
    if (source.kind == SourceKind::native || std::getenv("WARREN_MEMORY_VALUES") != nullptr) {
        if (Error not_merged = topology::merge_found_values(description)) {
            const std::unique_ptr<ErrorRecord> record(not_merged.take());
            refused = record->text;
        }
    }
    if (source.note != nullptr) {
        *source.note = refused;
    }
    topology::complete_attributes(description);
    return {};
}

namespace {

Error discover_and_encode(const Source& source, std::vector<std::byte>& image) {
    topology::Description description;
    if (Error error = discover(source, description)) {
        return error;
    }
    Error error = topology::encode(description, image);
    if (error.error_class() != WARREN_TOPOLOGY_ERR_ARGUMENT) {
        return error;
    }
    // hwloc's result contradicts itself, for example by two processors with one OS index.
    const std::unique_ptr<ErrorRecord> record(error.take());
    return fail(source.kind == SourceKind::xml ? WARREN_TOPOLOGY_ERR_DAMAGED
                                               : WARREN_TOPOLOGY_ERR_DISCOVERY,
                "%s%s%s", source.text.c_str(), source.text.empty() ? "" : ": ",
                record->text.c_str());
}

} // namespace

Error discover_image(const Source& source, std::vector<std::byte>& image) {
    if (source.kind != SourceKind::xml) {
        return discover_and_encode(source, image);
    }
    Made made;
    const auto make = [&source](Made& own) {
        Source noting = source;
        noting.note = &own.note;
        return discover_and_encode(noting, own.image);
    };
    if (Error error = make_isolated(source.text, make, made)) {
        return error;
    }
    image = std::move(made.image);
    if (source.note != nullptr) {
        *source.note = std::move(made.note);
    }
    return {};
}

} // namespace warren::discovery
