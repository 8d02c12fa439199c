#include "mpi/entry/requests.hpp"
#include "mpi/entry/release.hpp"

#include "mpi/coll/schedule.hpp"
#include "mpi/entry/point_to_point.hpp"

namespace warren::mpi {

using message::Engine;
using message::Operation;
using message::Outcome;
using message::Request;

void release_bound(Request& request) {
    auto& context = *static_cast<Context*>(request.context);
    auto& comm = *static_cast<comm::Communicator*>(request.communicator);
    if (request.buffer.type != nullptr) {
        datatype::release(*request.buffer.type);
    }
    release(context, comm);
}

void end_idle_requests(Context& context) {
    context.messages.requests().for_each([&](Request& request) {
        if (request.persistent && !request.active && request.complete) {
            context.messages.discard(request);
        }
    });
}

void bind(Context& context, Request& request, comm::Communicator& comm) {
    request.context = &context;
    request.communicator = &comm;
    request.release = release_bound;
    context.communicators.retain(comm);
    if (request.buffer.type != nullptr) {
        datatype::retain(*request.buffer.type);
    }
}

Request* make_send(Context& context, Operation mode, const message::Buffer& buffer, int dest,
                   int tag, comm::Communicator& comm) {
    Request* request = context.messages.make();
    if (request == nullptr) {
        return nullptr;
    }
    request->null_peer = dest == MPI_PROC_NULL;
    Engine::prepare_send(*request, mode, buffer, request->null_peer ? 0 : comm.endpoint(dest),
                         send_envelope(comm, tag));
    bind(context, *request, comm);
    return request;
}

Request* make_receive(Context& context, const message::Buffer& buffer, int source, int tag,
                      comm::Communicator& comm) {
    Request* request = context.messages.make();
    if (request == nullptr) {
        return nullptr;
    }
    request->null_peer = source == MPI_PROC_NULL;
    Engine::prepare_receive(*request, buffer, receive_envelope(comm, source, tag));
    bind(context, *request, comm);
    return request;
}

Error start_request(Context& context, Request& request) {
    if (request.operation == Operation::partitioned) {
        return start_partitioned(context, request);
    }
    if (request.null_peer) {
        request.active = true;
        request.complete = true;
        request.outcome =
            request.operation == Operation::receive ? null_peer_outcome() : empty_outcome();
        return {};
    }
    if (request.operation == Operation::buffered) {
        auto& comm = *static_cast<comm::Communicator*>(request.communicator);
        request.active = true;
        request.complete = true;
        request.outcome = empty_outcome();
        Error error =
            send_buffered(context, request.buffer, request.peer, request.envelope.tag, comm);
        request.active = !error;
        return error;
    }
    if (request.operation == Operation::collective) {
        coll::Schedule::start(context.messages, request);
        return {};
    }
    Error error = context.messages.start(request);
    if (error) {
        request.active = false;
        request.complete = true;
    }
    return error;
}

Error start_new(Context& context, Request* request, MPI_Request* handle) {
    if (request == nullptr) {
        return no_memory_for_request();
    }
    if (Error error = start_request(context, *request)) {
        context.messages.discard(*request);
        return error;
    }
    *handle = request_handle(*request);
    return {};
}

Error outcome_error(const Outcome& outcome) {
    switch (outcome.error_class) {
    case MPI_SUCCESS:
        return {};
    case MPI_ERR_TRUNCATE:
        return fail(MPI_ERR_TRUNCATE,
                    "the message of %lld bytes from rank %d with tag %d is longer than the receive "
                    "buffer of %lld bytes",
                    static_cast<long long>(outcome.available), outcome.source, outcome.tag,
                    static_cast<long long>(outcome.bytes));
    case MPI_ERR_TYPE:
        return fail(
            MPI_ERR_TYPE,
            "the message of %lld bytes from rank %d with tag %d ends inside a basic element "
            "of the receive's datatype: the sender's is another",
            static_cast<long long>(outcome.available), outcome.source, outcome.tag);
    case MPI_ERR_PROC_ABORTED:
        return outcome.source >= 0
                   ? fail(MPI_ERR_PROC_ABORTED, "rank %d has ended", outcome.source)
                   : fail(MPI_ERR_PROC_ABORTED, "a process that takes part has ended");
    default:
        return fail(outcome.error_class, "the operation with rank %d, tag %d failed",
                    outcome.source, outcome.tag);
    }
}

Error end_any_request(Context& context, Request& request, MPI_Request* handle, MPI_Status* status) {
    Error error;
    if (request.operation == Operation::generalised) [[unlikely]] {
        MPI_Status own;
        error = end_generalised(request, status != nullptr ? *status : own);
    } else if (request.operation == Operation::file) {
        error = end_file_access(request);
        set_status(status, request.outcome);
    } else {
        set_status(status, request.outcome);
        if (request.outcome.error_class != MPI_SUCCESS) [[unlikely]] {
            error = outcome_error(request.outcome);
        }
    }
    auto& comm = *static_cast<comm::Communicator*>(request.communicator);
    if (error) [[unlikely]] {
        set_failed_on(context, &comm, error.error_class());
    }
    if (request.persistent) {
        request.active = false;
    } else {
        context.messages.discard(request);
        *handle = MPI_REQUEST_NULL;
    }
    return error;
}

} // namespace warren::mpi
