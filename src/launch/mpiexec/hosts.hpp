// Hosts: the nodes that the user names for a job, and how many ranks each gets.
//
//     --hosts a:4,b:4      names with slots; a name without a number has one slot
//     --hostfile FILE      a line per node: "a slots=4", "a:4", "a 4" or "a"
//     -ppn N               N slots on every node instead
// Ranks fill the slots in order; when there are more ranks than slots, each node gets its share of
// all ranks by its slots. Dealt (--map-by node), ranks go round the nodes in turn. Nodes without
// ranks are left out. Thread rule: plain functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "launch/mpiexec/command_line.hpp"

namespace warren::launch {

struct Host {
    std::string name;
    std::uint32_t slots = 1;
    std::uint32_t ranks = 0; // it gets
};

// A node that is named several times has its slots together. Errors call the option `what`.
Error parse_hosts(const std::string& what, const std::string& list, std::vector<Host>& hosts);
Error parse_hostfile(const std::string& what, const std::string& path, std::vector<Host>& hosts);

// The nodes of the allocation of a batch system that this process is in; none: it is in none.
// Understood: Slurm's variables.
Error hosts_of_allocation(std::vector<Host>& hosts);

// The hosts that a command line names, or those of an allocation of several nodes; none: this node
// alone, by whatever name. Also sets the number of ranks where the user has not, and divides ranks
// among the hosts.
Error plan_hosts(CommandLine& line, std::vector<Host>& hosts);

// Divides `ranks` among the hosts, as above, and leaves out those that get none.
Error divide_ranks(std::uint32_t ranks, std::uint32_t per_node, bool dealt,
                   std::vector<Host>& hosts);

// "n[0-2,7],m" → n0, n1, n2, n7, m. False: it is no such list.
bool expand_slurm_nodes(const std::string& list, std::vector<std::string>& names);
// "2(x3),1" → 2, 2, 2, 1.
bool expand_slurm_counts(const std::string& list, std::vector<std::uint32_t>& counts);

} // namespace warren::launch
