// Virtual topologies (MPI chapter 8): what their entry points call.
//
// Reordering is allowed by the standard and not done: all ranks of a node are as near to each other
// as Warren knows. Arguments have been checked, but for arrays whose length no argument says.
// Called with the rank's lock held.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"

namespace warren::mpi {

Error dims_create(int nnodes, int ndims, int dims[]);
Error topo_test(Context& context, comm::Communicator& comm, int* status);

Error cart_create(Context& context, comm::Communicator& comm_old, int ndims, const int dims[],
                  const int periods[], int reorder, MPI_Comm* comm_cart);
Error cart_sub(Context& context, comm::Communicator& comm, const int remain_dims[],
               MPI_Comm* newcomm);
Error cartdim_get(Context& context, comm::Communicator& comm, int* ndims);
Error cart_get(Context& context, comm::Communicator& comm, int maxdims, int dims[], int periods[],
               int coords[]);
Error cart_rank(Context& context, comm::Communicator& comm, const int coords[], int* rank);
Error cart_coords(Context& context, comm::Communicator& comm, int rank, int maxdims, int coords[]);
Error cart_shift(Context& context, comm::Communicator& comm, int direction, int disp,
                 int* rank_source, int* rank_dest);
Error cart_map(Context& context, comm::Communicator& comm, int ndims, const int dims[],
               const int periods[], int* newrank);

Error graph_create(Context& context, comm::Communicator& comm_old, int nnodes, const int indx[],
                   const int edges[], int reorder, MPI_Comm* comm_graph);
Error graphdims_get(Context& context, comm::Communicator& comm, int* nnodes, int* nedges);
Error graph_get(Context& context, comm::Communicator& comm, int maxindex, int maxedges, int indx[],
                int edges[]);
Error graph_neighbors_count(Context& context, comm::Communicator& comm, int rank, int* nneighbors);
Error graph_neighbors(Context& context, comm::Communicator& comm, int rank, int maxneighbors,
                      int neighbors[]);
Error graph_map(Context& context, comm::Communicator& comm, int nnodes, const int indx[],
                const int edges[], int* newrank);

Error dist_graph_create_adjacent(Context& context, comm::Communicator& comm_old, int indegree,
                                 const int sources[], const int sourceweights[], int outdegree,
                                 const int destinations[], const int destweights[],
                                 comm::Info* info, int reorder, MPI_Comm* comm_dist_graph);
Error dist_graph_create(Context& context, comm::Communicator& comm_old, int n, const int sources[],
                        const int degrees[], const int destinations[], const int weights[],
                        comm::Info* info, int reorder, MPI_Comm* comm_dist_graph);
Error dist_graph_neighbors_count(Context& context, comm::Communicator& comm, int* indegree,
                                 int* outdegree, int* weighted);
Error dist_graph_neighbors(Context& context, comm::Communicator& comm, int maxindegree,
                           int sources[], int sourceweights[], int maxoutdegree, int destinations[],
                           int destweights[]);

} // namespace warren::mpi
