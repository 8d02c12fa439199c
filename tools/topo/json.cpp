#include <array>
#include <cstdio>

#include "topo/forms.hpp"

namespace warren::tools {

namespace {

std::string quoted(const std::string& text) {
    std::string made = "\"";
    for (const char letter : text) {
        const auto code = static_cast<unsigned char>(letter);
        if (letter == '"' || letter == '\\') {
            made += '\\';
            made += letter;
        } else if (code < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", code);
            made += escape;
        } else {
            made += letter;
        }
    }
    return made + "\"";
}

class Writer {
  public:
    Writer(const warren_topology* topology, const BoundRanks& ranks)
        : topology_(topology), ranks_(ranks) {}

    std::string write();

  private:
    void object(warren_object one, std::size_t depth);
    void children(warren_object one, int kind, const char* key, std::size_t depth);
    void details(warren_object one);
    void infos(warren_object one);
    void attributes();
    void distances();
    void set(const char* key, warren_set members) {
        text_ += std::string(", \"") + key + "\": " + quoted(list_text(members));
    }
    void number(const char* key, std::uint64_t value) {
        text_ += std::string(", \"") + key + "\": " + std::to_string(value);
    }

    const warren_topology* topology_;
    const BoundRanks& ranks_;
    std::string text_;
};

void Writer::infos(warren_object one) {
    const std::uint32_t count = warren_object_info_count(topology_, one);
    if (count == 0) {
        return;
    }
    text_ += ", \"infos\": [";
    for (std::uint32_t index = 0; index < count; ++index) {
        const char* name = "";
        const char* value = "";
        warren_object_info_at(topology_, one, index, &name, &value);
        text_ += (index == 0 ? "[" : ", [") + quoted(name) + ", " + quoted(value) + "]";
    }
    text_ += "]";
}

void Writer::details(warren_object one) {
    warren_cache cache{};
    warren_pci_device device{};
    if (warren_object_cache(topology_, one, &cache) == WARREN_TOPOLOGY_SUCCESS) {
        number("bytes", cache.bytes);
        number("line_bytes", cache.line_bytes);
    }
    if (warren_object_type(topology_, one) == WARREN_OBJECT_NUMA_NODE) {
        number("bytes", warren_object_memory_bytes(topology_, one));
    }
    if (warren_object_pci_device(topology_, one, &device) == WARREN_TOPOLOGY_SUCCESS) {
        number("vendor", device.vendor_id);
        number("device", device.device_id);
    }
    const int kind = warren_object_device_kind(topology_, one);
    if (kind >= 0) {
        number("kind", static_cast<std::uint64_t>(kind));
    }
}

// The depth of recursion is bounded: images nest objects max_nested deep beside the tree's levels.
// NOLINTNEXTLINE(misc-no-recursion)
void Writer::children(warren_object one, int kind, const char* key, std::size_t depth) {
    bool first = true;
    for (const warren_object child : children_of(topology_, one, kind)) {
        text_ += first ? std::string(",\n") + std::string(depth, ' ') + "\"" + key + "\": [\n"
                       : std::string(",\n");
        first = false;
        object(child, depth + 1);
    }
    text_ += first ? "" : "]";
}

// NOLINTNEXTLINE(misc-no-recursion)
void Writer::object(warren_object one, std::size_t depth) {
    text_ += std::string(depth, ' ') +
             "{\"type\": " + quoted(warren_object_type_name(warren_object_type(topology_, one)));
    number("object", one);
    number("logical_index", warren_object_logical_index(topology_, one));
    const std::uint32_t os_index = warren_object_os_index(topology_, one);
    if (os_index != WARREN_NO_INDEX) {
        number("os_index", os_index);
    }
    if (const char* name = warren_object_name(topology_, one)) {
        text_ += ", \"name\": " + quoted(name);
    }
    if (const char* subtype = warren_object_subtype(topology_, one)) {
        text_ += ", \"subtype\": " + quoted(subtype);
    }
    if (warren_object_type(topology_, one) < WARREN_OBJECT_BRIDGE) {
        set("cpus", warren_object_cpus(topology_, one));
        set("nodes", warren_object_nodes(topology_, one));
    }
    details(one);
    infos(one);
    const auto bound = ranks_.find(one);
    if (bound != ranks_.end()) {
        text_ += ", \"ranks\": [";
        for (const std::uint32_t rank : bound->second) {
            text_ += (text_.back() == '[' ? "" : ", ") + std::to_string(rank);
        }
        text_ += "]";
    }
    children(one, WARREN_CHILD_MEMORY, "memory", depth + 1);
    children(one, WARREN_CHILD_TREE, "children", depth + 1);
    children(one, WARREN_CHILD_IO, "io", depth + 1);
    children(one, WARREN_CHILD_MISC, "misc", depth + 1);
    text_ += "}";
}

void Writer::attributes() {
    static constexpr std::array<const char*, 4> origins{"", "firmware", "measured", "guessed"};
    text_ += ",\n \"initiators\": [";
    for (std::uint32_t number = 0; number < warren_topology_initiators(topology_); ++number) {
        warren_set cpus{};
        warren_object device = WARREN_NO_OBJECT;
        warren_topology_initiator(topology_, number, &cpus, &device);
        text_ += (number == 0 ? "{\"cpus\": " : ", {\"cpus\": ") + quoted(list_text(cpus));
        if (device != WARREN_NO_OBJECT) {
            text_ += ", \"object\": " + std::to_string(device);
        }
        text_ += "}";
    }
    text_ += "],\n \"attributes\": [";
    for (std::uint32_t attribute = 0; attribute < warren_topology_attributes(topology_);
         ++attribute) {
        const std::uint32_t flags = warren_topology_attribute_flags(topology_, attribute);
        const bool paired = (flags & WARREN_ATTRIBUTE_NEEDS_INITIATOR) != 0;
        text_ += std::string(attribute == 0 ? "\n" : ",\n") +
                 "  {\"name\": " + quoted(warren_topology_attribute_name(topology_, attribute)) +
                 ", \"values\": [";
        const std::uint32_t rows = paired ? warren_topology_initiators(topology_) : 1;
        for (std::uint32_t row = 0; row < rows; ++row) {
            for (std::uint32_t target = 0;
                 target < warren_topology_count(topology_, WARREN_OBJECT_NUMA_NODE); ++target) {
                const std::uint32_t node = warren_object_os_index(
                    topology_, warren_topology_object(topology_, WARREN_OBJECT_NUMA_NODE, target));
                std::uint64_t value = 0;
                int origin = 0;
                if (warren_topology_value(topology_, attribute, row, node, &value, &origin) !=
                    WARREN_TOPOLOGY_SUCCESS) {
                    continue;
                }
                text_ += text_.back() == '[' ? "{" : ", {";
                text_ += paired ? "\"initiator\": " + std::to_string(row) + ", " : "";
                text_ += "\"node\": " + std::to_string(node) +
                         ", \"value\": " + std::to_string(value) + ", \"origin\": " +
                         quoted(origins[static_cast<std::size_t>(origin) % origins.size()]) + "}";
            }
        }
        text_ += "]}";
    }
    text_ += "]";
}

void Writer::distances() {
    text_ += ",\n \"distances\": [";
    for (std::uint32_t matrix = 0; matrix < warren_topology_distances_count(topology_); ++matrix) {
        warren_distances found{};
        warren_topology_distances(topology_, matrix, &found);
        text_ += std::string(matrix == 0 ? "\n" : ",\n") +
                 "  {\"name\": " + quoted(found.name != nullptr ? found.name : "");
        number("kind", found.kind);
        text_ += ", \"objects\": [";
        for (std::uint32_t place = 0; place < found.count; ++place) {
            text_ += (place == 0 ? "" : ", ") + std::to_string(found.objects[place]);
        }
        text_ += "], \"values\": [";
        for (std::uint32_t place = 0; place < found.count * found.count; ++place) {
            std::uint64_t value = 0;
            warren_topology_distance(topology_, matrix, place / found.count, place % found.count,
                                     &value);
            text_ += (place == 0 ? "" : ", ") + std::to_string(value);
        }
        text_ += "]}";
    }
    text_ += "]";
}

std::string Writer::write() {
    text_ = "{\"objects\": " + std::to_string(warren_topology_objects(topology_));
    infos(WARREN_NO_OBJECT);
    text_ += ",\n \"machine\":\n";
    object(0, 1);
    attributes();
    distances();
    text_ += "}\n";
    return std::move(text_);
}

} // namespace

std::string as_json(const warren_topology* topology, const BoundRanks& ranks) {
    return Writer(topology, ranks).write();
}

} // namespace warren::tools
