// Labels of a topology's objects, for all forms of `warren topo`. Thread rule: functions of their
// arguments.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "warren/topology.h"

namespace warren::tools {

// A set as the kernel writes it: "0-3,8".
std::string list_text(warren_set set);

// A size such as "16 GiB": a whole number of the largest unit that gives at least 10, or divides
// exactly.
std::string bytes_text(std::uint64_t bytes);

// An object's kind, without its numbers: "Package", "L2 cache 1024 KiB", "HBM 16 GiB", "eth0".
std::string what_text(const warren_topology* topology, warren_object object);

// An object's kind with its numbers: "Core 3 (P 6)".
std::string label_text(const warren_topology* topology, warren_object object);

// The kind of memory, "HBM", "DRAM" …: its subtype, or "" if there is none.
std::string memory_kind(const warren_topology* topology, warren_object node);

// The best initiator's value of an attribute for a node, as "12000 MiB/s (guessed)". Empty: there
// is none.
std::string value_text(const warren_topology* topology, std::uint32_t attribute,
                       std::uint32_t initiator, std::uint32_t node);

// A list of ranks, as "ranks 0-3,7".
std::string ranks_text(const std::vector<std::uint32_t>& ranks);

// The ranks of a job by the smallest object that contains the processors they are bound to.
using BoundRanks = std::map<warren_object, std::vector<std::uint32_t>>;

// The three kinds of children, in the order in which they are shown: memory, tree, I/O, others.
std::vector<warren_object> children_of(const warren_topology* topology, warren_object object,
                                       int kind);

} // namespace warren::tools
