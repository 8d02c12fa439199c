#include "mpi/collectives.hpp"

#include <vector>

#include "coll/collectives.hpp"
#include "coll/scratch.hpp"
#include "mpi/context.hpp"

namespace warren::mpi {

namespace {

using coll::Blocks;
using coll::Collectives;
using message::Buffer;

Buffer buffer_of(const void* base, MPI_Count count, const datatype::Datatype& type) {
    return {const_cast<void*>(base), count, &type};
}

Collectives collectives_of(Context& context, comm::Communicator& comm) {
    return Collectives(context.messages, comm);
}

Error negative(const char* what, int rank, MPI_Count value) {
    return fail(MPI_ERR_COUNT, "%s[%d] is %lld: a count cannot be negative", what, rank,
                static_cast<long long>(value));
}

// The blocks that arrays of counts and displacements (in elements) describe.
Error list_blocks(const comm::Communicator& comm, void* base, const CountArray& counts,
                  const CountArray& displs, const datatype::Datatype& type, const char* what,
                  std::vector<Buffer>& blocks) {
    blocks.resize(static_cast<std::size_t>(comm.size()));
    for (int rank = 0; rank < comm.size(); ++rank) {
        if (counts[rank] < 0) {
            return negative(what, rank, counts[rank]);
        }
        blocks[static_cast<std::size_t>(rank)] = buffer_of(
            static_cast<std::byte*>(base) + displs[rank] * type.extent, counts[rank], type);
    }
    return {};
}

// The same with displacements in bytes and a datatype per rank.
Error list_typed_blocks(Context& context, const comm::Communicator& comm, void* base,
                        const CountArray& counts, const CountArray& displs,
                        const MPI_Datatype types[], const char* what, std::vector<Buffer>& blocks) {
    blocks.resize(static_cast<std::size_t>(comm.size()));
    for (int rank = 0; rank < comm.size(); ++rank) {
        if (counts[rank] < 0) {
            return negative(what, rank, counts[rank]);
        }
        const datatype::Datatype* type = context.datatypes.find(types[rank]);
        if (type == nullptr || !type->committed) {
            return fail(MPI_ERR_TYPE, "the datatype for rank %d in %s is %s", rank, what,
                        type == nullptr ? "not a datatype" : "not committed");
        }
        blocks[static_cast<std::size_t>(rank)] =
            buffer_of(static_cast<std::byte*>(base) + displs[rank], counts[rank], *type);
    }
    return {};
}

// The memory that a reduction reads, after the check that operation and datatype fit and that the
// two buffers differ.
Error check_reduction(const void* sendbuf, const void* recvbuf, MPI_Count count,
                      const datatype::Datatype& datatype, const coll::Op& op, const void*& in) {
    if (Error error = op.check(datatype)) {
        return error;
    }
    if (sendbuf == recvbuf && count > 0 && datatype.size > 0 && sendbuf != MPI_BOTTOM) {
        return fail(MPI_ERR_BUFFER, "sendbuf and recvbuf are the same: pass MPI_IN_PLACE");
    }
    in = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    return {};
}

} // namespace

Error barrier(Context& context, comm::Communicator& comm) {
    return collectives_of(context, comm).barrier();
}

Error bcast(Context& context, void* buffer, MPI_Count count, const datatype::Datatype& datatype,
            int root, comm::Communicator& comm) {
    return collectives_of(context, comm).bcast({buffer, count, &datatype}, root);
}

Error gather(Context& context, const void* sendbuf, MPI_Count sendcount,
             const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
             const datatype::Datatype& recvtype, int root, comm::Communicator& comm) {
    const Blocks blocks(buffer_of(recvbuf, recvcount, recvtype));
    const Buffer own =
        sendbuf == MPI_IN_PLACE ? blocks[comm.rank()] : buffer_of(sendbuf, sendcount, sendtype);
    return collectives_of(context, comm).gather(own, blocks, root);
}

Error gatherv(Context& context, const void* sendbuf, MPI_Count sendcount,
              const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
              CountArray displs, const datatype::Datatype& recvtype, int root,
              comm::Communicator& comm) {
    std::vector<Buffer> list;
    if (comm.rank() == root) {
        if (Error error =
                list_blocks(comm, recvbuf, recvcounts, displs, recvtype, "recvcounts", list)) {
            return error;
        }
    }
    const Buffer own = sendbuf == MPI_IN_PLACE ? list[static_cast<std::size_t>(root)]
                                               : buffer_of(sendbuf, sendcount, sendtype);
    return collectives_of(context, comm).gatherv(own, Blocks(list.data()), root);
}

Error scatter(Context& context, const void* sendbuf, MPI_Count sendcount,
              const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
              const datatype::Datatype& recvtype, int root, comm::Communicator& comm) {
    const Blocks blocks(buffer_of(sendbuf, sendcount, sendtype));
    const Buffer own =
        recvbuf == MPI_IN_PLACE ? blocks[comm.rank()] : buffer_of(recvbuf, recvcount, recvtype);
    return collectives_of(context, comm).scatter(blocks, own, root);
}

Error scatterv(Context& context, const void* sendbuf, CountArray sendcounts, CountArray displs,
               const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
               const datatype::Datatype& recvtype, int root, comm::Communicator& comm) {
    std::vector<Buffer> list;
    if (comm.rank() == root) {
        if (Error error = list_blocks(comm, const_cast<void*>(sendbuf), sendcounts, displs,
                                      sendtype, "sendcounts", list)) {
            return error;
        }
    }
    const Buffer own = recvbuf == MPI_IN_PLACE ? list[static_cast<std::size_t>(root)]
                                               : buffer_of(recvbuf, recvcount, recvtype);
    return collectives_of(context, comm).scatterv(Blocks(list.data()), own, root);
}

Error allgather(Context& context, const void* sendbuf, MPI_Count sendcount,
                const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
                const datatype::Datatype& recvtype, comm::Communicator& comm) {
    const Blocks blocks(buffer_of(recvbuf, recvcount, recvtype));
    if (sendbuf != MPI_IN_PLACE) {
        if (Error error =
                coll::copy(buffer_of(sendbuf, sendcount, sendtype), blocks[comm.rank()])) {
            return error;
        }
    }
    return collectives_of(context, comm).allgather(blocks);
}

Error allgatherv(Context& context, const void* sendbuf, MPI_Count sendcount,
                 const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
                 CountArray displs, const datatype::Datatype& recvtype, comm::Communicator& comm) {
    std::vector<Buffer> list;
    if (Error error =
            list_blocks(comm, recvbuf, recvcounts, displs, recvtype, "recvcounts", list)) {
        return error;
    }
    if (sendbuf != MPI_IN_PLACE) {
        if (Error error = coll::copy(buffer_of(sendbuf, sendcount, sendtype),
                                     list[static_cast<std::size_t>(comm.rank())])) {
            return error;
        }
    }
    return collectives_of(context, comm).allgatherv(Blocks(list.data()));
}

Error alltoall(Context& context, const void* sendbuf, MPI_Count sendcount,
               const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
               const datatype::Datatype& recvtype, comm::Communicator& comm) {
    const Blocks in(buffer_of(recvbuf, recvcount, recvtype));
    if (sendbuf == MPI_IN_PLACE) {
        return collectives_of(context, comm).alltoall_in_place(in);
    }
    return collectives_of(context, comm)
        .alltoall(Blocks(buffer_of(sendbuf, sendcount, sendtype)), in);
}

Error alltoallv(Context& context, const void* sendbuf, CountArray sendcounts, CountArray sdispls,
                const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
                CountArray rdispls, const datatype::Datatype& recvtype, comm::Communicator& comm) {
    std::vector<Buffer> in;
    if (Error error = list_blocks(comm, recvbuf, recvcounts, rdispls, recvtype, "recvcounts", in)) {
        return error;
    }
    if (sendbuf == MPI_IN_PLACE) {
        return collectives_of(context, comm).alltoall_in_place(Blocks(in.data()));
    }
    std::vector<Buffer> out;
    if (Error error = list_blocks(comm, const_cast<void*>(sendbuf), sendcounts, sdispls, sendtype,
                                  "sendcounts", out)) {
        return error;
    }
    return collectives_of(context, comm).alltoall(Blocks(out.data()), Blocks(in.data()));
}

Error alltoallw(Context& context, const void* sendbuf, CountArray sendcounts, CountArray sdispls,
                const MPI_Datatype sendtypes[], void* recvbuf, CountArray recvcounts,
                CountArray rdispls, const MPI_Datatype recvtypes[], comm::Communicator& comm) {
    std::vector<Buffer> in;
    if (Error error = list_typed_blocks(context, comm, recvbuf, recvcounts, rdispls, recvtypes,
                                        "recvtypes", in)) {
        return error;
    }
    if (sendbuf == MPI_IN_PLACE) {
        return collectives_of(context, comm).alltoall_in_place(Blocks(in.data()));
    }
    std::vector<Buffer> out;
    if (Error error = list_typed_blocks(context, comm, const_cast<void*>(sendbuf), sendcounts,
                                        sdispls, sendtypes, "sendtypes", out)) {
        return error;
    }
    return collectives_of(context, comm).alltoall(Blocks(out.data()), Blocks(in.data()));
}

// --- Reductions

Error allreduce(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
                const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm) {
    const void* in = nullptr;
    if (Error error = check_reduction(sendbuf, recvbuf, count, datatype, op, in)) {
        return error;
    }
    return collectives_of(context, comm).allreduce(in, recvbuf, count, datatype, op);
}

Error reduce(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
             const datatype::Datatype& datatype, coll::Op& op, int root, comm::Communicator& comm) {
    const void* in = sendbuf;
    const bool receives = comm.rank() == root;
    if (Error error = check_reduction(sendbuf, receives ? recvbuf : nullptr, receives ? count : 0,
                                      datatype, op, in)) {
        return error;
    }
    return collectives_of(context, comm).reduce(in, recvbuf, count, datatype, op, root);
}

Error scan(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
           const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm) {
    const void* in = nullptr;
    if (Error error = check_reduction(sendbuf, recvbuf, count, datatype, op, in)) {
        return error;
    }
    return collectives_of(context, comm).scan(in, recvbuf, count, datatype, op, false);
}

Error exscan(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
             const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm) {
    const void* in = nullptr;
    if (Error error = check_reduction(sendbuf, recvbuf, count, datatype, op, in)) {
        return error;
    }
    return collectives_of(context, comm).scan(in, recvbuf, count, datatype, op, true);
}

Error reduce_scatter(Context& context, const void* sendbuf, void* recvbuf, CountArray recvcounts,
                     const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm) {
    std::vector<MPI_Count> counts(static_cast<std::size_t>(comm.size()));
    MPI_Count total = 0;
    for (int rank = 0; rank < comm.size(); ++rank) {
        if (recvcounts[rank] < 0) {
            return negative("recvcounts", rank, recvcounts[rank]);
        }
        counts[static_cast<std::size_t>(rank)] = recvcounts[rank];
        total += recvcounts[rank];
    }
    const void* in = nullptr;
    if (Error error = check_reduction(sendbuf, recvbuf, total, datatype, op, in)) {
        return error;
    }
    return collectives_of(context, comm).reduce_scatter(in, recvbuf, counts.data(), datatype, op);
}

Error reduce_scatter_block(Context& context, const void* sendbuf, void* recvbuf,
                           MPI_Count recvcount, const datatype::Datatype& datatype, coll::Op& op,
                           comm::Communicator& comm) {
    const void* in = nullptr;
    if (Error error = check_reduction(sendbuf, recvbuf, recvcount, datatype, op, in)) {
        return error;
    }
    const std::vector<MPI_Count> counts(static_cast<std::size_t>(comm.size()), recvcount);
    return collectives_of(context, comm).reduce_scatter(in, recvbuf, counts.data(), datatype, op);
}

Error reduce_local(Context& context, const void* inbuf, void* inoutbuf, MPI_Count count,
                   const datatype::Datatype& datatype, coll::Op& op) {
    if (Error error = op.check(datatype)) {
        return error;
    }
    if (op.predefined()) {
        op.apply(inbuf, inoutbuf, count, datatype);
    } else {
        context.rank.lock.unlock();
        op.apply(inbuf, inoutbuf, count, datatype);
        context.rank.lock.lock();
    }
    return {};
}

} // namespace warren::mpi
