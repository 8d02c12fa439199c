// Persistent requests.

#include "mpi/entry/point_to_point.hpp"
#include "mpi/entry/release.hpp"
#include "mpi/entry/requests.hpp"

namespace warren::mpi {

using message::Operation;
using message::Request;

namespace {

Error make_persistent(Request* request, MPI_Request* handle) {
    if (request == nullptr) {
        return no_memory_for_request();
    }
    request->persistent = true;
    *handle = request_handle(*request);
    return {};
}

} // namespace

Error send_init(Context& context, const void* buf, MPI_Count count,
                const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                MPI_Request* request) {
    return make_persistent(
        make_send(context, Operation::send, buffer_of(buf, count, datatype), dest, tag, comm),
        request);
}

Error bsend_init(Context& context, const void* buf, MPI_Count count,
                 const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                 MPI_Request* request) {
    return make_persistent(
        make_send(context, Operation::buffered, buffer_of(buf, count, datatype), dest, tag, comm),
        request);
}

Error rsend_init(Context& context, const void* buf, MPI_Count count,
                 const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                 MPI_Request* request) {
    return make_persistent(
        make_send(context, Operation::ready, buffer_of(buf, count, datatype), dest, tag, comm),
        request);
}

Error ssend_init(Context& context, const void* buf, MPI_Count count,
                 const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                 MPI_Request* request) {
    return make_persistent(make_send(context, Operation::synchronous,
                                     buffer_of(buf, count, datatype), dest, tag, comm),
                           request);
}

Error recv_init(Context& context, void* buf, MPI_Count count, const datatype::Datatype& datatype,
                int source, int tag, comm::Communicator& comm, MPI_Request* request) {
    return make_persistent(
        make_receive(context, buffer_of(buf, count, datatype), source, tag, comm), request);
}

namespace {

Error start_persistent(Context& context, Request& request) {
    if (!request.persistent) {
        return fail(MPI_ERR_REQUEST, "the request is not a persistent one");
    }
    if (request.active) {
        return fail(MPI_ERR_REQUEST, "the persistent request is active already: complete it first");
    }
    return start_request(context, request);
}

} // namespace

Error start(Context& context, Request& request) {
    Error error = start_persistent(context, request);
    if (error) [[unlikely]] {
        set_failed_on(context, static_cast<comm::Communicator*>(request.communicator));
    }
    return error;
}

Error startall(Context& context, int count, MPI_Request array_of_requests[]) {
    for (int i = 0; i < count; ++i) {
        Request* request = context.messages.requests().held(array_of_requests[i]);
        if (request == nullptr) {
            return fail(MPI_ERR_REQUEST, "array_of_requests[%d] is no request", i);
        }
        if (Error error = start(context, *request)) {
            return error;
        }
    }
    return {};
}

} // namespace warren::mpi
