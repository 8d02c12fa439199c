// Collective communication (MPI chapter 6): what its entry points call.
//
// Arguments have been checked. Those that mean nothing at the calling rank (the send side under
// MPI_IN_PLACE, the receive side of a gather away from its root) come as a null or unchanged
// buffer, count 0 and MPI_BYTE; arrays of counts that mean nothing are null(). Elements of arrays
// (counts, displacements, datatypes) are the callee's to check, in the pass that it makes.
// Called with the rank's lock held.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/count_array.hpp"
#include "mpi/objects.hpp"

namespace warren::mpi {

Error allgather(Context& context, const void* sendbuf, MPI_Count sendcount,
                const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
                const datatype::Datatype& recvtype, comm::Communicator& comm);
Error allgatherv(Context& context, const void* sendbuf, MPI_Count sendcount,
                 const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
                 CountArray displs, const datatype::Datatype& recvtype, comm::Communicator& comm);
Error alltoall(Context& context, const void* sendbuf, MPI_Count sendcount,
               const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
               const datatype::Datatype& recvtype, comm::Communicator& comm);
Error alltoallv(Context& context, const void* sendbuf, CountArray sendcounts, CountArray sdispls,
                const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
                CountArray rdispls, const datatype::Datatype& recvtype, comm::Communicator& comm);
Error alltoallw(Context& context, const void* sendbuf, CountArray sendcounts, CountArray sdispls,
                const MPI_Datatype sendtypes[], void* recvbuf, CountArray recvcounts,
                CountArray rdispls, const MPI_Datatype recvtypes[], comm::Communicator& comm);
Error barrier(Context& context, comm::Communicator& comm);
Error bcast(Context& context, void* buffer, MPI_Count count, const datatype::Datatype& datatype,
            int root, comm::Communicator& comm);
Error gather(Context& context, const void* sendbuf, MPI_Count sendcount,
             const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
             const datatype::Datatype& recvtype, int root, comm::Communicator& comm);
Error gatherv(Context& context, const void* sendbuf, MPI_Count sendcount,
              const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
              CountArray displs, const datatype::Datatype& recvtype, int root,
              comm::Communicator& comm);
Error scatter(Context& context, const void* sendbuf, MPI_Count sendcount,
              const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
              const datatype::Datatype& recvtype, int root, comm::Communicator& comm);
Error scatterv(Context& context, const void* sendbuf, CountArray sendcounts, CountArray displs,
               const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
               const datatype::Datatype& recvtype, int root, comm::Communicator& comm);

// Reductions. The operation and the datatype fit each other only if the callee finds so
// (MPI_ERR_OP).
Error allreduce(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
                const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm);
Error exscan(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
             const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm);
Error reduce(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
             const datatype::Datatype& datatype, coll::Op& op, int root, comm::Communicator& comm);
Error reduce_local(Context& context, const void* inbuf, void* inoutbuf, MPI_Count count,
                   const datatype::Datatype& datatype, coll::Op& op);
Error reduce_scatter(Context& context, const void* sendbuf, void* recvbuf, CountArray recvcounts,
                     const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm);
Error reduce_scatter_block(Context& context, const void* sendbuf, void* recvbuf,
                           MPI_Count recvcount, const datatype::Datatype& datatype, coll::Op& op,
                           comm::Communicator& comm);
Error scan(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
           const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm);

} // namespace warren::mpi
