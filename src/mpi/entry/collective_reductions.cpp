// The reductions among the collective operations: declared in collectives.hpp.
#include <vector>

#include "mpi/coll/choice.hpp"
#include "mpi/coll/collectives.hpp"
#include "mpi/entry/block_lists.hpp"
#include "mpi/entry/collective_checks.hpp"
#include "mpi/entry/collectives.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/requests.hpp"

namespace warren::mpi {

namespace {

using coll::Steps;

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

// The elements of each block of a scattered reduction, and of all.
Error list_counts(int number, const CountArray& recvcounts, std::vector<MPI_Count>& counts,
                  MPI_Count& total) {
    if (recvcounts.null()) {
        return fail(MPI_ERR_ARG, "recvcounts is a null pointer");
    }
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
