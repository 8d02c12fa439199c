// Exchanges with the neighbours of a virtual topology (MPI chapter 8, neighbourhood collectives).

#include "mpi/coll/algorithms.hpp"
#include "mpi/comm/topology.hpp"

namespace warren::coll {

// All at once: L + n · B per neighbour.
// Two ranks may be neighbours more than once. Their messages match in order: as the destinations of
// one and the sources of the other list each other; in a grid, where what goes down arrives from
// above, receives are therefore posted with the two neighbours of a dimension exchanged.
void neighbours_exchange(Steps& steps, const comm::Topology& topology, const Blocks& out,
                         const Blocks& in) {
    const int exchanged = topology.kind == comm::Topology::Kind::grid ? 1 : 0;
    const int sources = static_cast<int>(topology.sources.size());
    for (int i = 0; i < sources; ++i) {
        const int place = i ^ exchanged;
        const int from = topology.sources[static_cast<std::size_t>(place)];
        const Buffer block = in[place];
        if (from != MPI_PROC_NULL && block.bytes() > 0) {
            steps.start_receive(block, from);
        }
    }
    const int destinations = static_cast<int>(topology.destinations.size());
    for (int i = 0; i < destinations; ++i) {
        const int to = topology.destinations[static_cast<std::size_t>(i)];
        const Buffer block = out[i];
        if (to != MPI_PROC_NULL && block.bytes() > 0) {
            steps.start_send(block, to);
        }
    }
    steps.finish();
}

} // namespace warren::coll
