// Collective communication (MPI chapter 6): what its entry points call.
//
// Most procedures come in three forms, blocking, nonblocking and persistent, which are the same
// operation: a plan, here, says which steps it takes at the calling rank, and schedules.hpp has
// them done. Entry points are generated so (abi/entries.tsv, notes).
//
// Arguments have been checked. Those that mean nothing at the calling rank (the send side under
// MPI_IN_PLACE, the receive side of a gather away from its root) come as a null or unchanged
// buffer, count 0 and MPI_BYTE; arrays of counts that mean nothing are null(). Elements of arrays
// (counts, displacements, datatypes) are the callee's to check, in the pass that it makes. So is
// whether the operation of a reduction fits the datatype (MPI_ERR_OP).
// Called with the rank's lock held.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/coll/steps.hpp"
#include "mpi/entry/count_array.hpp"
#include "mpi/entry/objects.hpp"
#include "mpi/entry/schedules.hpp"

namespace warren::mpi {

// Blocking operations that have a shorter way than steps on a node, and one that concerns nobody
// else.
Error barrier(Context& context, comm::Communicator& comm);
Error bcast(Context& context, void* buffer, MPI_Count count, const datatype::Datatype& datatype,
            int root, comm::Communicator& comm);
Error gather(Context& context, const void* sendbuf, MPI_Count sendcount,
             const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
             const datatype::Datatype& recvtype, int root, comm::Communicator& comm);
Error scatter(Context& context, const void* sendbuf, MPI_Count sendcount,
              const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
              const datatype::Datatype& recvtype, int root, comm::Communicator& comm);
Error allgather(Context& context, const void* sendbuf, MPI_Count sendcount,
                const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
                const datatype::Datatype& recvtype, comm::Communicator& comm);
Error allgatherv(Context& context, const void* sendbuf, MPI_Count sendcount,
                 const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
                 CountArray displs, const datatype::Datatype& recvtype, comm::Communicator& comm);
Error alltoall(Context& context, const void* sendbuf, MPI_Count sendcount,
               const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
               const datatype::Datatype& recvtype, comm::Communicator& comm);
Error reduce(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
             const datatype::Datatype& datatype, coll::Op& op, int root, comm::Communicator& comm);
Error allreduce(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
                const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm);
Error scan(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
           const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm);
Error exscan(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
             const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm);
Error reduce_scatter(Context& context, const void* sendbuf, void* recvbuf, CountArray recvcounts,
                     const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm);
Error reduce_scatter_block(Context& context, const void* sendbuf, void* recvbuf,
                           MPI_Count recvcount, const datatype::Datatype& datatype, coll::Op& op,
                           comm::Communicator& comm);
Error reduce_local(Context& context, const void* inbuf, void* inoutbuf, MPI_Count count,
                   const datatype::Datatype& datatype, coll::Op& op);

// The steps of an operation. An error: nothing has been done, and the steps are not to be.
namespace plan {

Error barrier(Context& context, coll::Steps& steps);
Error bcast(Context& context, coll::Steps& steps, void* buffer, MPI_Count count,
            const datatype::Datatype& datatype, int root);
Error gather(Context& context, coll::Steps& steps, const void* sendbuf, MPI_Count sendcount,
             const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
             const datatype::Datatype& recvtype, int root);
Error gatherv(Context& context, coll::Steps& steps, const void* sendbuf, MPI_Count sendcount,
              const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
              CountArray displs, const datatype::Datatype& recvtype, int root);
Error scatter(Context& context, coll::Steps& steps, const void* sendbuf, MPI_Count sendcount,
              const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
              const datatype::Datatype& recvtype, int root);
Error scatterv(Context& context, coll::Steps& steps, const void* sendbuf, CountArray sendcounts,
               CountArray displs, const datatype::Datatype& sendtype, void* recvbuf,
               MPI_Count recvcount, const datatype::Datatype& recvtype, int root);
Error allgather(Context& context, coll::Steps& steps, const void* sendbuf, MPI_Count sendcount,
                const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
                const datatype::Datatype& recvtype);
Error allgatherv(Context& context, coll::Steps& steps, const void* sendbuf, MPI_Count sendcount,
                 const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
                 CountArray displs, const datatype::Datatype& recvtype);
Error alltoall(Context& context, coll::Steps& steps, const void* sendbuf, MPI_Count sendcount,
               const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
               const datatype::Datatype& recvtype);
Error alltoallv(Context& context, coll::Steps& steps, const void* sendbuf, CountArray sendcounts,
                CountArray sdispls, const datatype::Datatype& sendtype, void* recvbuf,
                CountArray recvcounts, CountArray rdispls, const datatype::Datatype& recvtype);
Error alltoallw(Context& context, coll::Steps& steps, const void* sendbuf, CountArray sendcounts,
                CountArray sdispls, const MPI_Datatype sendtypes[], void* recvbuf,
                CountArray recvcounts, CountArray rdispls, const MPI_Datatype recvtypes[]);
Error allreduce(Context& context, coll::Steps& steps, const void* sendbuf, void* recvbuf,
                MPI_Count count, const datatype::Datatype& datatype, coll::Op& op);
Error reduce(Context& context, coll::Steps& steps, const void* sendbuf, void* recvbuf,
             MPI_Count count, const datatype::Datatype& datatype, coll::Op& op, int root);
Error scan(Context& context, coll::Steps& steps, const void* sendbuf, void* recvbuf,
           MPI_Count count, const datatype::Datatype& datatype, coll::Op& op);
Error exscan(Context& context, coll::Steps& steps, const void* sendbuf, void* recvbuf,
             MPI_Count count, const datatype::Datatype& datatype, coll::Op& op);
Error reduce_scatter(Context& context, coll::Steps& steps, const void* sendbuf, void* recvbuf,
                     CountArray recvcounts, const datatype::Datatype& datatype, coll::Op& op);
Error reduce_scatter_block(Context& context, coll::Steps& steps, const void* sendbuf, void* recvbuf,
                           MPI_Count recvcount, const datatype::Datatype& datatype, coll::Op& op);

} // namespace plan

} // namespace warren::mpi
