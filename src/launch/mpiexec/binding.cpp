#include "launch/mpiexec/binding.hpp"

#include <algorithm>
#include <mutex>

#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/scoped_variable.hpp"
#include "topology/discovery/hwloc_library.hpp"

namespace warren::launch {

namespace {

struct Kind {
    hwloc_obj_type_t type;
    const char* name;
};

Kind kind_of(BindTo bind_to) {
    switch (bind_to) {
    case BindTo::hwthread:
        return {HWLOC_OBJ_PU, "hardware thread"};
    case BindTo::l3cache:
        return {HWLOC_OBJ_L3CACHE, "L3 cache"};
    case BindTo::numa:
        return {HWLOC_OBJ_NUMANODE, "NUMA node"};
    case BindTo::socket:
        return {HWLOC_OBJ_PACKAGE, "socket"};
    default:
        return {HWLOC_OBJ_CORE, "core"};
    }
}

Error no_hwloc(const std::string& problem) {
    return fail(exit_failure, "binding needs hwloc 2.9 or newer: %s", problem.c_str());
}

} // namespace

Error find_places(BindTo bind_to, const CpuSet& allowed, std::vector<Place>& places) {
    std::string problem;
    const discovery::HwlocLibrary* library = discovery::HwlocLibrary::get(problem);
    if (library == nullptr) {
        return no_hwloc(problem);
    }
    const discovery::HwlocLibrary& hwloc = *library;
    const std::lock_guard lock(discovery::HwlocLibrary::calls());
    // hwloc looks for plug-ins (graphics, accelerators, XML by libxml2) in a folder and loads them
    // all, which takes longer than the whole launch; none of them knows processors.
    const ScopedVariable no_plugins("HWLOC_PLUGINS_PATH", "/nonexistent");
    const Kind kind = kind_of(bind_to);
    hwloc_topology_t topology = nullptr;
    if (hwloc.topology_init(&topology) != 0) {
        return no_hwloc("hwloc_topology_init fails");
    }
    // Only what is asked for is discovered, for speed: x86 would visit every processor.
    hwloc.topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    hwloc.topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (kind.type == HWLOC_OBJ_PU) {
        hwloc.topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    } else if (kind.type != HWLOC_OBJ_NUMANODE) {
        hwloc.topology_set_type_filter(topology, kind.type, HWLOC_TYPE_FILTER_KEEP_ALL);
    }
    if (hwloc.topology_load(topology) != 0) {
        hwloc.topology_destroy(topology);
        return no_hwloc("hwloc_topology_load fails");
    }
    const int depth = hwloc.get_type_depth(topology, kind.type);
    const unsigned count =
        depth == HWLOC_TYPE_DEPTH_UNKNOWN ? 0 : hwloc.get_nbobjs_by_depth(topology, depth);
    std::vector<hwloc_obj_t> objects;
    for (unsigned index = 0; index < count; ++index) {
        objects.push_back(hwloc.get_obj_by_depth(topology, depth, index));
    }
    if (kind.type == HWLOC_OBJ_PU) {
        // The first thread of every core, then the second: few ranks get a core each.
        std::stable_sort(objects.begin(), objects.end(), [](hwloc_obj_t one, hwloc_obj_t other) {
            return one->sibling_rank < other->sibling_rank;
        });
    }
    for (const hwloc_obj* object : objects) {
        Place place;
        place.name = kind.name + (" " + std::to_string(object->logical_index));
        for (int processor = hwloc.bitmap_next(object->cpuset, -1); processor >= 0;
             processor = hwloc.bitmap_next(object->cpuset, processor)) {
            place.processors.add(static_cast<std::size_t>(processor));
        }
        place.processors &= allowed;
        // Memory without processors, and two kinds of memory beside the same processors.
        const bool known = std::any_of(places.begin(), places.end(), [&](const Place& other) {
            return other.processors == place.processors;
        });
        if (!place.processors.empty() && !known) {
            places.push_back(std::move(place));
        }
    }
    hwloc.topology_destroy(topology);
    if (places.empty()) {
        return fail(exit_failure, "hwloc finds no %s on this machine", kind.name);
    }
    return {};
}

void assign_places(const std::vector<Place>& places, std::uint32_t ranks, Spread spread,
                   BindingPlan& plan) {
    const std::uint64_t count = places.size();
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        std::uint64_t first = rank % count;
        std::uint64_t last = first;
        if (spread == Spread::share) {
            first = rank * count / ranks;
            last = (rank + 1) * count / ranks - 1;
        } else if (spread == Spread::block) {
            first = last = rank * count / ranks;
        }
        CpuSet set;
        for (std::uint64_t place = first; place <= last; ++place) {
            set |= places[place].processors;
        }
        std::string name = places[first].name;
        if (last > first) {
            name += " to " + places[last].name;
        }
        plan.sets.push_back(set);
        plan.names.push_back(std::move(name));
    }
}

void join_places(std::uint32_t together, BindingPlan& plan) {
    for (std::size_t first = 0; together > 1 && first < plan.sets.size(); first += together) {
        CpuSet all = plan.sets[first];
        std::string names = plan.names[first];
        for (std::size_t rank = first + 1; rank < first + together; ++rank) {
            all |= plan.sets[rank];
            if (plan.names[rank] != plan.names[rank - 1]) {
                names += ", " + plan.names[rank];
            }
        }
        for (std::size_t rank = first; rank < first + together; ++rank) {
            plan.sets[rank] = all;
            plan.names[rank] = names;
        }
    }
}

Error plan_bindings(BindTo bind_to, std::uint32_t ranks, const CpuSet& allowed, std::uint32_t quota,
                    BindingPlan& plan) {
    plan = {};
    if (bind_to == BindTo::none) {
        return {};
    }
    std::vector<Place> places;
    if (bind_to == BindTo::automatic) {
        if (ranks == 1) {
            plan.reason = "a single rank is not bound";
            return {};
        }
        if (ranks > allowed.count()) {
            plan.reason = "more ranks than processors: nothing is bound";
            return {};
        }
        if (quota != 0 && quota < allowed.count()) {
            plan.reason = "a part of the processors' time is others': nothing is bound";
            return {};
        }
        Error error = find_places(BindTo::core, allowed, places);
        if (error) {
            ErrorRecord* record = error.take();
            plan.reason = record->text + ": nothing is bound";
            delete record;
            return {};
        }
        if (ranks > places.size()) {
            plan.reason = "more ranks than cores: nothing is bound";
            return {};
        }
        assign_places(places, ranks, Spread::share, plan);
        plan.bound_to = BindTo::core;
        plan.reason = "each rank is bound to its share of the cores";
        return {};
    }
    if (Error error = find_places(bind_to, allowed, places)) {
        return error;
    }
    const bool wide = bind_to != BindTo::core && bind_to != BindTo::hwthread;
    assign_places(places, ranks, wide ? Spread::block : Spread::one_by_one, plan);
    plan.bound_to = bind_to;
    return {};
}

std::string hwloc_version() {
    std::string problem;
    const discovery::HwlocLibrary* hwloc = discovery::HwlocLibrary::get(problem);
    return hwloc != nullptr ? "found, interface " + hwloc->version() : "cannot be used: " + problem;
}

} // namespace warren::launch
