#include "mpi/entry/collectives.hpp"

#include <vector>

#include "mpi/coll/choice.hpp"
#include "mpi/coll/collectives.hpp"
#include "mpi/entry/block_lists.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/requests.hpp"

namespace warren::mpi {

namespace {

using coll::Blocks;
using coll::Collectives;
using coll::Steps;
using message::Buffer;

Collectives collectives_of(Context& context, comm::Communicator& comm) {
    if (const FibreFunctions* functions = fibres();
        functions != nullptr && // rare: by option
        functions->at_collective != nullptr && comm.size() == static_cast<int>(context.rank.size)) {
        functions->at_collective();
    }
    return Collectives(context.messages, comm);
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

// The standard has no MPI_IN_PLACE on intercommunicators.
Error check_not_in_place(const Steps& steps, const void* sendbuf) {
    return sendbuf != MPI_IN_PLACE || !steps.inter()
               ? Error()
               : fail(MPI_ERR_BUFFER, "MPI_IN_PLACE has no meaning on an intercommunicator");
}

Error check_intra(const comm::Communicator& comm) {
    return !comm.inter() ? Error() : fail(MPI_ERR_COMM, "an intercommunicator has no scans");
}

// The elements of each block of a scattered reduction, and of all.
Error list_counts(int number, const CountArray& recvcounts, std::vector<MPI_Count>& counts,
                  MPI_Count& total) {
    counts.resize(static_cast<std::size_t>(number));
    for (int rank = 0; rank < number; ++rank) {
        if (recvcounts[rank] < 0) {
            return negative_count("recvcounts", rank, recvcounts[rank]);
        }
        counts[static_cast<std::size_t>(rank)] = recvcounts[rank];
        total += recvcounts[rank];
    }
    return {};
}

bool is_root(const comm::Communicator& comm, int root) {
    return comm.inter() ? root == MPI_ROOT : root == comm.rank();
}

// Checks a reduction to one rank. In the root's group of an intercommunicator, arguments count at
// the root only.
Error check_reduction_to(int root, const comm::Communicator& comm, const void* sendbuf,
                         const void* recvbuf, MPI_Count count, const datatype::Datatype& datatype,
                         const coll::Op& op, const void*& in) {
    if (root == MPI_PROC_NULL) {
        return {};
    }
    const bool receives = is_root(comm, root);
    return check_reduction(sendbuf, receives ? recvbuf : nullptr, receives ? count : 0, datatype,
                           op, in);
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

Error reduce(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
             const datatype::Datatype& datatype, coll::Op& op, int root, comm::Communicator& comm) {
    const void* in = sendbuf;
    if (Error error = check_reduction_to(root, comm, sendbuf, recvbuf, count, datatype, op, in)) {
        return error;
    }
    return collectives_of(context, comm).reduce(in, recvbuf, count, datatype, op, root);
}

Error allreduce(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
                const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm) {
    if (comm.inter()) [[unlikely]] {
        return do_steps(context, comm, [&](Steps& steps) {
            return plan::allreduce(context, steps, sendbuf, recvbuf, count, datatype, op);
        });
    }
    const void* in = nullptr;
    if (Error error = check_reduction(sendbuf, recvbuf, count, datatype, op, in)) {
        return error;
    }
    return collectives_of(context, comm).allreduce(in, recvbuf, count, datatype, op);
}

namespace {

Error scan_any(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
               const datatype::Datatype& datatype, const coll::Op& op, comm::Communicator& comm,
               bool exclusive) {
    if (Error error = check_intra(comm)) {
        return error;
    }
    const void* in = nullptr;
    if (Error error = check_reduction(sendbuf, recvbuf, count, datatype, op, in)) {
        return error;
    }
    return collectives_of(context, comm).scan({count, datatype, op}, in, recvbuf, exclusive);
}

} // namespace

Error scan(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
           const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm) {
    return scan_any(context, sendbuf, recvbuf, count, datatype, op, comm, false);
}

Error exscan(Context& context, const void* sendbuf, void* recvbuf, MPI_Count count,
             const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm) {
    return scan_any(context, sendbuf, recvbuf, count, datatype, op, comm, true);
}

Error reduce_scatter(Context& context, const void* sendbuf, void* recvbuf, CountArray recvcounts,
                     const datatype::Datatype& datatype, coll::Op& op, comm::Communicator& comm) {
    if (comm.inter()) [[unlikely]] {
        return do_steps(context, comm, [&](Steps& steps) {
            return plan::reduce_scatter(context, steps, sendbuf, recvbuf, recvcounts, datatype, op);
        });
    }
    std::vector<MPI_Count> counts;
    MPI_Count total = 0;
    if (Error error = list_counts(comm.size(), recvcounts, counts, total)) {
        return error;
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
    if (comm.inter()) [[unlikely]] {
        return do_steps(context, comm, [&](Steps& steps) {
            return plan::reduce_scatter_block(context, steps, sendbuf, recvbuf, recvcount, datatype,
                                              op);
        });
    }
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
    if (inbuf == inoutbuf && count != 0 && datatype.size != 0) {
        return fail(MPI_ERR_BUFFER, "inbuf and inoutbuf are the same memory");
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

// --- Reductions

Error allreduce(Context&, Steps& steps, const void* sendbuf, void* recvbuf, MPI_Count count,
                const datatype::Datatype& datatype, coll::Op& op) {
    if (Error error = check_not_in_place(steps, sendbuf)) {
        return error;
    }
    const void* in = nullptr;
    if (Error error = check_reduction(sendbuf, recvbuf, count, datatype, op, in)) {
        return error;
    }
    coll::allreduce(steps, {count, datatype, op}, in, recvbuf);
    return {};
}

Error reduce(Context&, Steps& steps, const void* sendbuf, void* recvbuf, MPI_Count count,
             const datatype::Datatype& datatype, coll::Op& op, int root) {
    const void* in = sendbuf;
    if (Error error = check_reduction_to(root, steps.communicator(), sendbuf, recvbuf, count,
                                         datatype, op, in)) {
        return error;
    }
    coll::reduce(steps, {count, datatype, op}, in, recvbuf, root);
    return {};
}

namespace {

Error scan_any(Steps& steps, const void* sendbuf, void* recvbuf, MPI_Count count,
               const datatype::Datatype& datatype, const coll::Op& op, bool exclusive) {
    if (Error error = check_intra(steps.communicator())) {
        return error;
    }
    const void* in = nullptr;
    if (Error error = check_reduction(sendbuf, recvbuf, count, datatype, op, in)) {
        return error;
    }
    coll::scan(steps, {count, datatype, op}, in, recvbuf, exclusive);
    return {};
}

} // namespace

Error scan(Context&, Steps& steps, const void* sendbuf, void* recvbuf, MPI_Count count,
           const datatype::Datatype& datatype, coll::Op& op) {
    return scan_any(steps, sendbuf, recvbuf, count, datatype, op, false);
}

Error exscan(Context&, Steps& steps, const void* sendbuf, void* recvbuf, MPI_Count count,
             const datatype::Datatype& datatype, coll::Op& op) {
    return scan_any(steps, sendbuf, recvbuf, count, datatype, op, true);
}

Error reduce_scatter(Context&, Steps& steps, const void* sendbuf, void* recvbuf,
                     CountArray recvcounts, const datatype::Datatype& datatype, coll::Op& op) {
    if (Error error = check_not_in_place(steps, sendbuf)) {
        return error;
    }
    std::vector<MPI_Count> counts;
    MPI_Count total = 0;
    if (Error error = list_counts(steps.size(), recvcounts, counts, total)) {
        return error;
    }
    const void* in = nullptr;
    if (Error error = check_reduction(sendbuf, recvbuf, total, datatype, op, in)) {
        return error;
    }
    coll::reduce_scatter(steps, in, recvbuf, counts.data(), datatype, op);
    return {};
}

Error reduce_scatter_block(Context&, Steps& steps, const void* sendbuf, void* recvbuf,
                           MPI_Count recvcount, const datatype::Datatype& datatype, coll::Op& op) {
    if (Error error = check_not_in_place(steps, sendbuf)) {
        return error;
    }
    const void* in = nullptr;
    if (Error error = check_reduction(sendbuf, recvbuf, recvcount, datatype, op, in)) {
        return error;
    }
    const std::vector<MPI_Count> counts(static_cast<std::size_t>(steps.size()), recvcount);
    coll::reduce_scatter(steps, in, recvbuf, counts.data(), datatype, op);
    return {};
}

} // namespace plan

} // namespace warren::mpi
