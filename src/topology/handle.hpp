// warren_topology: the image's memory, the view of it, and its source. It takes 650 bytes of
// private memory, whatever the node's size. Thread rule: constant from its making to its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <vector>

#include "topology/mapping.hpp"
#include "topology/view.hpp"
#include "warren/topology.h"

struct warren_topology {
    warren::topology::TopologyView
        view; // first, and its index: what the header's own look-ups find
    warren::topology::ImageMemory memory;
    int way = 0;
    std::vector<std::uint64_t> cpus; // that may be used, by OS index
    std::vector<std::uint64_t> nodes;
};

namespace warren::topology {

// Programs have been compiled for these places: other ones are another image_version (format.hpp).
static_assert(image_version == 9 && sizeof(warren_topology_index) == 376 &&
              offsetof(warren_topology_index, pu_by_cpu) == 32 &&
              offsetof(warren_topology_index, orders) == 72 &&
              offsetof(warren_topology_index, joined_others) == 88 &&
              offsetof(warren_topology_index, cpus) == 92 &&
              offsetof(warren_topology_index, first_target) == 116 &&
              offsetof(warren_topology_index, short_values) == 120 &&
              std::size(warren_topology_index{}.short_values) == WARREN_ATTRIBUTE_FIRST_OTHER &&
              sizeof(warren_topology_attribute) == 16);
static_assert(std::is_standard_layout_v<warren_topology> &&
              std::is_standard_layout_v<TopologyView>);

// A set of the caller's that can be read, as far as one can tell.
inline bool is_set(const warren_set& set) {
    constexpr std::uint32_t most_words = (max_os_index + 1) / 64;
    return set.count == 0 ||
           (set.words != nullptr && set.count <= most_words && set.first <= most_words);
}

// Checks the image in `memory` and makes a topology of it. What may be used is what the image says
// is allowed, and, where it comes from the machine that this process runs on (`way` NODE or NATIVE,
// and the image says so), what the calling thread may use.
Error make_handle(ImageMemory memory, int way, warren_topology*& handle);

// Results of functions of the C API.
namespace c_api {
inline constexpr int wrong = WARREN_TOPOLOGY_ERR_ARGUMENT;
inline constexpr int nothing = WARREN_TOPOLOGY_ERR_NONE;
inline constexpr int success = WARREN_TOPOLOGY_SUCCESS;
} // namespace c_api

inline bool is_object(const warren_topology* topology, warren_object object) {
    return topology != nullptr && object < topology->view.objects();
}

// The topology's own info with which an image says that it describes the machine that it was made
// on.
inline constexpr char this_system_key[] = "ThisSystem";
// The infos of objects that warren/topology.h describes at warren_object_info.
inline constexpr char node_account_key[] = "NodeAccountBytes";
inline constexpr char outside_nodes_key[] = "BytesOutsideNodes";

} // namespace warren::topology
