// Neighbourhood collectives (MPI chapter 8): what their entry points call, as in collectives.hpp.
//
// All of them fail with MPI_ERR_TOPOLOGY on a communicator without a topology. Arrays that have an
// element per neighbour may be null where there is none. Called with the rank's lock held.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/coll/steps.hpp"
#include "mpi/entry/count_array.hpp"
#include "mpi/entry/objects.hpp"
#include "mpi/entry/schedules.hpp"

namespace warren::mpi::plan {

Error neighbor_allgather(Context& context, coll::Steps& steps, const void* sendbuf,
                         MPI_Count sendcount, const datatype::Datatype& sendtype, void* recvbuf,
                         MPI_Count recvcount, const datatype::Datatype& recvtype);
Error neighbor_allgatherv(Context& context, coll::Steps& steps, const void* sendbuf,
                          MPI_Count sendcount, const datatype::Datatype& sendtype, void* recvbuf,
                          CountArray recvcounts, CountArray displs,
                          const datatype::Datatype& recvtype);
Error neighbor_alltoall(Context& context, coll::Steps& steps, const void* sendbuf,
                        MPI_Count sendcount, const datatype::Datatype& sendtype, void* recvbuf,
                        MPI_Count recvcount, const datatype::Datatype& recvtype);
Error neighbor_alltoallv(Context& context, coll::Steps& steps, const void* sendbuf,
                         CountArray sendcounts, CountArray sdispls,
                         const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
                         CountArray rdispls, const datatype::Datatype& recvtype);
Error neighbor_alltoallw(Context& context, coll::Steps& steps, const void* sendbuf,
                         CountArray sendcounts, CountArray sdispls, const MPI_Datatype sendtypes[],
                         void* recvbuf, CountArray recvcounts, CountArray rdispls,
                         const MPI_Datatype recvtypes[]);

} // namespace warren::mpi::plan
