// What a warren_topology is: the image's memory, the view of it, how it was got. 500 bytes of
// private memory, whatever the node's size. Thread rule: constant from its making to its end.
#pragma once

#include "topology/mapping.hpp"
#include "topology/view.hpp"
#include "warren/topology.h"

struct warren_topology {
    warren::topology::ImageMemory memory;
    warren::topology::TopologyView view;
    int way = 0;
};

namespace warren::topology {

// A set of the caller's that can be read, as far as one can tell.
inline bool is_set(const warren_set& set) {
    constexpr std::uint32_t most_words = (max_os_index + 1) / 64;
    return set.count == 0 ||
           (set.words != nullptr && set.count <= most_words && set.first <= most_words);
}

// Checks the image in `memory` and makes a topology of it.
Error make_handle(ImageMemory memory, int way, warren_topology*& handle);

} // namespace warren::topology
