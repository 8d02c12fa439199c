#include "mpi/coll/schedule.hpp"

#include "mpi/coll/channel.hpp"
#include "mpi/coll/unlocked_op.hpp"

namespace warren::coll {

namespace {

// A rank that has failed sends this instead of data: its receiver sees that by the length.
Buffer failure_of_length(const Buffer& buffer) {
    static std::byte word;
    return buffer.bytes() != 0 ? no_data() : Buffer{&word, 1, &datatype::basic(MPI_BYTE)};
}

} // namespace

Schedule::~Schedule() {
    for (const Step& step : steps_) {
        for (const Buffer* buffer : {&step.buffer, &step.target}) {
            if (buffer->type != nullptr) {
                datatype::release(*buffer->type);
            }
        }
    }
}

// --- Writing

void Schedule::add(const Step& step) {
    steps_.push_back(step);
    retain_types(step);
}

void Schedule::retain_types(const Step& step) {
    for (const Buffer* buffer : {&step.buffer, &step.target}) {
        if (buffer->type != nullptr) {
            datatype::retain(*buffer->type);
        }
    }
}

void Schedule::refuse(Error error) {
    refused_ = error.error_class();
    error.drop();
}

void Schedule::start_send(const Buffer& buffer, int to) {
    add({.kind = Kind::send, .peer = to, .communicator = &speaking(), .buffer = buffer});
    unfinished_ = true;
}

void Schedule::start_receive(const Buffer& buffer, int from) {
    add({.kind = Kind::receive, .peer = from, .communicator = &speaking(), .buffer = buffer});
    unfinished_ = true;
}

void Schedule::finish() {
    if (unfinished_) {
        add({.kind = Kind::finish});
        unfinished_ = false;
    }
}

void Schedule::send(const Buffer& buffer, int to) {
    start_send(buffer, to);
    finish();
}

void Schedule::receive(const Buffer& buffer, int from) {
    start_receive(buffer, from);
    finish();
}

void Schedule::exchange(const Buffer& out, int to, const Buffer& in, int from) {
    start_receive(in, from);
    start_send(out, to);
    finish();
}

void Schedule::copy(const Buffer& from, const Buffer& to) {
    if (from.base != to.base || from.type != to.type) {
        add({.kind = Kind::copy, .buffer = from, .target = to});
    }
}

void Schedule::combine(const Reduction& reduction, const void* in, void* inout, MPI_Count count) {
    op_ = reduction.op;
    add({.kind = Kind::combine,
         .buffer = {const_cast<void*>(in), count, &reduction.type},
         .target = {inout, 0, nullptr}});
}

void Schedule::hold_copy(const Buffer& section, const Buffer& copy, CopyUse use) {
    copies_.emplace_back(copy.base);
    finish();
    if (use.fill) {
        const Step filling = {.kind = Kind::copy, .buffer = section, .target = copy};
        steps_.insert(steps_.begin(), filling);
        retain_types(filling);
    }
    if (use.goes_back) {
        add({.kind = Kind::copy, .buffer = copy, .target = section});
    }
}

// --- Running

void Schedule::attach(message::Request& request) {
    request.operation = message::Operation::collective;
    request.envelope = envelope(communicator_, MPI_ANY_SOURCE);
    request.peer = static_cast<std::uint32_t>(MPI_ANY_SOURCE); // for who asks what it waits for
    request.attachment = this;
    request.stepping.step = [](message::Request& stepping) {
        auto& schedule = *static_cast<Schedule*>(stepping.attachment);
        if (!schedule.advance()) {
            return false;
        }
        stepping.outcome = schedule.outcome_;
        return true;
    };
}

void Schedule::start(message::Engine& engine, message::Request& request) {
    auto& schedule = *static_cast<Schedule*>(request.attachment);
    schedule.next_ = 0;
    schedule.outcome_ = {};
    schedule.outcome_.error_class = schedule.refused_;
    request.active = true;
    request.complete = false;
    if (!request.stepping.step(request)) {
        engine.start_stepping(request);
    } else {
        request.complete = true;
    }
}

bool Schedule::advance() {
    if (running_) {
        return false;
    }
    running_ = true;
    const bool done = do_rounds();
    running_ = false;
    return done;
}

bool Schedule::do_rounds() {
    for (;;) {
        // The newest first: the order does not matter, one look at one of them does.
        while (under_way_ != nullptr) {
            message::Request& request = *under_way_;
            if (!request.complete) {
                return false;
            }
            under_way_ = request.next_part;
            if (!failed()) {
                note_failure(request);
            }
            engine_.discard(request);
        }
        if (next_ == steps_.size()) {
            return true;
        }
        while (next_ < steps_.size()) {
            const Step& step = steps_[next_++];
            if (step.kind == Kind::finish) {
                break;
            }
            perform(step);
        }
    }
}

void Schedule::note_failure(const message::Request& request) {
    int error_class = request.outcome.error_class;
    if (error_class == MPI_SUCCESS && is_short(request)) {
        error_class = MPI_ERR_TRUNCATE;
    }
    if (error_class == MPI_SUCCESS) {
        return;
    }
    outcome_ = request.outcome;
    // Where ranks have ended, others have failed because of them.
    if (error_class == MPI_ERR_TRUNCATE && engine_.rank().header().ended_ranks.load() != 0) {
        error_class = MPI_ERR_PROC_ABORTED;
        outcome_.source = MPI_ANY_SOURCE;
    }
    outcome_.error_class = error_class;
}

void Schedule::perform(const Step& step) {
    switch (step.kind) {
    case Kind::send:
    case Kind::receive:
        return perform_message(step);
    case Kind::copy:
        return failed() ? void() : coll::copy(step.buffer, step.target);
    case Kind::combine:
        return failed() ? void()
                        : apply_unlocked(engine_.rank(), op_, step.buffer.base, step.target.base,
                                         step.buffer.count, *step.buffer.type);
    case Kind::finish:
        break;
    }
}

void Schedule::perform_message(const Step& step) {
    const bool sends = step.kind == Kind::send;
    const Buffer buffer = sends && failed() ? failure_of_length(step.buffer) : step.buffer;
    const message::Envelope own = envelope(*step.communicator, rank());
    if (sends && engine_.send_now(buffer, step.communicator->endpoint(step.peer), own)) {
        return;
    }
    message::Request* request = engine_.make();
    if (request == nullptr) {
        outcome_.error_class = MPI_ERR_NO_MEM;
        return;
    }
    if (sends) {
        message::Engine::prepare_send(*request, message::Operation::send, buffer,
                                      step.communicator->endpoint(step.peer), own);
    } else {
        message::Engine::prepare_receive(*request, step.buffer,
                                         envelope(*step.communicator, step.peer));
    }
    if (Error error = engine_.start(*request)) {
        keep(error);
        engine_.discard(*request);
        return;
    }
    request->next_part = under_way_;
    under_way_ = request;
}

void Schedule::keep(Error error) {
    if (error) [[unlikely]] {
        outcome_.error_class = error.error_class();
        error.drop();
    }
}

} // namespace warren::coll
