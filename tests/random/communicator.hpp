// Communicators as the model knows them: who is in them, in which order, with which topology. Every
// rank knows all of them, also those that it isn't in.
#pragma once

#include "draw.hpp"

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

namespace programs {

using Ranks = std::vector<int>; // of the program's base communicator

struct Communicator {
    MPI_Comm handle = MPI_COMM_NULL; // where it isn't: no member, or its creation was left out
    bool exists = true;              // no: the step that would have made it was left out
    std::string text;                // how it was made
    bool inter = false;
    Ranks groups[2]; // the second of an intercommunicator only
    long attribute = 0;
    int busy_until = 0; // no freeing up to this step: messages wait for their receives

    enum class Topology { none, grid, graph, edges };
    Topology topology = Topology::none;
    std::vector<int> dims, periods;
    // Neighbours of every rank. In the order of the lists; of MPI_Dist_graph_create's, in any.
    std::vector<Ranks> sources, destinations;
    bool edges_in_any_order = false;

    std::string describe() const;
    long total() const { return static_cast<long>(groups[0].size() + groups[1].size()); }
};
using CommPtr = std::shared_ptr<Communicator>;

int place_of(const Ranks& ranks, int rank); // -1: not there

// A communicator as one of its members sees it.
struct View {
    View(const Communicator& communicator, int rank);

    const Communicator& of;
    MPI_Comm comm;
    int side = 0; // whose group is mine
    int me = -1;  // in my group
    const Ranks& mine() const { return of.groups[side]; }
    const Ranks& others() const { return of.groups[of.inter ? 1 - side : 0]; }
    int size() const { return static_cast<int>(mine().size()); }
    int remote_size() const { return static_cast<int>(others().size()); }
};

} // namespace programs
