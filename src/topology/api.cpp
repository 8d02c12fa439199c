// The C API's look-ups (warren/topology.h): arguments are checked here, the view does the rest.
#include <new>
#include <strings.h>

#include "topology/handle.hpp"
#include "topology/process_share.hpp"

#define WARREN_API extern "C" [[gnu::visibility("default")]]

namespace {

using warren::topology::is_object;
using warren::topology::is_set;
using warren::topology::ObjectType;
using warren::topology::c_api::nothing;
using warren::topology::c_api::success;
using warren::topology::c_api::wrong;

bool is_type(int type) {
    return type >= 0 && type < WARREN_OBJECT_TYPES;
}

constexpr warren_set empty{nullptr, 0, 0};

constexpr const char* type_names[] = {"Machine",  "Package",  "Die",      "Core",    "PU",
                                      "L1Cache",  "L2Cache",  "L3Cache",  "L4Cache", "L5Cache",
                                      "L1iCache", "L2iCache", "L3iCache", "Group",   "NUMANode",
                                      "MemCache", "Bridge",   "PCIDev",   "OSDev",   "Misc"};
static_assert(std::size(type_names) == WARREN_OBJECT_TYPES);
static_assert(WARREN_OBJECT_TYPES == warren::topology::object_types);
static_assert(static_cast<int>(ObjectType::numa_node) == WARREN_OBJECT_NUMA_NODE);
static_assert(static_cast<int>(ObjectType::misc) == WARREN_OBJECT_MISC);

} // namespace

namespace warren::topology {

namespace {

// Only what is in `share` too, unless that leaves nothing: then the two don't speak of the same.
void narrow(std::vector<std::uint64_t>& words, const std::vector<std::uint64_t>& share) {
    std::vector<std::uint64_t> both =
        intersection(share, {words.data(), 0, static_cast<std::uint32_t>(words.size())});
    const auto is_zero = [](std::uint64_t word) { return word == 0; };
    if (!std::all_of(both.begin(), both.end(), is_zero)) {
        words.swap(both);
    }
}

} // namespace

Error make_handle(ImageMemory memory, int way, warren_topology*& handle) {
    TopologyView view;
    if (Error error = TopologyView::check(memory.bytes(), view)) {
        return error;
    }
    std::vector<std::uint64_t> cpus = intersection(words_of(view.allowed_cpus()), view.cpus(0));
    std::vector<std::uint64_t> nodes = intersection(words_of(view.allowed_nodes()), view.nodes(0));
    const bool is_here = way == WARREN_TOPOLOGY_NODE || way == WARREN_TOPOLOGY_NATIVE;
    if (is_here && view.info(none, this_system_key) != nullptr) {
        const ProcessShare share = find_process_share();
        narrow(cpus, share.cpus);
        narrow(nodes, share.nodes);
    }
    handle = new (std::nothrow)
        warren_topology{view, std::move(memory), way, std::move(cpus), std::move(nodes)};
    return handle != nullptr ? Error{}
                             : fail(WARREN_TOPOLOGY_ERR_MEMORY, "no memory for a topology");
}

} // namespace warren::topology

WARREN_API void warren_topology_close(warren_topology* topology) {
    delete topology;
}

WARREN_API int warren_topology_way(const warren_topology* topology) {
    return topology != nullptr ? topology->way : 0;
}

WARREN_API const void* warren_topology_image(const warren_topology* topology, size_t* bytes) {
    if (topology == nullptr) {
        return nullptr;
    }
    if (bytes != nullptr) {
        *bytes = topology->view.image().size();
    }
    return topology->view.image().data();
}

WARREN_API int warren_topology_save(const warren_topology* topology, const char* path) {
    if (topology == nullptr || path == nullptr || *path == '\0') {
        return wrong;
    }
    warren::Error error = warren::topology::write_image(topology->view.image(), path);
    const int status = error.error_class();
    error.drop();
    return status;
}

// ---- Objects

WARREN_API uint32_t warren_topology_objects(const warren_topology* topology) {
    return topology != nullptr ? topology->view.objects() : 0;
}

WARREN_API uint32_t warren_topology_count(const warren_topology* topology, int type) {
    return topology != nullptr && is_type(type)
               ? topology->view.count(static_cast<ObjectType>(type))
               : 0;
}

WARREN_API warren_object warren_topology_object(const warren_topology* topology, int type,
                                                uint32_t index) {
    return topology != nullptr && is_type(type)
               ? topology->view.object(static_cast<ObjectType>(type), index)
               : WARREN_NO_OBJECT;
}

WARREN_API warren_object warren_topology_find_by_os_index(const warren_topology* topology, int type,
                                                          uint32_t os_index) {
    return topology != nullptr && is_type(type)
               ? topology->view.by_os_index(static_cast<ObjectType>(type), os_index)
               : WARREN_NO_OBJECT;
}

WARREN_API warren_object warren_topology_next(const warren_topology* topology, int type,
                                              warren_object object) {
    return topology != nullptr && is_type(type) &&
                   (object == WARREN_NO_OBJECT || object < topology->view.objects())
               ? topology->view.next(static_cast<ObjectType>(type), object)
               : WARREN_NO_OBJECT;
}

WARREN_API uint32_t warren_topology_depth(const warren_topology* topology) {
    return topology != nullptr ? topology->view.depth() : 0;
}

WARREN_API int warren_topology_level(const warren_topology* topology, uint32_t depth, int* type,
                                     warren_object* first, uint32_t* count) {
    if (topology == nullptr || depth >= topology->view.depth()) {
        return wrong;
    }
    const warren::topology::Level& level = topology->view.level(depth);
    if (type != nullptr) {
        *type = static_cast<int>(level.type);
    }
    if (first != nullptr) {
        *first = level.first;
    }
    if (count != nullptr) {
        *count = level.count;
    }
    return success;
}

WARREN_API int warren_object_type(const warren_topology* topology, warren_object object) {
    return is_object(topology, object) ? static_cast<int>(topology->view.type(object)) : -1;
}

WARREN_API const char* warren_object_type_name(int type) {
    return is_type(type) ? type_names[type] : nullptr;
}

WARREN_API int warren_object_type_by_name(const char* name) {
    for (int type = 0; name != nullptr && type < WARREN_OBJECT_TYPES; ++type) {
        if (strcasecmp(name, type_names[type]) == 0) {
            return type;
        }
    }
    return -1;
}

WARREN_API int warren_object_depth(const warren_topology* topology, warren_object object) {
    return is_object(topology, object) ? std::max(topology->view.level_of(object).depth, -1) : -1;
}

WARREN_API uint32_t warren_object_logical_index(const warren_topology* topology,
                                                warren_object object) {
    return is_object(topology, object) ? object - topology->view.level_of(object).first
                                       : WARREN_NO_INDEX;
}

WARREN_API uint32_t warren_object_os_index(const warren_topology* topology, warren_object object) {
    return is_object(topology, object) ? topology->view.os_index(object) : WARREN_NO_INDEX;
}

WARREN_API warren_set warren_object_cpus(const warren_topology* topology, warren_object object) {
    return is_object(topology, object) ? topology->view.cpus(object) : empty;
}

WARREN_API warren_set warren_object_nodes(const warren_topology* topology, warren_object object) {
    return is_object(topology, object) ? topology->view.nodes(object) : empty;
}

WARREN_API warren_set warren_object_complete_cpus(const warren_topology* topology,
                                                  warren_object object) {
    return is_object(topology, object) ? topology->view.complete_cpus(object) : empty;
}

WARREN_API warren_set warren_object_complete_nodes(const warren_topology* topology,
                                                   warren_object object) {
    return is_object(topology, object) ? topology->view.complete_nodes(object) : empty;
}

WARREN_API warren_object warren_object_parent(const warren_topology* topology,
                                              warren_object object) {
    return is_object(topology, object) ? topology->view.parent(object) : WARREN_NO_OBJECT;
}

WARREN_API uint32_t warren_object_child_count(const warren_topology* topology, warren_object object,
                                              int kind) {
    return is_object(topology, object) && kind >= WARREN_CHILD_TREE && kind <= WARREN_CHILD_MISC
               ? topology->view.child_count(object, kind)
               : 0;
}

WARREN_API warren_object warren_object_child(const warren_topology* topology, warren_object object,
                                             int kind, uint32_t index) {
    return index < warren_object_child_count(topology, object, kind)
               ? topology->view.child(object, kind, index)
               : WARREN_NO_OBJECT;
}

WARREN_API warren_object warren_object_ancestor(const warren_topology* topology,
                                                warren_object object, int type) {
    return is_object(topology, object) && is_type(type)
               ? topology->view.ancestor(object, static_cast<ObjectType>(type))
               : WARREN_NO_OBJECT;
}

WARREN_API warren_object warren_topology_find_common_ancestor(const warren_topology* topology,
                                                              warren_object one,
                                                              warren_object other) {
    return is_object(topology, one) && is_object(topology, other)
               ? topology->view.common_ancestor(one, other)
               : WARREN_NO_OBJECT;
}

WARREN_API int warren_object_is_below(const warren_topology* topology, warren_object object,
                                      warren_object ancestor) {
    return is_object(topology, object) && is_object(topology, ancestor) &&
                   topology->view.is_below(object, ancestor)
               ? 1
               : 0;
}

WARREN_API warren_object warren_topology_covering(const warren_topology* topology,
                                                  warren_set cpus) {
    return topology != nullptr && is_set(cpus) ? topology->view.covering(cpus) : WARREN_NO_OBJECT;
}

WARREN_API warren_object warren_topology_next_inside(const warren_topology* topology,
                                                     warren_set cpus, int type,
                                                     warren_object object) {
    if (!is_set(cpus)) {
        return WARREN_NO_OBJECT;
    }
    do {
        object = warren_topology_next(topology, type, object);
    } while (object != WARREN_NO_OBJECT &&
             (warren_set_next(topology->view.cpus(object), 0) == WARREN_NO_INDEX ||
              warren_set_includes(cpus, topology->view.cpus(object)) == 0));
    return object;
}

WARREN_API const char* warren_object_name(const warren_topology* topology, warren_object object) {
    return is_object(topology, object) ? topology->view.name(object) : nullptr;
}

WARREN_API const char* warren_object_subtype(const warren_topology* topology,
                                             warren_object object) {
    return is_object(topology, object) ? topology->view.subtype(object) : nullptr;
}

WARREN_API const char* warren_object_info(const warren_topology* topology, warren_object object,
                                          const char* name) {
    return topology != nullptr && name != nullptr &&
                   (object == WARREN_NO_OBJECT || object < topology->view.objects())
               ? topology->view.info(object, name)
               : nullptr;
}

WARREN_API uint32_t warren_object_info_count(const warren_topology* topology,
                                             warren_object object) {
    return topology != nullptr && (object == WARREN_NO_OBJECT || object < topology->view.objects())
               ? static_cast<uint32_t>(topology->view.infos(object).size())
               : 0;
}

WARREN_API int warren_object_info_at(const warren_topology* topology, warren_object object,
                                     uint32_t index, const char** name, const char** value) {
    if (index >= warren_object_info_count(topology, object) || name == nullptr ||
        value == nullptr) {
        return wrong;
    }
    const warren::topology::InfoRecord& record = topology->view.infos(object)[index];
    *name = topology->view.string(record.name);
    *value = topology->view.string(record.value);
    return success;
}

WARREN_API int warren_object_is_symmetric(const warren_topology* topology, warren_object object) {
    return is_object(topology, object) && topology->view.is_symmetric(object) ? 1 : 0;
}

// ---- Details

WARREN_API int warren_object_cache(const warren_topology* topology, warren_object object,
                                   warren_cache* cache) {
    if (!is_object(topology, object) || cache == nullptr) {
        return wrong;
    }
    if (!warren::topology::is_cache(topology->view.type(object))) {
        return nothing;
    }
    *cache = warren::topology::unpack_cache(topology->view.details(object));
    return success;
}

WARREN_API uint64_t warren_object_memory_bytes(const warren_topology* topology,
                                               warren_object object) {
    return is_object(topology, object) ? topology->view.memory_bytes(object) : 0;
}

WARREN_API uint32_t warren_object_page_sizes(const warren_topology* topology,
                                             warren_object object) {
    return is_object(topology, object) && topology->view.type(object) == ObjectType::numa_node
               ? static_cast<uint32_t>(topology->view.details(object)[1])
               : 0;
}

WARREN_API int warren_object_page_size(const warren_topology* topology, warren_object object,
                                       uint32_t index, uint64_t* page_bytes, uint64_t* pages) {
    if (index >= warren_object_page_sizes(topology, object) || page_bytes == nullptr ||
        pages == nullptr) {
        return wrong;
    }
    const uint64_t* words = topology->view.details(object) + 2 + std::size_t{index} * 2;
    *page_bytes = words[0];
    *pages = words[1];
    return success;
}

WARREN_API int warren_object_pci_device(const warren_topology* topology, warren_object object,
                                        warren_pci_device* device) {
    if (!is_object(topology, object) || device == nullptr) {
        return wrong;
    }
    const ObjectType type = topology->view.type(object);
    const uint64_t* words = topology->view.details(object);
    const bool is_bridge =
        type == ObjectType::bridge && warren::topology::unpack_bridge(words).is_host == 0;
    if (type != ObjectType::pci_device && !is_bridge) {
        return nothing;
    }
    *device = warren::topology::unpack_pci_device(words);
    return success;
}

WARREN_API int warren_object_bridge(const warren_topology* topology, warren_object object,
                                    warren_bridge* bridge) {
    if (!is_object(topology, object) || bridge == nullptr) {
        return wrong;
    }
    if (topology->view.type(object) != ObjectType::bridge) {
        return nothing;
    }
    *bridge = warren::topology::unpack_bridge(topology->view.details(object));
    return success;
}

WARREN_API int warren_object_group(const warren_topology* topology, warren_object object,
                                   warren_group* group) {
    if (!is_object(topology, object) || group == nullptr) {
        return wrong;
    }
    if (topology->view.type(object) != ObjectType::group) {
        return nothing;
    }
    *group = warren::topology::unpack_group(topology->view.details(object));
    return success;
}

WARREN_API int warren_object_device_kind(const warren_topology* topology, warren_object object) {
    return is_object(topology, object) && topology->view.type(object) == ObjectType::os_device
               ? static_cast<int>(topology->view.details(object)[0])
               : -1;
}
