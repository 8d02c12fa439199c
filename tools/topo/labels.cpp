#include "topo/labels.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace warren::tools {

namespace {

std::string number_list(const std::vector<std::uint32_t>& sorted) {
    std::string text;
    for (std::size_t at = 0; at < sorted.size();) {
        std::size_t last = at;
        while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) {
            ++last;
        }
        text += (text.empty() ? "" : ",") + std::to_string(sorted[at]);
        if (last > at) {
            text += "-" + std::to_string(sorted[last]);
        }
        at = last + 1;
    }
    return text;
}

const char* unit_of(std::uint32_t attribute) {
    switch (attribute) {
    case WARREN_ATTRIBUTE_BANDWIDTH:
    case WARREN_ATTRIBUTE_READ_BANDWIDTH:
    case WARREN_ATTRIBUTE_WRITE_BANDWIDTH:
        return " MiB/s";
    case WARREN_ATTRIBUTE_LATENCY:
    case WARREN_ATTRIBUTE_READ_LATENCY:
    case WARREN_ATTRIBUTE_WRITE_LATENCY:
        return " ns";
    default:
        return "";
    }
}

// Where the kernel's accounts of the machine's and of the nodes' memory differ: how.
std::string account_text(const warren_topology* topology, warren_object object) {
    if (const char* own = warren_object_info(topology, object, "NodeAccountBytes")) {
        return " (by the node's account " + bytes_text(std::strtoull(own, nullptr, 10)) + ")";
    }
    if (const char* outside = warren_object_info(topology, object, "BytesOutsideNodes")) {
        return " and " + bytes_text(std::strtoull(outside, nullptr, 10)) + " in no node's account";
    }
    return "";
}

} // namespace

std::string list_text(warren_set set) {
    std::vector<std::uint32_t> members;
    for (std::uint32_t one = warren_set_next(set, 0); one != WARREN_NO_INDEX;
         one = warren_set_next(set, one + 1)) {
        members.push_back(one);
    }
    return number_list(members);
}

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ") + number_list(ranks);
}

std::string bytes_text(std::uint64_t bytes) {
    static constexpr std::array<const char*, 5> units{" B", " KiB", " MiB", " GiB", " TiB"};
    std::size_t unit = 0;
    while (unit + 1 < units.size() && bytes >= 1024 && (bytes % 1024 == 0 || bytes >= 10 * 1024)) {
        bytes = (bytes + 512) / 1024;
        ++unit;
    }
    return std::to_string(bytes) + units[unit];
}

std::string memory_kind(const warren_topology* topology, warren_object node) {
    const char* subtype = warren_object_subtype(topology, node);
    return subtype != nullptr ? subtype : "";
}

std::string what_text(const warren_topology* topology, warren_object object) {
    const int type = warren_object_type(topology, object);
    const char* name = warren_object_name(topology, object);
    const char* subtype = warren_object_subtype(topology, object);
    std::string text = warren_object_type_name(type);
    warren_cache cache;
    if (type == WARREN_OBJECT_NUMA_NODE) {
        return text + (subtype != nullptr ? " " + std::string(subtype) : "") + " " +
               bytes_text(warren_object_memory_bytes(topology, object)) +
               account_text(topology, object);
    }
    if (warren_object_cache(topology, object, &cache) == WARREN_TOPOLOGY_SUCCESS) {
        return text + " " + bytes_text(cache.bytes);
    }
    if (type == WARREN_OBJECT_PCI_DEVICE) {
        warren_pci_device device{};
        warren_object_pci_device(topology, object, &device);
        char place[64];
        std::snprintf(place, sizeof place, " %04x:%02x:%02x.%x (%04x:%04x)", device.domain,
                      device.bus, device.device, device.function, device.vendor_id,
                      device.device_id);
        text += place;
    }
    if (subtype != nullptr) {
        text += " " + std::string(subtype);
    }
    if (name != nullptr) {
        text += " \"" + std::string(name) + "\"";
    }
    if (type == WARREN_OBJECT_MACHINE) {
        text += " " + bytes_text(warren_object_memory_bytes(topology, object)) +
                account_text(topology, object);
    }
    return text;
}

std::string label_text(const warren_topology* topology, warren_object object) {
    const int type = warren_object_type(topology, object);
    std::string text = what_text(topology, object);
    if (type == WARREN_OBJECT_MACHINE || type >= WARREN_OBJECT_BRIDGE) {
        return text;
    }
    text += " #" + std::to_string(warren_object_logical_index(topology, object));
    const std::uint32_t os_index = warren_object_os_index(topology, object);
    if (os_index != WARREN_NO_INDEX &&
        (type == WARREN_OBJECT_PU || type == WARREN_OBJECT_NUMA_NODE)) {
        text += " (OS " + std::to_string(os_index) + ")";
    }
    return text;
}

std::string value_text(const warren_topology* topology, std::uint32_t attribute,
                       std::uint32_t initiator, std::uint32_t node) {
    static constexpr std::array<const char*, 4> origins{"", "", " (measured)", " (guessed)"};
    std::uint64_t value = 0;
    int origin = 0;
    if (warren_topology_value(topology, attribute, initiator, node, &value, &origin) !=
        WARREN_TOPOLOGY_SUCCESS) {
        return "";
    }
    return (attribute == WARREN_ATTRIBUTE_CAPACITY ? bytes_text(value) : std::to_string(value)) +
           unit_of(attribute) +
           (origin >= 0 && origin < static_cast<int>(origins.size())
                ? origins[static_cast<std::size_t>(origin)]
                : "");
}

std::vector<warren_object> children_of(const warren_topology* topology, warren_object object,
                                       int kind) {
    std::vector<warren_object> children(warren_object_child_count(topology, object, kind));
    for (std::uint32_t index = 0; index < children.size(); ++index) {
        children[index] = warren_object_child(topology, object, kind, index);
    }
    return children;
}

} // namespace warren::tools
