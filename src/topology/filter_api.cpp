// The C API (warren/topology.h): what may be used, and filters.
#include <new>

#include "topology/handle.hpp"
#include "topology/process_share.hpp"

#define WARREN_API extern "C" [[gnu::visibility("default")]]

namespace {

using warren::topology::Level;
using warren::topology::none;
using warren::topology::ObjectType;
using warren::topology::TopologyView;
using warren::topology::c_api::success;
using warren::topology::c_api::wrong;

constexpr std::uint32_t all_types = (1U << WARREN_OBJECT_TYPES) - 1;
constexpr std::uint32_t always = 1U << WARREN_OBJECT_MACHINE | 1U << WARREN_OBJECT_PU;

warren_set set_of(const std::vector<std::uint64_t>& words) {
    return {words.data(), 0, static_cast<std::uint32_t>(words.size())};
}

bool is_good(const warren_topology* topology, const warren_filter* filter) {
    return topology != nullptr && filter != nullptr && warren::topology::is_set(filter->cpus) &&
           warren::topology::is_set(filter->nodes);
}

// Whether each object of the lower level is all that one of the upper level has, so that one of the
// two says nothing that the other doesn't.
bool repeats(const TopologyView& view, std::uint32_t upper, std::uint32_t lower) {
    const Level& level = view.level(lower);
    for (std::uint32_t object = level.first; object < level.first + level.count; ++object) {
        std::uint32_t above = object;
        while (view.level_index(above) > upper) {
            above = view.parent(above);
            if (view.child_count(above, WARREN_CHILD_TREE) != 1) {
                return false;
            }
        }
        if (view.level_index(above) != upper) {
            return false;
        }
    }
    return level.count == view.level(upper).count;
}

void set_level(warren_filter& filter, std::uint32_t level, bool shown) {
    const std::uint64_t bit = std::uint64_t{1} << (level % 64);
    std::uint64_t& word = filter.levels[level / 64];
    word = shown ? word | bit : word & ~bit;
}

bool shows_level(const warren_filter& filter, std::uint32_t level) {
    return (filter.levels[level / 64] >> (level % 64) & 1) != 0;
}

bool shows_place(const TopologyView& view, const warren_filter& filter, std::uint32_t object) {
    const std::uint32_t place = view.with_sets(object);
    const warren_set cpus = view.cpus(place);
    if (view.is_in_tree(place) && warren_set_next(cpus, 0) != WARREN_NO_INDEX) {
        return warren_set_intersects(cpus, filter.cpus) != 0;
    }
    if (view.type(place) == ObjectType::numa_node) {
        return warren_set_has(filter.nodes, view.os_index(place)) != 0;
    }
    return warren_set_intersects(view.nodes(place), filter.nodes) != 0;
}

bool shows(const TopologyView& view, const warren_filter& filter, std::uint32_t object) {
    return shows_level(filter, view.level_index(object)) && shows_place(view, filter, object);
}

std::uint32_t shown_parent(const TopologyView& view, const warren_filter& filter,
                           std::uint32_t object) {
    do {
        object = view.parent(object);
    } while (object != none && !shows(view, filter, object));
    return object;
}

// The next object of the tree below `top`, in its order, that is shown, without going below those
// that are.
std::uint32_t next_in_tree(const TopologyView& view, const warren_filter& filter, std::uint32_t top,
                           std::uint32_t object) {
    bool goes_down = object == none;
    object = goes_down ? top : object;
    for (;;) {
        if (goes_down && view.child_count(object, WARREN_CHILD_TREE) > 0) {
            object = view.child(object, WARREN_CHILD_TREE, 0);
        } else {
            std::uint32_t sibling = none;
            while (object != top && (sibling = view.next_sibling(object)) == none) {
                object = view.parent(object);
            }
            if (object == top) {
                return none;
            }
            object = sibling;
        }
        if (shows(view, filter, object)) {
            return object;
        }
        goes_down = true;
    }
}

bool is_of_kind(ObjectType type, int kind) {
    switch (type) {
    case ObjectType::numa_node:
    case ObjectType::memory_cache:
        return kind == WARREN_CHILD_MEMORY;
    case ObjectType::bridge:
    case ObjectType::pci_device:
    case ObjectType::os_device:
        return kind == WARREN_CHILD_IO;
    case ObjectType::misc:
        return kind == WARREN_CHILD_MISC;
    default:
        return kind == WARREN_CHILD_TREE;
    }
}

} // namespace

WARREN_API warren_set warren_topology_available_cpus(const warren_topology* topology) {
    return topology != nullptr ? set_of(topology->cpus) : warren_set{};
}

WARREN_API warren_set warren_topology_available_nodes(const warren_topology* topology) {
    return topology != nullptr ? set_of(topology->nodes) : warren_set{};
}

WARREN_API int warren_topology_restrict(warren_topology* topology, const warren_set* cpus,
                                        const warren_set* nodes) {
    if (topology == nullptr || (cpus != nullptr && !warren::topology::is_set(*cpus)) ||
        (nodes != nullptr && !warren::topology::is_set(*nodes))) {
        return wrong;
    }
    try {
        std::vector<std::uint64_t> own_cpus =
            cpus == nullptr ? topology->cpus
                            : warren::topology::intersection(topology->cpus, *cpus);
        std::vector<std::uint64_t> own_nodes =
            nodes == nullptr ? topology->nodes
                             : warren::topology::intersection(topology->nodes, *nodes);
        topology->cpus.swap(own_cpus);
        topology->nodes.swap(own_nodes);
    } catch (const std::bad_alloc&) {
        return WARREN_TOPOLOGY_ERR_MEMORY;
    }
    return success;
}

WARREN_API int warren_filter_make(const warren_topology* topology, uint32_t types,
                                  uint32_t structure_types, warren_filter* filter) {
    if (topology == nullptr || filter == nullptr || (types & ~all_types) != 0 ||
        (structure_types & ~all_types) != 0) {
        return wrong;
    }
    const TopologyView& view = topology->view;
    *filter = {set_of(topology->cpus), set_of(topology->nodes), {}};
    std::uint32_t last = none; // level of the tree that is shown, and whether it needs structure
    bool last_yields = false;
    for (std::uint32_t index = 0; index < view.level_count(); ++index) {
        const Level& level = view.level(index);
        const std::uint32_t bit = 1U << level.type;
        const bool must_stay = (always & bit) != 0;
        if (!must_stay && (types & bit) == 0) {
            continue;
        }
        const bool yields = !must_stay && (structure_types & bit) != 0;
        if (index >= view.depth()) { // beside the tree: all of it is structure
            set_level(*filter, index, true);
            continue;
        }
        if (last != none && (yields || last_yields) && repeats(view, last, index)) {
            if (yields) {
                continue;
            }
            set_level(*filter, last, false);
        }
        set_level(*filter, index, true);
        last = index;
        last_yields = yields;
    }
    return success;
}

WARREN_API int warren_filter_shows(const warren_topology* topology, const warren_filter* filter,
                                   warren_object object) {
    return is_good(topology, filter) && object < topology->view.objects() &&
                   shows(topology->view, *filter, object)
               ? 1
               : 0;
}

WARREN_API warren_object warren_filter_next(const warren_topology* topology,
                                            const warren_filter* filter, int type,
                                            warren_object object) {
    if (!is_good(topology, filter)) {
        return WARREN_NO_OBJECT;
    }
    do {
        object = warren_topology_next(topology, type, object);
    } while (object != WARREN_NO_OBJECT && !shows(topology->view, *filter, object));
    return object;
}

WARREN_API uint32_t warren_filter_count(const warren_topology* topology,
                                        const warren_filter* filter, int type) {
    uint32_t count = 0;
    for (warren_object object = warren_filter_next(topology, filter, type, WARREN_NO_OBJECT);
         object != WARREN_NO_OBJECT; object = warren_filter_next(topology, filter, type, object)) {
        ++count;
    }
    return count;
}

WARREN_API warren_object warren_filter_parent(const warren_topology* topology,
                                              const warren_filter* filter, warren_object object) {
    return is_good(topology, filter) && object < topology->view.objects()
               ? shown_parent(topology->view, *filter, object)
               : WARREN_NO_OBJECT;
}

WARREN_API warren_object warren_filter_next_child(const warren_topology* topology,
                                                  const warren_filter* filter, warren_object parent,
                                                  int kind, warren_object child) {
    if (!is_good(topology, filter) || parent >= topology->view.objects() ||
        kind < WARREN_CHILD_TREE || kind > WARREN_CHILD_MISC ||
        (child != WARREN_NO_OBJECT && child >= topology->view.objects())) {
        return WARREN_NO_OBJECT;
    }
    const TopologyView& view = topology->view;
    if (child != WARREN_NO_OBJECT &&
        (!is_of_kind(view.type(child), kind) || shown_parent(view, *filter, child) != parent)) {
        return WARREN_NO_OBJECT;
    }
    if (kind == WARREN_CHILD_TREE) {
        return view.is_in_tree(parent) ? next_in_tree(view, *filter, parent, child)
                                       : WARREN_NO_OBJECT;
    }
    for (uint32_t next = child == WARREN_NO_OBJECT ? view.tree_objects() : child + 1;
         next < view.objects(); ++next) {
        if (is_of_kind(view.type(next), kind) && shows(view, *filter, next) &&
            shown_parent(view, *filter, next) == parent) {
            return next;
        }
    }
    return WARREN_NO_OBJECT;
}
