// Point-to-point communication (MPI chapter 3): what its entry points call.
//
// Arguments have been checked: handles are objects, ranks are of the communicator's peers,
// MPI_PROC_NULL or (where allowed) MPI_ANY_SOURCE, tags and counts are in range, datatypes are
// committed, buffers may be read. Not checked: arrays of requests (MPI_ERR_REQUEST is the callee's
// to find, in the one pass that it makes) and message handles other than MPI_MESSAGE_NULL. A status
// may be null (ignored), an array of statuses too. Called with the rank's lock held.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"
#include "mpi/entry/requests.hpp"
#include "mpi/entry/short_messages.hpp"

namespace warren::mpi {

Error bsend(Context& context, const void* buf, MPI_Count count, const datatype::Datatype& datatype,
            int dest, int tag, comm::Communicator& comm);
Error recv(Context& context, void* buf, MPI_Count count, const datatype::Datatype& datatype,
           int source, int tag, comm::Communicator& comm, MPI_Status* status);
Error rsend(Context& context, const void* buf, MPI_Count count, const datatype::Datatype& datatype,
            int dest, int tag, comm::Communicator& comm);
Error ssend(Context& context, const void* buf, MPI_Count count, const datatype::Datatype& datatype,
            int dest, int tag, comm::Communicator& comm);

Error sendrecv(Context& context, const void* sendbuf, MPI_Count sendcount,
               const datatype::Datatype& sendtype, int dest, int sendtag, void* recvbuf,
               MPI_Count recvcount, const datatype::Datatype& recvtype, int source, int recvtag,
               comm::Communicator& comm, MPI_Status* status);
Error sendrecv_replace(Context& context, void* buf, MPI_Count count,
                       const datatype::Datatype& datatype, int dest, int sendtag, int source,
                       int recvtag, comm::Communicator& comm, MPI_Status* status);

// Nonblocking: the request gets a new handle.
Error ibsend(Context& context, const void* buf, MPI_Count count, const datatype::Datatype& datatype,
             int dest, int tag, comm::Communicator& comm, MPI_Request* request);
Error irsend(Context& context, const void* buf, MPI_Count count, const datatype::Datatype& datatype,
             int dest, int tag, comm::Communicator& comm, MPI_Request* request);
Error isendrecv(Context& context, const void* sendbuf, MPI_Count sendcount,
                const datatype::Datatype& sendtype, int dest, int sendtag, void* recvbuf,
                MPI_Count recvcount, const datatype::Datatype& recvtype, int source, int recvtag,
                comm::Communicator& comm, MPI_Request* request);
Error isendrecv_replace(Context& context, void* buf, MPI_Count count,
                        const datatype::Datatype& datatype, int dest, int sendtag, int source,
                        int recvtag, comm::Communicator& comm, MPI_Request* request);
Error issend(Context& context, const void* buf, MPI_Count count, const datatype::Datatype& datatype,
             int dest, int tag, comm::Communicator& comm, MPI_Request* request);

// Probes.
Error improbe(Context& context, int source, int tag, comm::Communicator& comm, int* flag,
              MPI_Message* message, MPI_Status* status);
// `awaited`: the caller waits for it.
Error imrecv(Context& context, void* buf, MPI_Count count, const datatype::Datatype& datatype,
             MPI_Message* message, MPI_Request* request, bool awaited = false);
Error iprobe(Context& context, int source, int tag, comm::Communicator& comm, int* flag,
             MPI_Status* status);
Error mprobe(Context& context, int source, int tag, comm::Communicator& comm, MPI_Message* message,
             MPI_Status* status);
Error mrecv(Context& context, void* buf, MPI_Count count, const datatype::Datatype& datatype,
            MPI_Message* message, MPI_Status* status);
Error probe(Context& context, int source, int tag, comm::Communicator& comm, MPI_Status* status);

// Persistent requests.
Error bsend_init(Context& context, const void* buf, MPI_Count count,
                 const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                 MPI_Request* request);
Error recv_init(Context& context, void* buf, MPI_Count count, const datatype::Datatype& datatype,
                int source, int tag, comm::Communicator& comm, MPI_Request* request);
Error rsend_init(Context& context, const void* buf, MPI_Count count,
                 const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                 MPI_Request* request);
Error send_init(Context& context, const void* buf, MPI_Count count,
                const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                MPI_Request* request);
Error ssend_init(Context& context, const void* buf, MPI_Count count,
                 const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                 MPI_Request* request);
Error start(Context& context, message::Request& request);
Error startall(Context& context, int count, MPI_Request array_of_requests[]);

// Completion. A null request is MPI_REQUEST_NULL: done at once with an empty status. The handle
// becomes MPI_REQUEST_NULL when the request is neither active nor persistent any more.
Error test(Context& context, message::Request* request, MPI_Request* request_handle, int* flag,
           MPI_Status* status);
Error wait(Context& context, message::Request* request, MPI_Request* request_handle,
           MPI_Status* status);
Error testall(Context& context, int count, MPI_Request array_of_requests[], int* flag,
              MPI_Status* array_of_statuses);
Error testany(Context& context, int count, MPI_Request array_of_requests[], int* indx, int* flag,
              MPI_Status* status);
Error testsome(Context& context, int incount, MPI_Request array_of_requests[], int* outcount,
               int array_of_indices[], MPI_Status* array_of_statuses);
Error waitall(Context& context, int count, MPI_Request array_of_requests[],
              MPI_Status* array_of_statuses);
Error waitany(Context& context, int count, MPI_Request array_of_requests[], int* indx,
              MPI_Status* status);
Error waitsome(Context& context, int incount, MPI_Request array_of_requests[], int* outcount,
               int array_of_indices[], MPI_Status* array_of_statuses);

// Statuses without completion.
Error request_get_status(Context& context, message::Request* request, int* flag,
                         MPI_Status* status);
Error request_get_status_all(Context& context, int count, const MPI_Request array_of_requests[],
                             int* flag, MPI_Status* array_of_statuses);
Error request_get_status_any(Context& context, int count, const MPI_Request array_of_requests[],
                             int* indx, int* flag, MPI_Status* status);
Error request_get_status_some(Context& context, int incount, const MPI_Request array_of_requests[],
                              int* outcount, int array_of_indices[], MPI_Status* array_of_statuses);

// The caller of request_free sets the handle to MPI_REQUEST_NULL.
Error cancel(Context& context, message::Request& request);
Error request_free(Context& context, message::Request& request);

// Buffers of buffered sends. A send takes the one of its communicator, else of the session that the
// communicator comes from, else the rank's. MPI_BUFFER_AUTOMATIC is a buffer.
Error buffer_attach(Context& context, void* buffer, MPI_Count size);
Error buffer_detach(Context& context, void* buffer_addr, MPI_Count& size);
Error buffer_flush(Context& context);
Error buffer_iflush(Context& context, MPI_Request* request);
Error comm_attach_buffer(Context& context, comm::Communicator& comm, void* buffer, MPI_Count size);
Error comm_detach_buffer(Context& context, comm::Communicator& comm, void* buffer_addr,
                         MPI_Count& size);
Error comm_flush_buffer(Context& context, comm::Communicator& comm);
Error comm_iflush_buffer(Context& context, comm::Communicator& comm, MPI_Request* request);
Error session_attach_buffer(Context& context, comm::Session& session, void* buffer, MPI_Count size);
Error session_detach_buffer(Context& context, comm::Session& session, void* buffer_addr,
                            MPI_Count& size);
Error session_flush_buffer(Context& context, comm::Session& session);
Error session_iflush_buffer(Context& context, comm::Session& session, MPI_Request* request);

// Generalised requests.
Error grequest_complete(Context& context, message::Request& request);
Error grequest_start(Context& context, MPI_Grequest_query_function* query_fn,
                     MPI_Grequest_free_function* free_fn, MPI_Grequest_cancel_function* cancel_fn,
                     void* extra_state, MPI_Request* request);

// --- The short ways, inside the entry points: what a message of a few bytes needs. Everything else
// goes the long way.

Error send_long(message::Operation mode, Context& context, const message::Buffer& buffer, int dest,
                int tag, comm::Communicator& comm);
Error isend_long(message::Operation mode, Context& context, const message::Buffer& buffer, int dest,
                 int tag, comm::Communicator& comm, MPI_Request* request);
Error irecv_long(Context& context, const message::Buffer& buffer, int source, int tag,
                 comm::Communicator& comm, MPI_Request* request);

inline Error send(Context& context, const void* buf, MPI_Count count,
                  const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm) {
    const message::Buffer buffer = buffer_of(buf, count, datatype);
    if (dest != MPI_PROC_NULL && context.messages.send_now(buffer, comm.endpoint(dest),
                                                           send_envelope(comm, tag))) [[likely]] {
        return {};
    }
    return send_long(message::Operation::send, context, buffer, dest, tag, comm);
}

inline Error isend(Context& context, const void* buf, MPI_Count count,
                   const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                   MPI_Request* request) {
    const message::Buffer buffer = buffer_of(buf, count, datatype);
    if (dest != MPI_PROC_NULL && context.messages.send_now(buffer, comm.endpoint(dest),
                                                           send_envelope(comm, tag))) [[likely]] {
        *request = request_handle(context.messages.sent());
        return {};
    }
    return isend_long(message::Operation::send, context, buffer, dest, tag, comm, request);
}

inline Error irecv(Context& context, void* buf, MPI_Count count, const datatype::Datatype& datatype,
                   int source, int tag, comm::Communicator& comm, MPI_Request* request) {
    const message::Buffer buffer = buffer_of(buf, count, datatype);
    if (source != MPI_PROC_NULL) [[likely]] {
        message::Request* made =
            context.messages.receive_later(buffer, receive_envelope(comm, source, tag));
        if (made != nullptr) [[likely]] {
            bind_plain(context, *made, comm);
            *request = request_handle(*made);
            return {};
        }
    }
    return irecv_long(context, buffer, source, tag, comm, request);
}

} // namespace warren::mpi
