// Makes a topology image of a description.
// Thread rule: a function of its arguments.
#pragma once

#include <cstddef>
#include <vector>

#include "base/error.hpp"
#include "topology/description.hpp"

namespace warren::topology {

// Fills `image` (a multiple of 8 bytes). The description's attributes have been completed.
// Errors: WARREN_TOPOLOGY_ERR_LIMIT when the node is larger than the format (format.hpp) allows,
// WARREN_TOPOLOGY_ERR_ARGUMENT when the description contradicts itself.
Error encode(const Description& description, std::vector<std::byte>& image);

} // namespace warren::topology
