#include "coll/channel.hpp"

namespace warren::coll {

namespace {

Error failure_of(const message::Outcome& outcome) {
    if (outcome.error_class == MPI_SUCCESS) {
        return {};
    }
    if (outcome.error_class == MPI_ERR_TRUNCATE) {
        return fail(
            MPI_ERR_TRUNCATE,
            "rank %d sent %lld bytes in a collective operation where this rank expects %lld",
            outcome.source, static_cast<long long>(outcome.available),
            static_cast<long long>(outcome.bytes));
    }
    return fail(outcome.error_class, "a message of rank %d in a collective operation failed",
                outcome.source);
}

} // namespace

Buffer bytes_of(void* base, MPI_Count bytes) {
    return {base, bytes, &datatype::basic(MPI_BYTE)};
}

Buffer bytes_of(const void* base, MPI_Count bytes) {
    return bytes_of(const_cast<void*>(base), bytes);
}

Error Channel::send(const Buffer& buffer, int to) const {
    return engine_.send(message::Operation::send, buffer, communicator_.world_rank(to),
                        envelope(rank()));
}

Error Channel::receive(const Buffer& buffer, int from) const {
    message::Outcome outcome;
    if (Error error = engine_.receive(buffer, envelope(from), outcome)) {
        return error;
    }
    return failure_of(outcome);
}

Error Channel::exchange(const Buffer& out, int to, const Buffer& in, int from) const {
    Batch batch(*this);
    batch.start_receive(in, from);
    Error sent = send(out, to);
    Error received = batch.finish();
    if (sent) {
        received.drop();
        return sent;
    }
    return received;
}

void Batch::start_send(const Buffer& buffer, int to) {
    message::Request* request = channel_.engine_.make();
    if (request != nullptr) {
        message::Engine::prepare_send(*request, message::Operation::send, buffer,
                                      channel_.communicator_.world_rank(to),
                                      channel_.envelope(channel_.rank()));
    }
    start(request);
}

void Batch::start_receive(const Buffer& buffer, int from) {
    message::Request* request = channel_.engine_.make();
    if (request != nullptr) {
        message::Engine::prepare_receive(*request, buffer, channel_.envelope(from));
    }
    start(request);
}

void Batch::start(message::Request* request) {
    if (request == nullptr) {
        keep(fail(MPI_ERR_NO_MEM, "no memory for the requests of a collective operation"));
        return;
    }
    if (Error error = channel_.engine_.start(*request)) {
        keep(error);
        channel_.engine_.discard(*request);
        return;
    }
    requests_.push_back(request);
}

void Batch::keep(Error error) {
    if (first_error_) {
        error.drop();
    } else {
        first_error_ = error;
    }
}

Error Batch::finish() {
    for (message::Request* request : requests_) {
        channel_.engine_.wait(*request);
        keep(failure_of(request->outcome));
        channel_.engine_.discard(*request);
    }
    requests_.clear();
    Error error = first_error_;
    first_error_ = {};
    return error;
}

} // namespace warren::coll
