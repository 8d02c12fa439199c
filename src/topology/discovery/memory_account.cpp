#include "topology/discovery/memory_account.hpp"

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "topology/details.hpp"
#include "topology/handle.hpp"
#include "warren/topology.h"

namespace warren::discovery {

namespace {

using topology::Description;
using topology::Object;

// Details of a NUMA node: its bytes, the number of page sizes, and of each its bytes and pages.
constexpr std::size_t bytes_at = 0;
constexpr std::size_t page_sizes_at = 1;
constexpr std::size_t first_page_size_at = 2;

// 0: not known.
std::uint64_t machine_bytes(const std::string& root) {
    // Not by a stream of the C++ library, which would bring its locales into each process.
    std::FILE* const file = std::fopen((root + "/proc/meminfo").c_str(), "re");
    if (file == nullptr) {
        return 0;
    }
    unsigned long long kibibytes = 0;
    char line[256];
    while (kibibytes == 0 && std::fgets(line, sizeof line, file) != nullptr) {
        if (std::sscanf(line, "MemTotal: %llu", &kibibytes) == 1) {
            break;
        }
    }
    static_cast<void>(std::fclose(file));
    return std::uint64_t{kibibytes} * 1024;
}

void give_all(std::uint64_t bytes, std::uint32_t target, Object& node, Description& description) {
    const std::uint64_t own = node.details[bytes_at];
    node.infos.push_back({topology::node_account_key, std::to_string(own)});
    node.details[bytes_at] = bytes;
    if (node.details[page_sizes_at] != 0 && node.details[first_page_size_at] != 0) {
        node.details[first_page_size_at + 1] += (bytes - own) / node.details[first_page_size_at];
    }
    for (topology::AttributeValue& value :
         description.attributes[WARREN_ATTRIBUTE_CAPACITY].values) {
        if (value.target == target) {
            value.value = bytes;
        }
    }
}

} // namespace

void reconcile_memory(const std::string& root, Description& description) {
    const std::uint64_t machine = machine_bytes(root);
    std::uint64_t nodes = 0;
    std::uint32_t with_memory = 0;
    std::uint32_t target = 0;
    Object* node = nullptr;
    const std::vector<std::uint32_t> targets = description.targets();
    for (std::uint32_t number = 0; number < targets.size(); ++number) {
        Object& one = description.objects[targets[number]];
        nodes += one.details[bytes_at];
        if (one.details[bytes_at] != 0) {
            ++with_memory;
            target = number;
            node = &one;
        }
    }
    if (node == nullptr || machine <= nodes || machine - nodes < machine / 64) {
        return;
    }
    if (with_memory == 1) {
        give_all(machine, target, *node, description);
    } else {
        description.objects[0].infos.push_back(
            {topology::outside_nodes_key, std::to_string(machine - nodes)});
    }
}

} // namespace warren::discovery
