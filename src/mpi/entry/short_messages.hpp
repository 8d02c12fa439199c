// The short ways of MPI_Send, MPI_Isend, MPI_Recv and MPI_Irecv: what a message of a few bytes
// needs (and a receive of any size, until its message is there), and nothing else.
//
// They are tried before an entry point does anything. They take what programs do again and again:
// a predefined type, a rank of a communicator, no wildcard, one thread, nothing that must come
// first. False means that nothing has been done: the long way then finds out whether
// it is something else or a mistake. Every check of the long way that could fail is therefore a
// reason to say false here. Thread rule: by any thread; they leave ranks whose lock is closed,
// because it is shared or a tool counts, alone.
#pragma once

#include <cstdint>

#include "base/page.hpp"
#include "mpi/calls.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/requests.hpp"

namespace warren::mpi {

// The checked arguments of a short message.
struct ShortMessage {
    Context* context;
    comm::Communicator* communicator;
    message::Envelope envelope; // of a send
    std::size_t bytes;
    std::size_t element_bytes;
};

// False: no message of at most `limit` elements of a short type, or not valid.
[[gnu::always_inline]] inline bool short_message(const void* buf, MPI_Count count,
                                                 std::uint64_t limit, MPI_Datatype datatype,
                                                 int peer, int tag, MPI_Comm comm,
                                                 ShortMessage& message) {
    Context* context = own_context;
    if (context == nullptr || context->rank.lock.closed() || context->failed_on != nullptr)
        [[unlikely]] {
        return false;
    }
    const std::uintptr_t type =
        reinterpret_cast<std::uintptr_t>(datatype) - datatype::predefined_first;
    // MPI_BOTTOM and MPI_IN_PLACE are below the first page.
    if (type >= datatype::predefined_limit || tag < 0 ||
        reinterpret_cast<std::uintptr_t>(buf) < first_address) [[unlikely]] {
        return false;
    }
    const std::uint64_t size = datatype::short_sizes[type];
    const auto elements = static_cast<std::uint64_t>(count);
    if (size > transport::inline_bytes || elements > limit) [[unlikely]] {
        return false;
    }
    comm::Communicator* communicator = context->communicators.find(comm);
    if (communicator == nullptr ||
        static_cast<unsigned>(peer) >= static_cast<unsigned>(communicator->peers())) [[unlikely]] {
        return false;
    }
    message.context = context;
    message.communicator = communicator;
    message.envelope = {
        .context = communicator->context(), .source = communicator->rank(), .tag = tag};
    message.bytes = static_cast<std::size_t>(elements * size);
    message.element_bytes = static_cast<std::size_t>(size);
    return true;
}

[[gnu::always_inline]] inline bool short_send(const void* buf, MPI_Count count,
                                              MPI_Datatype datatype, int dest, int tag,
                                              MPI_Comm comm) {
    ShortMessage message;
    return short_message(buf, count, message::Engine::short_bytes, datatype, dest, tag, comm,
                         message) &&
           message.context->messages.send_short(
               buf, message.bytes, message.communicator->endpoint(dest), message.envelope);
}

[[gnu::always_inline]] inline bool short_isend(const void* buf, MPI_Count count,
                                               MPI_Datatype datatype, int dest, int tag,
                                               MPI_Comm comm, MPI_Request* request) {
    ShortMessage message;
    if (request == nullptr ||
        !short_message(buf, count, message::Engine::short_bytes, datatype, dest, tag, comm,
                       message) ||
        !message.context->messages.send_short(
            buf, message.bytes, message.communicator->endpoint(dest), message.envelope))
        [[unlikely]] {
        return false;
    }
    *request = request_handle(message.context->messages.sent());
    return true;
}

// The most elements of a receive: their bytes can be counted.
inline constexpr std::uint64_t short_receive_limit = std::uint64_t{1} << 48;

template <typename Count>
[[gnu::always_inline]] inline bool short_recv(void* buf, Count count, MPI_Datatype datatype,
                                              int source, int tag, MPI_Comm comm,
                                              MPI_Status* status) {
    constexpr std::uint32_t call =
        sizeof(Count) == sizeof(int) ? calls::MPI_Recv : calls::MPI_Recv_c;
    ShortMessage message;
    if (!short_message(buf, count, short_receive_limit, datatype, source, tag, comm, message))
        [[unlikely]] {
        return false;
    }
    message.envelope.source = source;
    std::size_t bytes;
    if (!message.context->messages.receive_short(buf, message.bytes, message.element_bytes,
                                                 message.communicator->endpoint(source),
                                                 message.envelope, call, bytes)) [[unlikely]] {
        return false;
    }
    set_status(status, {.source = source, .tag = tag, .bytes = static_cast<MPI_Count>(bytes)});
    return true;
}

[[gnu::always_inline]] inline bool short_irecv(void* buf, MPI_Count count, MPI_Datatype datatype,
                                               int source, int tag, MPI_Comm comm,
                                               MPI_Request* request) {
    ShortMessage message;
    if (request == nullptr || !short_message(buf, count, short_receive_limit, datatype, source, tag,
                                             comm, message)) [[unlikely]] {
        return false;
    }
    message.envelope.source = source;
    message::Request* made = message.context->messages.receive_later(
        buffer_of(buf, count, datatype::basic(datatype)), message.envelope);
    if (made == nullptr) [[unlikely]] {
        return false;
    }
    bind_plain(*message.context, *made, *message.communicator);
    *request = request_handle(*made);
    return true;
}

} // namespace warren::mpi
