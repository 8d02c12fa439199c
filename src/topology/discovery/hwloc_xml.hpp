// A topology in hwloc's XML, version 2.0: what hwloc 2.x (HWLOC_XMLFILE, lstopo -i) and Warren
// read.
//
// Values of attributes that were guessed are left out: who reads the XML shall not take them for
// the machine's word. Thread rule: a function of its argument.
#pragma once

#include <string>

#include "warren/topology.h"

namespace warren::discovery {

// Text as it stands in XML, between marks or within quotes.
std::string xml_escaped(const std::string& text);

std::string hwloc_xml(const warren_topology* topology);

} // namespace warren::discovery
