// Foreign cells: which cells of other nodes and of other worlds an engine takes.
//
// Ranks of a node share memory and trust each other. What comes by the network has passed the
// port's checks, so it is of a process of this job; what comes by the bridge is of a process of
// this user. Here is seen whether a cell is of a kind that crosses (no addresses do), and whether
// what it says of streams and requests can be. Thread
// rule: under the rank's lock.
#pragma once

#include "mpi/message/core.hpp"
#include "mpi/message/protocol.hpp"

namespace warren::message {

bool may_cross_nodes(Core& core, const transport::Arrival& arrival);
bool may_cross_worlds(Core& core, const transport::Arrival& arrival);

} // namespace warren::message
