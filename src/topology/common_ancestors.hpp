// The tables of an image by which the lowest common ancestor of two objects of the tree is found:
// of all pairs, or places and where they part, or none (format.hpp explains them).
#pragma once

#include <cstdint>
#include <vector>

#include "topology/description.hpp"
#include "topology/format.hpp"

namespace warren::topology {

struct CommonAncestors {
    std::vector<std::uint8_t> pairs;
    std::vector<std::uint16_t> places;
    std::vector<std::uint16_t> above;
    std::vector<std::uint16_t> partings;
    std::uint32_t place_bits = no_places;
    std::uint32_t parting_kinds = 0;
};

// Makes the tables of a description whose first `tree_objects` are the tree's, parents before
// children.
CommonAncestors make_common_ancestors(const Description& description, std::uint32_t tree_objects);

} // namespace warren::topology
