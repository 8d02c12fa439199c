// Buffered sends and the buffers that programs attach for them.

#include <cstring>

#include "mpi/entry/point_to_point.hpp"
#include "mpi/entry/release.hpp"
#include "mpi/entry/requests.hpp"
#include "mpi/message/send_buffer.hpp"

namespace warren::mpi {

using message::Operation;
using message::Request;
using message::SendBuffer;

namespace {

// A communicator's or session's own buffer, made when first attached.
template <typename Owner>
SendBuffer& own_buffer(Owner& owner) {
    if (owner.send_buffer == nullptr) {
        owner.send_buffer = std::make_unique<SendBuffer>();
    }
    return *owner.send_buffer;
}

// Where a communicator's buffered sends go: the nearest buffer that is attached.
SendBuffer& buffer_for(Context& context, const comm::Communicator& comm) {
    if (comm.send_buffer != nullptr && comm.send_buffer->attached()) {
        return *comm.send_buffer;
    }
    const comm::Session* session = context.sessions.find(comm.session);
    if (session != nullptr && session->send_buffer != nullptr && session->send_buffer->attached()) {
        return *session->send_buffer;
    }
    return context.send_buffer;
}

Error attach(SendBuffer& buffer, void* base, MPI_Count size) {
    if (buffer.attached()) {
        return fail(MPI_ERR_BUFFER, "a buffer is attached already: detach it first");
    }
    buffer.attach(base, size);
    return {};
}

Error detach(Context& context, SendBuffer& buffer, void* buffer_addr, MPI_Count& size) {
    do { // another thread may send from it as soon as the wait is over
        buffer.flush(context.messages);
    } while (!buffer.empty(context.messages));
    void* base = nullptr;
    buffer.detach(base, size);
    std::memcpy(buffer_addr, &base, sizeof base);
    return {};
}

struct Flush {
    SendBuffer* buffer;
    message::Engine* engine;
};

bool step_flush(Request& request) {
    auto& flush = *static_cast<Flush*>(request.attachment);
    return flush.buffer->empty(*flush.engine);
}

void release_flush(Request& request) {
    delete static_cast<Flush*>(request.attachment);
    auto& context = *static_cast<Context*>(request.context);
    release(context, *static_cast<comm::Communicator*>(request.communicator));
}

Error start_flush(Context& context, SendBuffer& buffer, comm::Communicator& comm,
                  MPI_Request* handle) {
    Request* request = context.messages.make();
    if (request == nullptr) {
        return no_memory_for_request();
    }
    request->operation = Operation::combined;
    request->envelope = {.context = comm.context(), .source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    request->attachment = new Flush{.buffer = &buffer, .engine = &context.messages};
    bind(context, *request, comm);
    request->release = release_flush;
    request->stepping.step = step_flush;
    context.messages.start_stepping(*request);
    *handle = request_handle(*request);
    return {};
}

} // namespace

Error send_buffered(Context& context, const message::Buffer& buffer, std::uint32_t world_peer,
                    int tag, comm::Communicator& comm) {
    return buffer_for(context, comm)
        .send(context.messages, buffer, world_peer, send_envelope(comm, tag));
}

Error bsend(Context& context, const void* buf, MPI_Count count, const datatype::Datatype& datatype,
            int dest, int tag, comm::Communicator& comm) {
    if (dest == MPI_PROC_NULL) {
        return {};
    }
    return send_buffered(context, buffer_of(buf, count, datatype), comm.endpoint(dest), tag, comm);
}

Error ibsend(Context& context, const void* buf, MPI_Count count, const datatype::Datatype& datatype,
             int dest, int tag, comm::Communicator& comm, MPI_Request* request) {
    return start_new(
        context,
        make_send(context, Operation::buffered, buffer_of(buf, count, datatype), dest, tag, comm),
        request);
}

Error buffer_attach(Context& context, void* buffer, MPI_Count size) {
    return attach(context.send_buffer, buffer, size);
}

Error buffer_detach(Context& context, void* buffer_addr, MPI_Count& size) {
    return detach(context, context.send_buffer, buffer_addr, size);
}

Error buffer_flush(Context& context) {
    context.send_buffer.flush(context.messages);
    return {};
}

Error buffer_iflush(Context& context, MPI_Request* request) {
    return start_flush(context, context.send_buffer, context.communicators.self(), request);
}

Error comm_attach_buffer(Context&, comm::Communicator& comm, void* buffer, MPI_Count size) {
    return attach(own_buffer(comm), buffer, size);
}

Error comm_detach_buffer(Context& context, comm::Communicator& comm, void* buffer_addr,
                         MPI_Count& size) {
    return detach(context, own_buffer(comm), buffer_addr, size);
}

Error comm_flush_buffer(Context& context, comm::Communicator& comm) {
    own_buffer(comm).flush(context.messages);
    return {};
}

Error comm_iflush_buffer(Context& context, comm::Communicator& comm, MPI_Request* request) {
    return start_flush(context, own_buffer(comm), comm, request);
}

Error session_attach_buffer(Context&, comm::Session& session, void* buffer, MPI_Count size) {
    return attach(own_buffer(session), buffer, size);
}

Error session_detach_buffer(Context& context, comm::Session& session, void* buffer_addr,
                            MPI_Count& size) {
    return detach(context, own_buffer(session), buffer_addr, size);
}

Error session_flush_buffer(Context& context, comm::Session& session) {
    own_buffer(session).flush(context.messages);
    return {};
}

Error session_iflush_buffer(Context& context, comm::Session& session, MPI_Request* request) {
    return start_flush(context, own_buffer(session), context.communicators.self(), request);
}

} // namespace warren::mpi
