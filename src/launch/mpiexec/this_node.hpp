// Names of nodes, as lists and files of hosts have them, that mean this one. Other launchers'
// commands name the node often even when there is only one. Thread rule: plain functions.
#pragma once

#include <string>

#include "base/error.hpp"

namespace warren::launch {

// "localhost", an address of this node, its name with or without its domain.
bool is_this_node(const std::string& name);

// A list with commas between the names, each with a number of slots behind a colon or without.
// Slots are not looked at: more ranks than processors need no permission. Refuses other nodes.
Error check_hosts(const std::string& what, const std::string& list);

// A file with a node per line: what follows the name, as slots=4, is not looked at.
Error check_hostfile(const std::string& what, const std::string& path);

} // namespace warren::launch
