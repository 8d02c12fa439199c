// Names of nodes, as lists and files of hosts have them, that mean this one. Other launchers'
// commands name the node often even when there is only one. Thread rule: plain functions.
#pragma once

#include <string>

namespace warren::launch {

// "localhost", an address of this node, its name with or without its domain.
bool is_this_node(const std::string& name);

} // namespace warren::launch
