#include "mpi/entry/neighbourhood_collectives.hpp"

#include <vector>

#include "base/page.hpp"
#include "mpi/coll/choice.hpp"
#include "mpi/comm/topology.hpp"
#include "mpi/entry/block_lists.hpp"
#include "mpi/entry/requests.hpp"

namespace warren::mpi::plan {

namespace {

using coll::Blocks;
using coll::Steps;
using message::Buffer;

Error check_topology(const Steps& steps) {
    return steps.communicator().topology != nullptr
               ? Error()
               : fail(MPI_ERR_TOPOLOGY, "the communicator has no topology");
}

int sources(const Steps& steps) {
    return static_cast<int>(steps.communicator().topology->sources.size());
}

int destinations(const Steps& steps) {
    return static_cast<int>(steps.communicator().topology->destinations.size());
}

Error check_array(int neighbours, const void* array, const char* name) {
    return neighbours == 0 || array != nullptr
               ? Error()
               : fail(MPI_ERR_ARG, "%s is null, with %d neighbours", name, neighbours);
}

// A buffer of `count` elements for each or all of the neighbours.
Error check_buffer(int neighbours, const void* base, MPI_Count count,
                   const datatype::Datatype& type, const char* name) {
    MPI_Count bytes;
    if (!type.bytes_of(count, bytes)) {
        return fail(MPI_ERR_COUNT, "%lld elements of %s are more bytes than can be counted",
                    static_cast<long long>(count), name);
    }
    // Datatypes may name addresses: as in Entry::buffer.
    const bool relative =
        type.true_lower_bound >= 0 && type.true_lower_bound < MPI_Aint{first_address};
    return neighbours > 0 && base == nullptr && bytes > 0 && relative
               ? fail(MPI_ERR_BUFFER, "%s is a null pointer, with %d neighbours", name, neighbours)
               : Error();
}

Error check_arrays(int neighbours, const CountArray& counts, const char* counts_name,
                   const CountArray& displs, const char* displs_name) {
    if (Error error = check_array(neighbours, counts.data(), counts_name)) {
        return error;
    }
    return check_array(neighbours, displs.data(), displs_name);
}

} // namespace

Error neighbor_allgather(Context&, Steps& steps, const void* sendbuf, MPI_Count sendcount,
                         const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
                         const datatype::Datatype& recvtype) {
    if (Error error = check_topology(steps)) {
        return error;
    }
    if (Error error = check_buffer(destinations(steps), sendbuf, sendcount, sendtype, "sendbuf")) {
        return error;
    }
    if (Error error = check_buffer(sources(steps), recvbuf, recvcount, recvtype, "recvbuf")) {
        return error;
    }
    const std::vector<Buffer> out(static_cast<std::size_t>(destinations(steps)),
                                  buffer_of(sendbuf, sendcount, sendtype));
    coll::neighbours(steps, Blocks(out.data()), Blocks(buffer_of(recvbuf, recvcount, recvtype)));
    return {};
}

Error neighbor_allgatherv(Context&, Steps& steps, const void* sendbuf, MPI_Count sendcount,
                          const datatype::Datatype& sendtype, void* recvbuf, CountArray recvcounts,
                          CountArray displs, const datatype::Datatype& recvtype) {
    if (Error error = check_topology(steps)) {
        return error;
    }
    if (Error error = check_buffer(destinations(steps), sendbuf, sendcount, sendtype, "sendbuf")) {
        return error;
    }
    if (Error error = check_arrays(sources(steps), recvcounts, "recvcounts", displs, "displs")) {
        return error;
    }
    std::vector<Buffer> in;
    if (Error error =
            list_blocks(sources(steps), recvbuf, recvcounts, displs, recvtype, "recvcounts", in)) {
        return error;
    }
    const std::vector<Buffer> out(static_cast<std::size_t>(destinations(steps)),
                                  buffer_of(sendbuf, sendcount, sendtype));
    coll::neighbours(steps, Blocks(out.data()), Blocks(in.data()));
    return {};
}

Error neighbor_alltoall(Context&, Steps& steps, const void* sendbuf, MPI_Count sendcount,
                        const datatype::Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
                        const datatype::Datatype& recvtype) {
    if (Error error = check_topology(steps)) {
        return error;
    }
    if (Error error = check_buffer(destinations(steps), sendbuf, sendcount, sendtype, "sendbuf")) {
        return error;
    }
    if (Error error = check_buffer(sources(steps), recvbuf, recvcount, recvtype, "recvbuf")) {
        return error;
    }
    coll::neighbours(steps, Blocks(buffer_of(sendbuf, sendcount, sendtype)),
                     Blocks(buffer_of(recvbuf, recvcount, recvtype)));
    return {};
}

Error neighbor_alltoallv(Context&, Steps& steps, const void* sendbuf, CountArray sendcounts,
                         CountArray sdispls, const datatype::Datatype& sendtype, void* recvbuf,
                         CountArray recvcounts, CountArray rdispls,
                         const datatype::Datatype& recvtype) {
    if (Error error = check_topology(steps)) {
        return error;
    }
    if (Error error =
            check_arrays(destinations(steps), sendcounts, "sendcounts", sdispls, "sdispls")) {
        return error;
    }
    if (Error error = check_arrays(sources(steps), recvcounts, "recvcounts", rdispls, "rdispls")) {
        return error;
    }
    std::vector<Buffer> out;
    if (Error error = list_blocks(destinations(steps), const_cast<void*>(sendbuf), sendcounts,
                                  sdispls, sendtype, "sendcounts", out)) {
        return error;
    }
    std::vector<Buffer> in;
    if (Error error =
            list_blocks(sources(steps), recvbuf, recvcounts, rdispls, recvtype, "recvcounts", in)) {
        return error;
    }
    coll::neighbours(steps, Blocks(out.data()), Blocks(in.data()));
    return {};
}

Error neighbor_alltoallw(Context& context, Steps& steps, const void* sendbuf, CountArray sendcounts,
                         CountArray sdispls, const MPI_Datatype sendtypes[], void* recvbuf,
                         CountArray recvcounts, CountArray rdispls,
                         const MPI_Datatype recvtypes[]) {
    if (Error error = check_topology(steps)) {
        return error;
    }
    if (Error error =
            check_arrays(destinations(steps), sendcounts, "sendcounts", sdispls, "sdispls")) {
        return error;
    }
    if (Error error = check_array(destinations(steps), sendtypes, "sendtypes")) {
        return error;
    }
    if (Error error = check_arrays(sources(steps), recvcounts, "recvcounts", rdispls, "rdispls")) {
        return error;
    }
    if (Error error = check_array(sources(steps), recvtypes, "recvtypes")) {
        return error;
    }
    std::vector<Buffer> out;
    if (Error error =
            list_typed_blocks(context, steps, destinations(steps), const_cast<void*>(sendbuf),
                              sendcounts, sdispls, sendtypes, "sendtypes", out)) {
        return error;
    }
    std::vector<Buffer> in;
    if (Error error = list_typed_blocks(context, steps, sources(steps), recvbuf, recvcounts,
                                        rdispls, recvtypes, "recvtypes", in)) {
        return error;
    }
    coll::neighbours(steps, Blocks(out.data()), Blocks(in.data()));
    return {};
}

} // namespace warren::mpi::plan
