// The memory of the machine and of its NUMA nodes are two accounts of the kernel, which differ
// where memory was added to a running system (virtual machines that grow): the nodes' account may
// lack it, although programs get it. hwloc reads the nodes' account only.
//
// Where one node has all memory, it is given what the machine has. Where several have some, nobody
// says which of them has more: the machine is told how much is in no node's account. Thread rule: a
// function of its arguments and the system's files.
#pragma once

#include <string>

#include "topology/description.hpp"

namespace warren::discovery {

// Corrects and completes what the description says of memory, by the files of /proc under `root`
// ("": the system's). Differences below a 64th of the machine's memory are none.
void reconcile_memory(const std::string& root, topology::Description& description);

} // namespace warren::discovery
