// Makes and ends requests, for the files of the point-to-point chapter.
#pragma once

#include <cstdint>

#include "mpi/comm/communicator.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/release.hpp"
#include "mpi/entry/status.hpp"
#include "mpi/message/engine.hpp"

namespace warren::mpi {

inline MPI_Request request_handle(const message::Request& request) {
    return reinterpret_cast<MPI_Request>(HandleTable<message::Request>::handle_of(request));
}

inline Error no_memory_for_request() {
    return fail(MPI_ERR_NO_MEM, "no memory for one more request");
}

inline message::Buffer buffer_of(const void* base, MPI_Count count,
                                 const datatype::Datatype& type) {
    return {.base = const_cast<void*>(base), .count = count, .type = &type};
}

inline message::Envelope send_envelope(const comm::Communicator& comm, int tag) {
    return {.context = comm.context(), .source = comm.rank(), .tag = tag};
}

inline message::Envelope receive_envelope(const comm::Communicator& comm, int source, int tag) {
    return {.context = comm.context(), .source = source, .tag = tag};
}

// Has a request keep its communicator and datatype until it leaves the table.
void bind(Context& context, message::Request& request, comm::Communicator& comm);

// Frees the persistent requests that are not active: at the end of the context.
void end_idle_requests(Context& context);

// Gives up what bind() has kept.
void release_bound(message::Request& request);

// bind() for a receive of a predefined datatype, which nobody needs to keep.
inline void bind_plain(Context& context, message::Request& request, comm::Communicator& comm) {
    request.context = &context;
    request.communicator = &comm;
    request.release = release_bound;
    context.communicators.retain(comm);
}

// Makes a send or receive that has not been started. Null: memory is out.
message::Request* make_send(Context& context, message::Operation mode,
                            const message::Buffer& buffer, int dest, int tag,
                            comm::Communicator& comm);
message::Request* make_receive(Context& context, const message::Buffer& buffer, int source, int tag,
                               comm::Communicator& comm);

// Starts a request of any kind.
Error start_request(Context& context, message::Request& request);

// Starts a new request and gives it to the program; on failure it is gone.
Error start_new(Context& context, message::Request* request, MPI_Request* handle);

// The end of a request that is complete, as the program's call sees it: its status, its error, and
// the handle if that ends too.
Error end_any_request(Context& context, message::Request& request, MPI_Request* handle,
                      MPI_Status* status);
inline Error end_request(Context& context, message::Request& request, MPI_Request* handle,
                         MPI_Status* status) {
    if (!request.plain || request.outcome.error_class != MPI_SUCCESS) {
        if (request.shared) {
            set_status(status, empty_outcome());
            *handle = MPI_REQUEST_NULL;
            return {};
        }
        return end_any_request(context, request, handle, status);
    }
    set_status(status, request.outcome);
    release(context, *static_cast<comm::Communicator*>(request.communicator));
    context.messages.requests().remove(request);
    *handle = MPI_REQUEST_NULL;
    return {};
}

// The error that an outcome stands for; none for a success.
Error outcome_error(const message::Outcome& outcome);

// Buffered sends, by the buffer of the communicator or else of the rank (buffered.cpp).
Error send_buffered(Context& context, const message::Buffer& buffer, std::uint32_t world_peer,
                    int tag, comm::Communicator& comm);

// Generalised requests (generalised.cpp): asks the program for the status.
Error query_generalised(message::Request& request, MPI_Status& status);
// Asks for the status of a request that ends, and calls its free function, which may fail, too.
Error end_generalised(message::Request& request, MPI_Status& status);

// Nonblocking file accesses (files_nonblocking.cpp): their outcome's bytes, and their error.
Error end_file_access(message::Request& request);

} // namespace warren::mpi
