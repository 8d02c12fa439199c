// Words for what is in a topology, for all forms in which `warren topo` shows it.
// Thread rule: functions of their arguments.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "warren/topology.h"

namespace warren::tools {

// "0-3,8": as the kernel writes sets.
std::string list_text(warren_set set);

// "16 GiB": whole numbers of the largest unit that leaves at least 10 of it, or none over.
std::string bytes_text(std::uint64_t bytes);

// What an object is, without its numbers: "Package", "L2 cache 1024 KiB", "HBM 16 GiB", "eth0".
std::string what_text(const warren_topology* topology, warren_object object);

// The same with its numbers: "Core 3 (P 6)".
std::string label_text(const warren_topology* topology, warren_object object);

// The kind of memory: "HBM", "DRAM" …: its subtype, or "" when nobody says.
std::string memory_kind(const warren_topology* topology, warren_object node);

// "12000 MiB/s (guessed)"; the best initiator's value of an attribute for a node. Empty: none.
std::string value_text(const warren_topology* topology, std::uint32_t attribute,
                       std::uint32_t initiator, std::uint32_t node);

// "ranks 0-3,7".
std::string ranks_text(const std::vector<std::uint32_t>& ranks);

// Which ranks of a job are bound to what is below an object and to nothing smaller.
using BoundRanks = std::map<warren_object, std::vector<std::uint32_t>>;

// The three kinds of children, in the order in which they are shown: memory, tree, I/O, others.
std::vector<warren_object> children_of(const warren_topology* topology, warren_object object,
                                       int kind);

} // namespace warren::tools
