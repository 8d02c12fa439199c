#include <array>

#include "topo/forms.hpp"

namespace warren::tools {

namespace {

constexpr std::array child_kinds{WARREN_CHILD_MEMORY, WARREN_CHILD_TREE, WARREN_CHILD_IO,
                                 WARREN_CHILD_MISC};

class Writer {
  public:
    Writer(const warren_topology* topology, const BoundRanks& ranks)
        : topology_(topology), ranks_(ranks) {}

    std::string write() {
        object(0, 0);
        attributes();
        return std::move(text_);
    }

  private:
    void object(warren_object one, std::size_t depth);
    void attributes();
    void initiator(std::uint32_t number);

    const warren_topology* topology_;
    const BoundRanks& ranks_;
    std::string text_;
};

// The depth of recursion is bounded: images nest objects max_nested deep beside the tree's levels.
// NOLINTNEXTLINE(misc-no-recursion)
void Writer::object(warren_object one, std::size_t depth) {
    text_ += std::string(2 * depth, ' ') + label_text(topology_, one);
    const auto bound = ranks_.find(one);
    if (bound != ranks_.end()) {
        text_ += "  <- " + ranks_text(bound->second);
    }
    text_ += '\n';
    for (const int kind : child_kinds) {
        for (const warren_object child : children_of(topology_, one, kind)) {
            object(child, depth + 1);
        }
    }
}

void Writer::initiator(std::uint32_t number) {
    warren_set cpus{};
    warren_object device = WARREN_NO_OBJECT;
    if (warren_topology_initiator(topology_, number, &cpus, &device) != WARREN_TOPOLOGY_SUCCESS) {
        return;
    }
    text_ +=
        "\nMemory as seen from " +
        (device != WARREN_NO_OBJECT ? what_text(topology_, device) : "CPUs " + list_text(cpus)) +
        ", what is local first\n";
    for (std::uint32_t place = 0;; ++place) {
        const std::uint32_t node =
            warren_topology_best_target(topology_, WARREN_ATTRIBUTE_LOCALITY, number, place);
        if (node == WARREN_NO_INDEX) {
            return;
        }
        const warren_object object =
            warren_topology_by_os_index(topology_, WARREN_OBJECT_NUMA_NODE, node);
        const std::string kind = memory_kind(topology_, object);
        text_ += "  node " + std::to_string(node) + (kind.empty() ? "" : " " + kind);
        for (std::uint32_t attribute = 0; attribute < warren_topology_attributes(topology_);
             ++attribute) {
            const std::string value = value_text(topology_, attribute, number, node);
            if (!value.empty() && attribute != WARREN_ATTRIBUTE_LOCALITY) {
                text_ += ", " + std::string(warren_topology_attribute_name(topology_, attribute)) +
                         " " + value;
            }
        }
        text_ += '\n';
    }
}

void Writer::attributes() {
    for (std::uint32_t number = 0; number < warren_topology_initiators(topology_); ++number) {
        initiator(number);
    }
}

} // namespace

std::string as_text(const warren_topology* topology, const BoundRanks& ranks) {
    return Writer(topology, ranks).write();
}

} // namespace warren::tools
