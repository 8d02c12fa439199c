// A topology in the forms that `warren topo` writes.
// Thread rule: functions of their arguments.
#pragma once

#include <string>

#include "topo/labels.hpp"

namespace warren::tools {

// Text: a line per object, indented, and a table of memory attributes.
std::string as_text(const warren_topology* topology, const BoundRanks& ranks);

// JSON: objects within objects. Keys are the names of warren/topology.h.
std::string as_json(const warren_topology* topology, const BoundRanks& ranks);

// SVG: boxes within boxes, memory in the colour of its kind.
std::string as_svg(const warren_topology* topology, const BoundRanks& ranks);

} // namespace warren::tools
