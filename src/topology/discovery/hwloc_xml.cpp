#include "topology/discovery/hwloc_xml.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace warren::discovery {

namespace {

// By WARREN_OBJECT_….
constexpr std::array<const char*, WARREN_OBJECT_TYPES> hwloc_types{
    "Machine",  "Package",  "Die",     "Core",     "PU",       "L1Cache",  "L2Cache",
    "L3Cache",  "L4Cache",  "L5Cache", "L1iCache", "L2iCache", "L3iCache", "Group",
    "NUMANode", "MemCache", "Bridge",  "PCIDev",   "OSDev",    "Misc"};

// As hwloc writes sets: the highest word first.
std::string mask_text(warren_set set) {
    std::string text;
    char part[16];
    for (std::uint32_t half = 2 * (set.first + set.count); half-- > 0;) {
        const std::uint32_t word = half / 2;
        const std::uint64_t bits =
            word < set.first ? 0 : set.words[word - set.first] >> (32 * (half % 2)) & 0xffffffff;
        if (text.empty() && bits == 0) {
            continue;
        }
        std::snprintf(part, sizeof part, "%s0x%08x", text.empty() ? "" : ",",
                      static_cast<unsigned>(bits));
        text += part;
    }
    return text.empty() ? "0x0" : text;
}

std::vector<warren_object> children_of(const warren_topology* topology, warren_object object,
                                       int kind) {
    std::vector<warren_object> children(warren_object_child_count(topology, object, kind));
    for (std::uint32_t index = 0; index < children.size(); ++index) {
        children[index] = warren_object_child(topology, object, kind, index);
    }
    return children;
}

class Writer {
  public:
    explicit Writer(const warren_topology* topology) : topology_(topology) {}

    std::string write();

  private:
    const char* type_of(warren_object object) const {
        return hwloc_types[static_cast<std::size_t>(warren_object_type(topology_, object))];
    }
    void attribute(const char* name, const std::string& value) {
        text_ += std::string(" ") + name + "=\"" + xml_escaped(value) + "\"";
    }
    void attribute(const char* name, std::uint64_t value) {
        attribute(name, std::to_string(value));
    }
    void object(warren_object one, std::size_t depth);
    void details(warren_object one);
    void bus_place(warren_object one);
    void contents(warren_object one, const std::string& indent);
    void distances();
    void memory_attributes();
    void cpu_kinds();
    // Pieces of ten numbers, as hwloc writes them.
    void list(const char* name, const std::vector<std::string>& words);

    // hwloc's numbers of objects begin with 1.
    static std::uint64_t number(warren_object one) { return std::uint64_t{one} + 1; }

    const warren_topology* topology_;
    std::string text_;
};

void Writer::bus_place(warren_object one) {
    warren_pci_device pci{};
    if (warren_object_pci_device(topology_, one, &pci) != WARREN_TOPOLOGY_SUCCESS) {
        return;
    }
    std::array<char, 96> text;
    std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%01x", pci.domain, pci.bus, pci.device,
                  pci.function);
    attribute("pci_busid", text.data());
    std::snprintf(text.data(), text.size(), "%04x [%04x:%04x] [%04x:%04x] %02x", pci.class_id,
                  pci.vendor_id, pci.device_id, pci.subvendor_id, pci.subdevice_id, pci.revision);
    attribute("pci_type", text.data());
    std::snprintf(text.data(), text.size(), "%f",
                  static_cast<double>(pci.link_gigabytes_per_second));
    attribute("pci_link_speed", text.data());
}

void Writer::details(warren_object one) {
    warren_cache cache{};
    warren_group group{};
    warren_bridge bridge{};
    if (warren_object_type(topology_, one) == WARREN_OBJECT_NUMA_NODE) {
        attribute("local_memory", warren_object_memory_bytes(topology_, one));
    }
    if (warren_object_cache(topology_, one, &cache) == WARREN_TOPOLOGY_SUCCESS) {
        attribute("cache_size", cache.bytes);
        attribute("depth", cache.depth);
        attribute("cache_linesize", cache.line_bytes);
        attribute("cache_associativity", std::to_string(cache.associativity));
        attribute("cache_type", cache.kind);
    }
    if (warren_object_group(topology_, one, &group) == WARREN_TOPOLOGY_SUCCESS) {
        attribute("kind", group.kind);
        attribute("subkind", group.subkind);
    }
    if (warren_object_bridge(topology_, one, &bridge) == WARREN_TOPOLOGY_SUCCESS) {
        attribute("bridge_type", bridge.is_host != 0 ? "0-1" : "1-1");
        attribute("depth", bridge.depth);
        std::array<char, 64> text;
        std::snprintf(text.data(), text.size(), "%04x:[%02x-%02x]", bridge.domain,
                      bridge.secondary_bus, bridge.subordinate_bus);
        attribute("bridge_pci", text.data());
        if (bridge.is_host == 0) {
            bus_place(one);
        }
    } else {
        bus_place(one);
    }
    const int kind = warren_object_device_kind(topology_, one);
    if (kind >= 0) {
        // hwloc 2 has memory devices among the disks.
        attribute("osdev_type", static_cast<std::uint64_t>(
                                    kind == WARREN_DEVICE_MEMORY ? WARREN_DEVICE_BLOCK : kind));
    }
}

void Writer::contents(warren_object one, const std::string& indent) {
    for (std::uint32_t index = 0; index < warren_object_page_sizes(topology_, one); ++index) {
        std::uint64_t bytes = 0;
        std::uint64_t pages = 0;
        warren_object_page_size(topology_, one, index, &bytes, &pages);
        text_ += indent + "<page_type";
        attribute("size", bytes);
        attribute("count", pages);
        text_ += "/>\n";
    }
    for (std::uint32_t index = 0; index < warren_object_info_count(topology_, one); ++index) {
        const char* name = "";
        const char* value = "";
        warren_object_info_at(topology_, one, index, &name, &value);
        text_ += indent + "<info";
        attribute("name", name);
        attribute("value", value);
        text_ += "/>\n";
    }
}

// Images nest objects max_nested deep beside the tree's levels.
// NOLINTNEXTLINE(misc-no-recursion)
void Writer::object(warren_object one, std::size_t depth) {
    const std::string indent(2 * depth, ' ');
    text_ += indent + "<object type=\"" + type_of(one) + "\"";
    const std::uint32_t os_index = warren_object_os_index(topology_, one);
    if (os_index != WARREN_NO_INDEX) {
        attribute("os_index", os_index);
    }
    if (warren_object_type(topology_, one) < WARREN_OBJECT_BRIDGE) {
        attribute("cpuset", mask_text(warren_object_cpus(topology_, one)));
        attribute("complete_cpuset", mask_text(warren_object_complete_cpus(topology_, one)));
        if (one == 0) {
            attribute("allowed_cpuset", mask_text(warren_object_cpus(topology_, one)));
        }
        attribute("nodeset", mask_text(warren_object_nodes(topology_, one)));
        attribute("complete_nodeset", mask_text(warren_object_complete_nodes(topology_, one)));
        if (one == 0) {
            attribute("allowed_nodeset", mask_text(warren_object_nodes(topology_, one)));
        }
    }
    attribute("gp_index", number(one));
    if (const char* name = warren_object_name(topology_, one)) {
        attribute("name", name);
    }
    if (const char* subtype = warren_object_subtype(topology_, one)) {
        attribute("subtype", subtype);
    }
    details(one);
    text_ += ">\n";
    contents(one, indent + "  ");
    if (one == 0) {
        contents(WARREN_NO_OBJECT, indent + "  ");
    }
    for (const int kind :
         {WARREN_CHILD_MEMORY, WARREN_CHILD_TREE, WARREN_CHILD_IO, WARREN_CHILD_MISC}) {
        for (const warren_object child : children_of(topology_, one, kind)) {
            object(child, depth + 1);
        }
    }
    text_ += indent + "</object>\n";
}

void Writer::list(const char* name, const std::vector<std::string>& words) {
    constexpr std::size_t together = 10;
    for (std::size_t at = 0; at < words.size(); at += together) {
        std::string part;
        for (std::size_t index = at; index < words.size() && index < at + together; ++index) {
            part += words[index] + " ";
        }
        text_ += std::string("    <") + name + " length=\"" + std::to_string(part.size()) + "\">" +
                 part + "</" + name + ">\n";
    }
}

void Writer::distances() {
    for (std::uint32_t matrix = 0; matrix < warren_topology_distances_count(topology_); ++matrix) {
        warren_distances found{};
        if (warren_topology_distances(topology_, matrix, &found) != WARREN_TOPOLOGY_SUCCESS) {
            continue;
        }
        const bool mixed = (found.kind & WARREN_DISTANCES_MIXED_TYPES) != 0;
        const int type = warren_object_type(topology_, found.objects[0]);
        const bool by_os = type == WARREN_OBJECT_NUMA_NODE || type == WARREN_OBJECT_PU;
        const char* element = mixed ? "distances2hetero" : "distances2";
        text_ += std::string("  <") + element;
        if (!mixed) {
            attribute("type", type_of(found.objects[0]));
        }
        attribute("nbobjs", found.count);
        attribute("kind", found.kind);
        if (found.name != nullptr) {
            attribute("name", found.name);
        }
        if (!mixed) {
            attribute("indexing", by_os ? "os" : "gp");
        }
        text_ += ">\n";
        std::vector<std::string> words;
        for (std::uint32_t place = 0; place < found.count; ++place) {
            const warren_object one = found.objects[place];
            const std::string plain = std::to_string(number(one));
            words.push_back(mixed   ? std::string(type_of(one)) + ":" + plain
                            : by_os ? std::to_string(warren_object_os_index(topology_, one))
                                    : plain);
        }
        list("indexes", words);
        words.clear();
        for (std::uint32_t place = 0; place < found.count * found.count; ++place) {
            std::uint64_t value = 0;
            warren_topology_distance(topology_, matrix, place / found.count, place % found.count,
                                     &value);
            words.push_back(std::to_string(value));
        }
        list("u64values", words);
        text_ += std::string("  </") + element + ">\n";
    }
}

// Guessed values are left out, so that readers of the XML don't take them for the machine's.
void Writer::memory_attributes() {
    const std::uint32_t nodes = warren_topology_count(topology_, WARREN_OBJECT_NUMA_NODE);
    for (std::uint32_t one = WARREN_ATTRIBUTE_BANDWIDTH;
         one < warren_topology_attributes(topology_); ++one) {
        const std::uint32_t flags = warren_topology_attribute_flags(topology_, one);
        const bool paired = (flags & WARREN_ATTRIBUTE_NEEDS_INITIATOR) != 0;
        std::string former = std::move(text_);
        text_.clear();
        for (std::uint32_t place = 0;
             place < nodes * (paired ? warren_topology_initiators(topology_) : 1); ++place) {
            const warren_object target =
                warren_topology_object(topology_, WARREN_OBJECT_NUMA_NODE, place % nodes);
            std::uint64_t value = 0;
            int origin = WARREN_ORIGIN_GUESSED;
            if (warren_topology_value(topology_, one, place / nodes,
                                      warren_object_os_index(topology_, target), &value,
                                      &origin) != WARREN_TOPOLOGY_SUCCESS ||
                origin == WARREN_ORIGIN_GUESSED) {
                continue;
            }
            text_ += "    <memattr_value target_obj_type=\"NUMANode\"";
            attribute("target_obj_gp_index", number(target));
            attribute("value", value);
            warren_set cpus{};
            warren_object device = WARREN_NO_OBJECT;
            if (paired) {
                warren_topology_initiator(topology_, place / nodes, &cpus, &device);
                if (device != WARREN_NO_OBJECT) {
                    attribute("initiator_obj_gp_index", number(device));
                    attribute("initiator_obj_type", type_of(device));
                } else {
                    attribute("initiator_cpuset", mask_text(cpus));
                }
            }
            text_ += "/>\n";
        }
        if (!text_.empty() || one >= WARREN_ATTRIBUTE_FIRST_OTHER) {
            const std::string values = std::move(text_);
            text_ = "  <memattr";
            attribute("name", warren_topology_attribute_name(topology_, one));
            attribute("flags", flags);
            text_ += ">\n" + values + "  </memattr>\n";
        }
        text_ = former + text_;
    }
}

void Writer::cpu_kinds() {
    for (std::uint32_t kind = 0; kind < warren_topology_cpu_kinds(topology_); ++kind) {
        warren_set cpus{};
        int efficiency = -1;
        warren_topology_cpu_kind(topology_, kind, &cpus, &efficiency);
        text_ += "  <cpukind";
        attribute("cpuset", mask_text(cpus));
        if (efficiency >= 0) {
            attribute("forced_efficiency", std::to_string(efficiency));
        }
        text_ += ">\n";
        for (std::uint32_t index = 0; index < warren_topology_cpu_kind_info_count(topology_, kind);
             ++index) {
            const char* name = "";
            const char* value = "";
            warren_topology_cpu_kind_info(topology_, kind, index, &name, &value);
            text_ += "    <info";
            attribute("name", name);
            attribute("value", value);
            text_ += "/>\n";
        }
        text_ += "  </cpukind>\n";
    }
}

std::string Writer::write() {
    text_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
            "<topology version=\"2.0\">\n";
    object(0, 1);
    distances();
    memory_attributes();
    cpu_kinds();
    text_ += "</topology>\n";
    return std::move(text_);
}

} // namespace

std::string xml_escaped(const std::string& text) {
    std::string made;
    for (const char letter : text) {
        switch (letter) {
        case '<':
            made += "&lt;";
            break;
        case '>':
            made += "&gt;";
            break;
        case '&':
            made += "&amp;";
            break;
        case '"':
            made += "&quot;";
            break;
        default:
            // XML has no other characters below the space than these.
            made += static_cast<unsigned char>(letter) >= ' ' || letter == '\t' || letter == '\n'
                        ? letter
                        : ' ';
        }
    }
    return made;
}

std::string hwloc_xml(const warren_topology* topology) {
    return Writer(topology).write();
}

} // namespace warren::discovery
