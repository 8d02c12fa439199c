#include "coll/immediate.hpp"

#include <utility>

#include "coll/channel.hpp"
#include "coll/shared.hpp"

namespace warren::coll {

Immediate::~Immediate() {
    // Only when memory has run out on the way: what is under way goes on by itself.
    while (under_way_ != nullptr) {
        engine_.discard(*std::exchange(under_way_, under_way_->next_stepping));
    }
    first_error_.drop();
}

void Immediate::keep(Error error) {
    if (first_error_) {
        error.drop();
    } else {
        first_error_ = error;
    }
}

void Immediate::start(message::Request* request) {
    if (request == nullptr) {
        keep(fail(MPI_ERR_NO_MEM, "no memory for the requests of a collective operation"));
        return;
    }
    if (Error error = engine_.start(*request)) {
        keep(error);
        engine_.discard(*request);
        return;
    }
    request->next_stepping = under_way_;
    under_way_ = request;
}

void Immediate::start_send(const Buffer& buffer, int to) {
    if (first_error_) [[unlikely]] {
        return;
    }
    const std::uint32_t peer = speaking().world_rank(to);
    if (engine_.send_now(buffer, peer, envelope(rank()))) {
        return;
    }
    message::Request* request = engine_.make();
    if (request != nullptr) {
        message::Engine::prepare_send(*request, message::Operation::send, buffer, peer,
                                      envelope(rank()));
    }
    start(request);
}

void Immediate::start_receive(const Buffer& buffer, int from) {
    if (first_error_) [[unlikely]] {
        return;
    }
    if (message::Request* request = engine_.receive_later(buffer, envelope(from))) {
        request->next_stepping = under_way_;
        under_way_ = request;
        return;
    }
    message::Request* request = engine_.make();
    if (request != nullptr) {
        message::Engine::prepare_receive(*request, buffer, envelope(from));
    }
    start(request);
}

void Immediate::finish() {
    while (under_way_ != nullptr) {
        message::Request& request = *under_way_;
        engine_.wait(request);
        under_way_ = request.next_stepping;
        keep(failure_of(request.outcome));
        engine_.discard(request);
    }
}

void Immediate::send(const Buffer& buffer, int to) {
    if (!first_error_) [[likely]] {
        keep(engine_.send(message::Operation::send, buffer, speaking().world_rank(to),
                          envelope(rank())));
    }
}

void Immediate::receive(const Buffer& buffer, int from) {
    if (!first_error_) [[likely]] {
        std::size_t bytes;
        if (buffer.type->contiguous && buffer.type->predefined &&
            engine_.receive_short(buffer.base, static_cast<std::size_t>(buffer.bytes()),
                                  static_cast<std::size_t>(buffer.type->size),
                                  speaking().world_rank(from), envelope(from), bytes)) {
            return;
        }
        message::Outcome outcome;
        if (Error error = engine_.receive(buffer, envelope(from), outcome)) {
            keep(error);
        } else if (outcome.error_class != MPI_SUCCESS) [[unlikely]] {
            keep(failure_of(outcome));
        }
    }
}

void Immediate::exchange(const Buffer& out, int to, const Buffer& in, int from) {
    // What has left at once needs nobody's receive.
    constexpr auto few = static_cast<MPI_Count>(message::Engine::short_bytes);
    if (!first_error_ && out.bytes() <= few && in.bytes() <= few &&
        engine_.send_now(out, speaking().world_rank(to), envelope(rank()))) {
        return receive(in, from);
    }
    start_receive(in, from);
    start_send(out, to);
    finish();
}

void Immediate::copy(const Buffer& from, const Buffer& to) {
    if (!first_error_) [[likely]] {
        coll::copy(from, to);
    }
}

void Immediate::combine(const Reduction& reduction, const void* in, void* inout, MPI_Count count) {
    if (!first_error_) [[likely]] {
        apply_unlocked(engine_.rank(), reduction.op, in, inout, count, reduction.type);
    }
}

Error Immediate::end() {
    finish();
    return std::exchange(first_error_, Error());
}

} // namespace warren::coll
