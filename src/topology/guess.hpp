// Completes the attributes of memory: a value for each pair of initiator and target, although the
// firmware speaks of few of them (usually of each target's nearest processors).
//
// Initiators. Processors are put together when nothing that is known tells them apart: they have
// the same local NUMA nodes, and the same sets that values were given for include them. Devices for
// which values are given are initiators of their own.
//
// Rule for a pair without a value (its origin becomes "guessed"):
//  1. An attribute of reading or writing takes the value of both together, if that is known for the
//     pair, and the other way round (the mean, if both reading and writing are known).
//  2. Else, from the target's known value for the nearest initiator: latencies are multiplied, and
//     bandwidths divided, by the ratio of the two distances. Distances are those of the
//     operating system's matrix of latencies between NUMA nodes, from the best of the initiator's
//     local nodes; without a matrix 10 for local memory, 21 for other.
//  3. Else nothing is known of the target: its nearest initiator gets what is usual for its kind of
//     memory (table in guess.cpp; behind a memory-side cache the geometric mean with what such a
//     cache is made of: high-bandwidth memory before DRAM, DRAM before all other), scaled by the
//     mean ratio of known to usual values of the node's other targets, and the others follow by 2.
// Matrices of bandwidths and latencies with absolute numbers are taken by hwloc as attributes;
// there is nothing to be guessed from them here.
//
// Orders. For each attribute and initiator all targets, the best first; without value last; equal
// ones local first, then by distance, then by index. Locality's order is by these alone.
//
// Thread rule: a function of its argument.
#pragma once

#include "topology/description.hpp"

namespace warren::topology {

// Fills initiators and matrices from the rest of the description; may be called again when
// attributes have changed. The first eight attributes are there, in the order of warren/topology.h.
void complete_attributes(Description& description);

// The attributes that are always there, without values.
std::vector<Attribute> standard_attributes();

} // namespace warren::topology
