// Sends, receives and probes.

#include "mpi/entry/point_to_point.hpp"

#include <cstdlib>

#include "mpi/entry/release.hpp"
#include "mpi/entry/requests.hpp"

namespace warren::mpi {

using message::Buffer;
using message::Engine;
using message::Operation;
using message::Outcome;
using message::Request;
using message::Unexpected;
using Matched = Engine::Matched;

Error send_long(Operation mode, Context& context, const Buffer& buffer, int dest, int tag,
                comm::Communicator& comm) {
    if (dest == MPI_PROC_NULL) [[unlikely]] {
        return {};
    }
    return context.messages.send(mode, buffer, comm.endpoint(dest), send_envelope(comm, tag));
}

Error isend_long(Operation mode, Context& context, const Buffer& buffer, int dest, int tag,
                 comm::Communicator& comm, MPI_Request* request) {
    return start_new(context, make_send(context, mode, buffer, dest, tag, comm), request);
}

Error irecv_long(Context& context, const Buffer& buffer, int source, int tag,
                 comm::Communicator& comm, MPI_Request* request) {
    return start_new(context, make_receive(context, buffer, source, tag, comm), request);
}

Error rsend(Context& context, const void* buf, MPI_Count count, const datatype::Datatype& datatype,
            int dest, int tag, comm::Communicator& comm) {
    return send_long(Operation::ready, context, buffer_of(buf, count, datatype), dest, tag, comm);
}

Error ssend(Context& context, const void* buf, MPI_Count count, const datatype::Datatype& datatype,
            int dest, int tag, comm::Communicator& comm) {
    return send_long(Operation::synchronous, context, buffer_of(buf, count, datatype), dest, tag,
                     comm);
}

Error irsend(Context& context, const void* buf, MPI_Count count, const datatype::Datatype& datatype,
             int dest, int tag, comm::Communicator& comm, MPI_Request* request) {
    return isend(context, buf, count, datatype, dest, tag, comm, request);
}

Error issend(Context& context, const void* buf, MPI_Count count, const datatype::Datatype& datatype,
             int dest, int tag, comm::Communicator& comm, MPI_Request* request) {
    return isend_long(Operation::synchronous, context, buffer_of(buf, count, datatype), dest, tag,
                      comm, request);
}

Error recv(Context& context, void* buf, MPI_Count count, const datatype::Datatype& datatype,
           int source, int tag, comm::Communicator& comm, MPI_Status* status) {
    if (source == MPI_PROC_NULL) [[unlikely]] {
        set_status(status, null_peer_outcome());
        return {};
    }
    Outcome outcome;
    if (Error error = context.messages.receive(buffer_of(buf, count, datatype),
                                               receive_envelope(comm, source, tag), outcome))
        [[unlikely]] {
        return error;
    }
    set_status(status, outcome);
    return outcome.error_class == MPI_SUCCESS ? Error() : outcome_error(outcome);
}

// --- Send and receive in one

Error sendrecv(Context& context, const void* sendbuf, MPI_Count sendcount,
               const datatype::Datatype& sendtype, int dest, int sendtag, void* recvbuf,
               MPI_Count recvcount, const datatype::Datatype& recvtype, int source, int recvtag,
               comm::Communicator& comm, MPI_Status* status) {
    MPI_Request receive = MPI_REQUEST_NULL;
    if (Error error =
            irecv(context, recvbuf, recvcount, recvtype, source, recvtag, comm, &receive)) {
        return error;
    }
    Request& pending = *context.messages.requests().find(receive);
    Error error = send(context, sendbuf, sendcount, sendtype, dest, sendtag, comm);
    if (error) {
        context.messages.cancel(pending);
        context.messages.wait(pending); // if it had been matched
        context.messages.discard(pending);
        return error;
    }
    context.messages.wait(pending);
    return end_request(context, pending, &receive, status);
}

namespace {

// The packed copy of what a ..._replace call sends.
std::byte* pack_copy(const Buffer& buffer) {
    const auto bytes = static_cast<std::size_t>(buffer.bytes());
    auto* copy = static_cast<std::byte*>(std::malloc(bytes > 0 ? bytes : 1));
    if (copy != nullptr && bytes > 0) {
        buffer.type->pack(buffer.base, buffer.count, copy);
    }
    return copy;
}

Error no_memory_for_copy(const Buffer& buffer) {
    return fail(MPI_ERR_NO_MEM, "no memory for a copy of the %lld bytes to be replaced",
                static_cast<long long>(buffer.bytes()));
}

const datatype::Datatype& byte_type() {
    return datatype::basic(MPI_BYTE);
}

} // namespace

Error sendrecv_replace(Context& context, void* buf, MPI_Count count,
                       const datatype::Datatype& datatype, int dest, int sendtag, int source,
                       int recvtag, comm::Communicator& comm, MPI_Status* status) {
    const Buffer buffer = buffer_of(buf, count, datatype);
    std::byte* copy = pack_copy(buffer);
    if (copy == nullptr) {
        return no_memory_for_copy(buffer);
    }
    Error error = sendrecv(context, copy, buffer.bytes(), byte_type(), dest, sendtag, buf, count,
                           datatype, source, recvtag, comm, status);
    std::free(copy);
    return error;
}

namespace {

// An Isendrecv: complete when both halves are, with the outcome of the receive.
struct Halves {
    Engine* engine;
    Request* send;
    Request* receive;
    std::byte* copy; // of what is sent, or null
};

bool step_halves(Request& request) {
    auto& halves = *static_cast<Halves*>(request.attachment);
    if (!halves.send->complete || !halves.receive->complete) {
        return false;
    }
    request.outcome = halves.receive->outcome;
    return true;
}

void release_halves(Request& request) {
    auto* halves = static_cast<Halves*>(request.attachment);
    halves->engine->discard(*halves->send);
    halves->engine->discard(*halves->receive);
    std::free(halves->copy);
    delete halves;
    auto& context = *static_cast<Context*>(request.context);
    release(context, *static_cast<comm::Communicator*>(request.communicator));
}

Error start_combined(Context& context, const Buffer& out, int dest, int sendtag, const Buffer& in,
                     int source, int recvtag, comm::Communicator& comm, std::byte* copy,
                     MPI_Request* handle) {
    Engine& engine = context.messages;
    Request* combined = engine.make();
    Request* receive = make_receive(context, in, source, recvtag, comm);
    Request* send = make_send(context, Operation::send, out, dest, sendtag, comm);
    const auto give_up = [&](Error error) {
        for (Request* request : {combined, receive, send}) {
            if (request != nullptr) {
                engine.discard(*request);
            }
        }
        std::free(copy);
        return error;
    };
    if (combined == nullptr || receive == nullptr || send == nullptr) {
        return give_up(no_memory_for_request());
    }
    if (Error error = start_request(context, *receive)) {
        return give_up(error);
    }
    if (Error error = start_request(context, *send)) {
        engine.cancel(*receive);
        return give_up(error);
    }
    combined->operation = Operation::combined;
    combined->envelope = receive->envelope;
    combined->attachment =
        new Halves{.engine = &engine, .send = send, .receive = receive, .copy = copy};
    bind(context, *combined, comm);
    combined->stepping.step = step_halves;
    combined->release = release_halves;
    engine.start_stepping(*combined);
    *handle = request_handle(*combined);
    return {};
}

} // namespace

Error isendrecv(Context& context, const void* sendbuf, MPI_Count sendcount,
                const datatype::Datatype& sendtype, int dest, int sendtag, void* recvbuf,
                MPI_Count recvcount, const datatype::Datatype& recvtype, int source, int recvtag,
                comm::Communicator& comm, MPI_Request* request) {
    return start_combined(context, buffer_of(sendbuf, sendcount, sendtype), dest, sendtag,
                          buffer_of(recvbuf, recvcount, recvtype), source, recvtag, comm, nullptr,
                          request);
}

Error isendrecv_replace(Context& context, void* buf, MPI_Count count,
                        const datatype::Datatype& datatype, int dest, int sendtag, int source,
                        int recvtag, comm::Communicator& comm, MPI_Request* request) {
    const Buffer buffer = buffer_of(buf, count, datatype);
    std::byte* copy = pack_copy(buffer);
    if (copy == nullptr) {
        return no_memory_for_copy(buffer);
    }
    return start_combined(context, buffer_of(copy, buffer.bytes(), byte_type()), dest, sendtag,
                          buffer, source, recvtag, comm, copy, request);
}

// --- Probes

namespace {

Outcome outcome_of(const Unexpected& message) {
    return {.source = message.envelope.source,
            .tag = message.envelope.tag,
            .bytes = static_cast<MPI_Count>(message.bytes)};
}

Error take_message(Context& context, Unexpected& found, comm::Communicator& comm,
                   MPI_Message* handle) {
    Engine& engine = context.messages;
    Matched* matched = engine.matched().insert(&found, &comm);
    if (matched == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory for one more message handle");
    }
    engine.take(found);
    context.communicators.retain(comm);
    *handle = reinterpret_cast<MPI_Message>(LateHandleTable<Matched>::handle_of(*matched));
    return {};
}

} // namespace

namespace {

// The result of a wait for a message that nobody is left to send.
Error nobody_sends(int source) {
    return outcome_error({.source = source, .error_class = MPI_ERR_PROC_ABORTED});
}

} // namespace

Error iprobe(Context& context, int source, int tag, comm::Communicator& comm, int* flag,
             MPI_Status* status) {
    if (source == MPI_PROC_NULL) {
        *flag = 1;
        set_status(status, null_peer_outcome());
        return {};
    }
    bool in_vain = false;
    const Unexpected* message = context.messages.peek(receive_envelope(comm, source, tag), in_vain);
    if (in_vain) [[unlikely]] {
        return nobody_sends(source);
    }
    *flag = message != nullptr;
    if (message != nullptr) {
        set_status(status, outcome_of(*message));
    }
    return {};
}

Error probe(Context& context, int source, int tag, comm::Communicator& comm, MPI_Status* status) {
    if (source == MPI_PROC_NULL) {
        set_status(status, null_peer_outcome());
        return {};
    }
    const Unexpected* const found =
        context.messages.wait_for_message(receive_envelope(comm, source, tag));
    if (found == nullptr) [[unlikely]] {
        return nobody_sends(source);
    }
    set_status(status, outcome_of(*found));
    return {};
}

Error improbe(Context& context, int source, int tag, comm::Communicator& comm, int* flag,
              MPI_Message* message, MPI_Status* status) {
    if (source == MPI_PROC_NULL) {
        *flag = 1;
        *message = MPI_MESSAGE_NO_PROC;
        set_status(status, null_peer_outcome());
        return {};
    }
    bool in_vain = false;
    Unexpected* found = context.messages.peek(receive_envelope(comm, source, tag), in_vain);
    if (in_vain) [[unlikely]] {
        return nobody_sends(source);
    }
    *flag = found != nullptr;
    if (found == nullptr) {
        *message = MPI_MESSAGE_NULL;
        return {};
    }
    set_status(status, outcome_of(*found));
    return take_message(context, *found, comm, message);
}

Error mprobe(Context& context, int source, int tag, comm::Communicator& comm, MPI_Message* message,
             MPI_Status* status) {
    if (source == MPI_PROC_NULL) {
        *message = MPI_MESSAGE_NO_PROC;
        set_status(status, null_peer_outcome());
        return {};
    }
    Unexpected* found = context.messages.wait_for_message(receive_envelope(comm, source, tag));
    if (found == nullptr) [[unlikely]] {
        return nobody_sends(source);
    }
    set_status(status, outcome_of(*found));
    return take_message(context, *found, comm, message);
}

Error imrecv(Context& context, void* buf, MPI_Count count, const datatype::Datatype& datatype,
             MPI_Message* message, MPI_Request* handle, bool awaited) {
    Engine& engine = context.messages;
    Request* request = engine.make();
    if (request == nullptr) {
        return no_memory_for_request();
    }
    const Buffer buffer = buffer_of(buf, count, datatype);
    if (*message == MPI_MESSAGE_NO_PROC) {
        request->operation = Operation::receive;
        request->null_peer = true;
        request->buffer = buffer;
        bind(context, *request, context.communicators.self());
        *message = MPI_MESSAGE_NULL;
        return start_new(context, request, handle);
    }
    Matched* matched = engine.matched().find(*message);
    if (matched == nullptr) {
        engine.discard(*request);
        return fail(MPI_ERR_REQUEST, "message %p is not a matched message",
                    static_cast<void*>(*message));
    }
    auto& comm = *static_cast<comm::Communicator*>(matched->communicator);
    Engine::prepare_receive(*request, buffer, matched->message->envelope);
    bind(context, *request, comm);
    engine.start_matched(*matched->message, *request, awaited);
    engine.matched().remove(*matched);
    release(context, comm);
    *message = MPI_MESSAGE_NULL;
    *handle = request_handle(*request);
    return {};
}

Error mrecv(Context& context, void* buf, MPI_Count count, const datatype::Datatype& datatype,
            MPI_Message* message, MPI_Status* status) {
    MPI_Request handle = MPI_REQUEST_NULL;
    if (Error error = imrecv(context, buf, count, datatype, message, &handle, true)) {
        return error;
    }
    Request& request = *context.messages.requests().find(handle);
    context.messages.wait(request);
    return end_request(context, request, &handle, status);
}

} // namespace warren::mpi
