// The NUMA nodes that processors are on, as the kernel numbers them, and whether it moves pages
// among them for us. Thread rule: any thread; reads files of the system only.
#pragma once

#include <string>
#include <vector>

#include "memory/heap/numa.hpp"

namespace warren::launch {

// The node of each of these processors; 0 where the kernel knows no nodes, and for those that are
// not there. `root` is "" but in tests.
std::vector<int> nodes_of_processors(const std::vector<int>& processors, const std::string& root);

// The nodes on which this process may have memory: those with any that its cpuset grants.
memory::NodeSet nodes_with_memory(const std::string& root);

// Such nodes no pages go to: puts no_node in their places. Returns them, each once, in order.
inline constexpr int no_node = -1;
std::vector<int> leave_out_others(std::vector<int>& nodes, const memory::NodeSet& with_memory);

// Asks the kernel to move a page of this process to the node where it already is. Returns 0 when
// the kernel moves pages, else its errno.
int refusal_to_move_pages();

} // namespace warren::launch
