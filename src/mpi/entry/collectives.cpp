#include "mpi/entry/collectives.hpp"

#include <vector>

#include "mpi/coll/choice.hpp"
#include "mpi/coll/collectives.hpp"
#include "mpi/entry/block_lists.hpp"
#include "mpi/entry/collective_checks.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/requests.hpp"

namespace warren::mpi {

namespace {

using coll::Blocks;
using coll::Collectives;
using coll::Steps;
using message::Buffer;

// A rank must receive as many bytes from itself as it sends to itself.
Error check_own(const Buffer& sent, const Buffer& received) {
    if (sent.bytes() == received.bytes()) [[likely]] {
        return {};
    }
    return fail(MPI_ERR_TRUNCATE,
                "this rank sends itself %lld bytes and receives %lld of itself: send and receive "
                "buffers don't match",
                static_cast<long long>(sent.bytes()), static_cast<long long>(received.bytes()));
}

// The block that a rank sends to itself, checked while steps are planned. After an error the rank
// still takes part, so that the others learn of it.
Buffer own_part(Steps& steps, const Buffer& sent, const Buffer& received) {
    if (Error error = check_own(sent, received)) {
        steps.refuse(error);
        return received;
    }
    return sent;
}

void alltoall_checked(Steps& steps, const Blocks& out, const Blocks& in) {
    if (!steps.inter()) {
        if (Error error = check_own(out[steps.rank()], in[steps.rank()])) {
            steps.refuse(error);
            return coll::alltoall(steps, in, in);
        }
    }
    coll::alltoall(steps, out, in);
}

} // namespace

// --- In shared memory where that is shorter

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
    if (comm.inter()) [[unlikely]] {
        return do_steps(context, comm, [&](Steps& steps) {
            return plan::gather(context, steps, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                recvtype, root);
        });
    }
    const Blocks blocks(buffer_of(recvbuf, recvcount, recvtype));
    const Buffer own =
        sendbuf == MPI_IN_PLACE ? blocks[comm.rank()] : buffer_of(sendbuf, sendcount, sendtype);
    Collectives collectives = collectives_of(context, comm);
    if (comm.rank() == root) {
        if (Error error = check_own(own, blocks[root])) {
            return collectives.refuse(
                error, [&](Steps& steps) { coll::gather(steps, blocks[root], blocks, root); });
        }
    }
    return collectives.gather(own, blocks, root);
}

Error scatter(Context& context, const void* sendbuf, MPI_Count sendcount,
              const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
              const datatype::Datatype& recvtype, int root, comm::Communicator& comm) {
    if (comm.inter()) [[unlikely]] {
        return do_steps(context, comm, [&](Steps& steps) {
            return plan::scatter(context, steps, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                 recvtype, root);
        });
    }
    const Blocks blocks(buffer_of(sendbuf, sendcount, sendtype));
    const Buffer own =
        recvbuf == MPI_IN_PLACE ? blocks[comm.rank()] : buffer_of(recvbuf, recvcount, recvtype);
    Collectives collectives = collectives_of(context, comm);
    if (comm.rank() == root) {
        if (Error error = check_own(blocks[root], own)) {
            return collectives.refuse(
                error, [&](Steps& steps) { coll::scatter(steps, blocks, blocks[root], root); });
        }
    }
    return collectives.scatter(blocks, own, root);
}

Error allgather(Context& context, const void* sendbuf, MPI_Count sendcount,
                const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
                const datatype::Datatype& recvtype, comm::Communicator& comm) {
    if (comm.inter()) [[unlikely]] {
        return do_steps(context, comm, [&](Steps& steps) {
            return plan::allgather(context, steps, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                   recvtype);
        });
    }
    const Blocks blocks(buffer_of(recvbuf, recvcount, recvtype));
    Collectives collectives = collectives_of(context, comm);
    const Buffer place = blocks[comm.rank()];
    const Buffer own = sendbuf == MPI_IN_PLACE ? place : buffer_of(sendbuf, sendcount, sendtype);
    if (Error error = check_own(own, place)) {
        return collectives.refuse(error,
                                  [&](Steps& steps) { coll::allgather(steps, place, blocks); });
    }
    return collectives.allgather(own, blocks);
}

Error allgatherv(Context& context, const void* sendbuf, MPI_Count sendcount,
                 const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
                 CountArray displs, const datatype::Datatype& recvtype, comm::Communicator& comm) {
    if (comm.inter()) [[unlikely]] {
        return do_steps(context, comm, [&](Steps& steps) {
            return plan::allgatherv(context, steps, sendbuf, sendcount, sendtype, recvbuf,
                                    recvcounts, displs, recvtype);
        });
    }
    std::vector<Buffer> list;
    if (Error error =
            list_blocks(comm.size(), recvbuf, recvcounts, displs, recvtype, "recvcounts", list)) {
        return error;
    }
    Collectives collectives = collectives_of(context, comm);
    const Buffer& place = list[static_cast<std::size_t>(comm.rank())];
    const Buffer own = sendbuf == MPI_IN_PLACE ? place : buffer_of(sendbuf, sendcount, sendtype);
    if (Error error = check_own(own, place)) {
        return collectives.refuse(
            error, [&](Steps& steps) { coll::allgatherv(steps, place, Blocks(list.data())); });
    }
    return collectives.allgatherv(own, Blocks(list.data()));
}

Error alltoall(Context& context, const void* sendbuf, MPI_Count sendcount,
               const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
               const datatype::Datatype& recvtype, comm::Communicator& comm) {
    if (comm.inter()) [[unlikely]] {
        return do_steps(context, comm, [&](Steps& steps) {
            return plan::alltoall(context, steps, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                  recvtype);
        });
    }
    const Blocks in(buffer_of(recvbuf, recvcount, recvtype));
    const Blocks out =
        sendbuf == MPI_IN_PLACE ? in : Blocks(buffer_of(sendbuf, sendcount, sendtype));
    Collectives collectives = collectives_of(context, comm);
    if (Error error = check_own(out[comm.rank()], in[comm.rank()])) {
        return collectives.refuse(error, [&](Steps& steps) { coll::alltoall(steps, in, in); });
    }
    return collectives.alltoall(out, in);
}

namespace plan {

Error barrier(Context&, Steps& steps) {
    coll::barrier(steps);
    return {};
}

Error bcast(Context&, Steps& steps, void* buffer, MPI_Count count,
            const datatype::Datatype& datatype, int root) {
    coll::bcast(steps, {buffer, count, &datatype}, root);
    return {};
}

Error gather(Context&, Steps& steps, const void* sendbuf, MPI_Count sendcount,
             const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
             const datatype::Datatype& recvtype, int root) {
    const Blocks blocks(buffer_of(recvbuf, recvcount, recvtype));
    Buffer own =
        sendbuf == MPI_IN_PLACE ? blocks[steps.rank()] : buffer_of(sendbuf, sendcount, sendtype);
    if (!steps.inter() && steps.rank() == root) {
        own = own_part(steps, own, blocks[root]);
    }
    coll::gather(steps, own, blocks, root);
    return {};
}

Error gatherv(Context&, Steps& steps, const void* sendbuf, MPI_Count sendcount,
              const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
              CountArray displs, const datatype::Datatype& recvtype, int root) {
    std::vector<Buffer> list;
    if (is_root(steps.communicator(), root)) {
        if (Error error = list_blocks(steps.peers(), recvbuf, recvcounts, displs, recvtype,
                                      "recvcounts", list)) {
            return error;
        }
    }
    Buffer own = sendbuf == MPI_IN_PLACE ? list[static_cast<std::size_t>(root)]
                                         : buffer_of(sendbuf, sendcount, sendtype);
    if (!steps.inter() && steps.rank() == root) {
        own = own_part(steps, own, list[static_cast<std::size_t>(root)]);
    }
    coll::gatherv(steps, own, Blocks(list.data()), root);
    return {};
}

Error scatter(Context&, Steps& steps, const void* sendbuf, MPI_Count sendcount,
              const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
              const datatype::Datatype& recvtype, int root) {
    const Blocks blocks(buffer_of(sendbuf, sendcount, sendtype));
    Buffer own =
        recvbuf == MPI_IN_PLACE ? blocks[steps.rank()] : buffer_of(recvbuf, recvcount, recvtype);
    if (!steps.inter() && steps.rank() == root) {
        own = own_part(steps, own, blocks[root]);
    }
    coll::scatter(steps, blocks, own, root);
    return {};
}

Error scatterv(Context&, Steps& steps, const void* sendbuf, CountArray sendcounts,
               CountArray displs, const datatype::Datatype& sendtype, void* recvbuf,
               MPI_Count recvcount, const datatype::Datatype& recvtype, int root) {
    std::vector<Buffer> list;
    if (is_root(steps.communicator(), root)) {
        if (Error error = list_blocks(steps.peers(), const_cast<void*>(sendbuf), sendcounts, displs,
                                      sendtype, "sendcounts", list)) {
            return error;
        }
    }
    Buffer own = recvbuf == MPI_IN_PLACE ? list[static_cast<std::size_t>(root)]
                                         : buffer_of(recvbuf, recvcount, recvtype);
    if (!steps.inter() && steps.rank() == root) {
        own = own_part(steps, own, list[static_cast<std::size_t>(root)]);
    }
    coll::scatterv(steps, Blocks(list.data()), own, root);
    return {};
}

Error allgather(Context&, Steps& steps, const void* sendbuf, MPI_Count sendcount,
                const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
                const datatype::Datatype& recvtype) {
    if (Error error = check_not_in_place(steps, sendbuf)) {
        return error;
    }
    const Blocks blocks(buffer_of(recvbuf, recvcount, recvtype));
    if (steps.inter()) {
        const std::vector<Buffer> own(static_cast<std::size_t>(steps.peers()),
                                      buffer_of(sendbuf, sendcount, sendtype));
        coll::alltoall(steps, Blocks(own.data()), blocks);
        return {};
    }
    const Buffer place = blocks[steps.rank()];
    const Buffer own = sendbuf == MPI_IN_PLACE
                           ? place
                           : own_part(steps, buffer_of(sendbuf, sendcount, sendtype), place);
    coll::allgather(steps, own, blocks);
    return {};
}

Error allgatherv(Context&, Steps& steps, const void* sendbuf, MPI_Count sendcount,
                 const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
                 CountArray displs, const datatype::Datatype& recvtype) {
    std::vector<Buffer> list;
    if (Error error =
            list_blocks(steps.peers(), recvbuf, recvcounts, displs, recvtype, "recvcounts", list)) {
        return error;
    }
    if (Error error = check_not_in_place(steps, sendbuf)) {
        return error;
    }
    if (steps.inter()) {
        const std::vector<Buffer> own(static_cast<std::size_t>(steps.peers()),
                                      buffer_of(sendbuf, sendcount, sendtype));
        coll::alltoall(steps, Blocks(own.data()), Blocks(list.data()));
        return {};
    }
    const Buffer& place = list[static_cast<std::size_t>(steps.rank())];
    const Buffer own = sendbuf == MPI_IN_PLACE
                           ? place
                           : own_part(steps, buffer_of(sendbuf, sendcount, sendtype), place);
    coll::allgatherv(steps, own, Blocks(list.data()));
    return {};
}

Error alltoall(Context&, Steps& steps, const void* sendbuf, MPI_Count sendcount,
               const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
               const datatype::Datatype& recvtype) {
    if (Error error = check_not_in_place(steps, sendbuf)) {
        return error;
    }
    const Blocks in(buffer_of(recvbuf, recvcount, recvtype));
    if (sendbuf == MPI_IN_PLACE) {
        coll::alltoall_replace(steps, in);
        return {};
    }
    alltoall_checked(steps, Blocks(buffer_of(sendbuf, sendcount, sendtype)), in);
    return {};
}

Error alltoallv(Context&, Steps& steps, const void* sendbuf, CountArray sendcounts,
                CountArray sdispls, const datatype::Datatype& sendtype, void* recvbuf,
                CountArray recvcounts, CountArray rdispls, const datatype::Datatype& recvtype) {
    if (Error error = check_not_in_place(steps, sendbuf)) {
        return error;
    }
    std::vector<Buffer> in;
    if (Error error =
            list_blocks(steps.peers(), recvbuf, recvcounts, rdispls, recvtype, "recvcounts", in)) {
        return error;
    }
    if (sendbuf == MPI_IN_PLACE) {
        coll::alltoall_replace(steps, Blocks(in.data()));
        return {};
    }
    std::vector<Buffer> out;
    if (Error error = list_blocks(steps.peers(), const_cast<void*>(sendbuf), sendcounts, sdispls,
                                  sendtype, "sendcounts", out)) {
        return error;
    }
    alltoall_checked(steps, Blocks(out.data()), Blocks(in.data()));
    return {};
}

Error alltoallw(Context& context, Steps& steps, const void* sendbuf, CountArray sendcounts,
                CountArray sdispls, const MPI_Datatype sendtypes[], void* recvbuf,
                CountArray recvcounts, CountArray rdispls, const MPI_Datatype recvtypes[]) {
    if (Error error = check_not_in_place(steps, sendbuf)) {
        return error;
    }
    std::vector<Buffer> in;
    if (Error error = list_typed_blocks(context, steps, steps.peers(), recvbuf, recvcounts, rdispls,
                                        recvtypes, "recvtypes", in)) {
        return error;
    }
    if (sendbuf == MPI_IN_PLACE) {
        coll::alltoall_replace(steps, Blocks(in.data()));
        return {};
    }
    std::vector<Buffer> out;
    if (Error error = list_typed_blocks(context, steps, steps.peers(), const_cast<void*>(sendbuf),
                                        sendcounts, sdispls, sendtypes, "sendtypes", out)) {
        return error;
    }
    alltoall_checked(steps, Blocks(out.data()), Blocks(in.data()));
    return {};
}

} // namespace plan

} // namespace warren::mpi
