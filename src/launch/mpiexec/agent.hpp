// Agent: mpiexec on a node of a job of several. mpiexec starts it there by the launcher; it starts
// and watches the node's ranks as mpiexec does on one node (job.hpp), and the link (link.hpp)
// stands for the terminal, the standard streams and the user.
//
// When the link ends, mpiexec has gone, or the way to it: the agent kills the node's ranks. The
// agent's own end is seen by mpiexec the same way, and its guardian kills the ranks then.
// Thread rule: the agent's only thread.
#pragma once

#include "launch/mpiexec/link.hpp"
#include "launch/mpiexec/node_plan.hpp"

namespace warren::launch {

// The only word of its command line.
inline constexpr const char* agent_word = "--agent";

struct Agent {
    Agent(int input, int output) : link(input, output) {}

    Link link;
    NodePlan plan;
};

// The agent's main(): its exit code.
int run_agent();

} // namespace warren::launch
