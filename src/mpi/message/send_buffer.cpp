#include "mpi/message/send_buffer.hpp"

#include <cstdlib>
#include <limits>
#include <utility>

namespace warren::message {

namespace {

constexpr std::uintptr_t alignment = 16;

std::byte* aligned(std::byte* address) {
    return reinterpret_cast<std::byte*>(
        (reinterpret_cast<std::uintptr_t>(address) + alignment - 1) & ~(alignment - 1));
}

bool automatic(const void* base) {
    return base == MPI_BUFFER_AUTOMATIC;
}

} // namespace

SendBuffer::~SendBuffer() {
    while (automatic(base_) && first_ != nullptr) {
        std::free(std::exchange(first_, first_->next));
    }
}

void SendBuffer::attach(void* base, MPI_Count bytes) {
    base_ = static_cast<std::byte*>(base);
    bytes_ = bytes;
}

SendBuffer::Message* SendBuffer::place(MPI_Count bytes) {
    if (automatic(base_)) {
        auto* message = static_cast<Message*>(std::malloc(static_cast<std::size_t>(bytes)));
        if (message != nullptr) {
            *message = {.next = first_, .request = nullptr, .bytes = bytes};
            first_ = message;
        }
        return message;
    }
    // First fit: messages leave in about the order in which they came.
    std::byte* end = base_ + bytes_;
    std::byte* start = aligned(base_);
    Message** link = &first_;
    while (*link != nullptr && reinterpret_cast<std::byte*>(*link) - start < bytes) {
        start = aligned(reinterpret_cast<std::byte*>(*link) + (*link)->bytes);
        link = &(*link)->next;
    }
    if (*link == nullptr && end - start < bytes) {
        return nullptr;
    }
    auto* message = reinterpret_cast<Message*>(start);
    *message = {.next = *link, .request = nullptr, .bytes = bytes};
    *link = message;
    return message;
}

void SendBuffer::reclaim(Engine& engine) {
    Message** link = &first_;
    while (*link != nullptr) {
        Message* message = *link;
        if (message->request == nullptr || message->request->complete) {
            *link = message->next;
            if (message->request != nullptr) {
                engine.discard(*message->request);
            }
            if (automatic(base_)) {
                std::free(message);
            }
        } else {
            link = &message->next;
        }
    }
}

Error SendBuffer::send(Engine& engine, const Buffer& buffer, std::uint32_t peer,
                       const Envelope& envelope) {
    reclaim(engine);
    const MPI_Count data_bytes = buffer.bytes();
    constexpr auto header = static_cast<MPI_Count>(sizeof(Message));
    static_assert(sizeof(Message) + alignment <= MPI_BSEND_OVERHEAD);
    constexpr MPI_Count longest = std::numeric_limits<MPI_Count>::max() - header;
    const bool may_fit = attached() && data_bytes <= longest;
    Message* message = may_fit ? place(data_bytes + header) : nullptr;
    if (message == nullptr && may_fit && engine.progress()) {
        reclaim(engine);
        message = place(data_bytes + header);
    }
    if (message == nullptr) {
        return fail(MPI_ERR_BUFFER,
                    attached() ? "no space in the attached buffer of %lld bytes for a message of "
                                 "%lld bytes and MPI_BSEND_OVERHEAD"
                               : "no buffer is attached (%lld bytes) for a buffered send of %lld "
                                 "bytes; call MPI_Buffer_attach first",
                    static_cast<long long>(bytes_), static_cast<long long>(data_bytes));
    }
    void* data = message + 1;
    buffer.type->pack(buffer.base, buffer.count, data);
    Request* request = engine.make();
    if (request == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory for one more request");
    }
    Engine::prepare_send(*request, Operation::buffered,
                         {data, data_bytes, &datatype::basic(MPI_BYTE)}, peer, envelope);
    message->request = request;
    Error error = engine.start(*request);
    engine.requests().leave(*request); // MPI_Finalize, and not only a detach, lets it arrive
    reclaim(engine);
    return error;
}

void SendBuffer::abandon(Engine& engine) {
    reclaim(engine);
    while (first_ != nullptr) {
        Message* message = first_;
        first_ = message->next;
        if (automatic(base_)) {
            message->request->attachment = message;
            message->request->release = [](Request& request) { std::free(request.attachment); };
        }
        engine.discard(*message->request);
    }
}

bool SendBuffer::empty(Engine& engine) {
    reclaim(engine);
    return first_ == nullptr;
}

void SendBuffer::flush(Engine& engine) {
    engine.wait_until([&] { return empty(engine); }, {.call = engine.current_call});
}

void SendBuffer::detach(void*& base, MPI_Count& bytes) {
    base = base_;
    bytes = bytes_;
    base_ = nullptr;
    bytes_ = 0;
}

} // namespace warren::message
