#include "mpi/coll/immediate.hpp"

#include <algorithm>
#include <utility>

#include "mpi/coll/channel.hpp"
#include "mpi/coll/unlocked_op.hpp"

namespace warren::coll {

namespace {

// A call's messages have its kind and some bits of its number for a tag.
constexpr std::int32_t tags_of_call = 16;
constexpr std::uint64_t calls_told_apart = std::uint64_t{1} << 20;
static_assert(static_cast<std::int32_t>(Tag::partitioned) < tags_of_call);
static_assert(tags_of_call * calls_told_apart <= static_cast<std::uint64_t>(Tag::duplicate));

} // namespace

Immediate::~Immediate() {
    // Requests are left only when memory has run out: they complete without this call.
    while (under_way_ != nullptr) {
        engine_.discard(*std::exchange(under_way_, under_way_->next_part));
    }
    first_error_.drop();
}

void Immediate::name(Tag tag) {
    tag_ = static_cast<std::int32_t>(tag);
    if (ring_) {
        // So that messages of a call that failed are not taken for a later call's.
        const std::uint64_t call = ring_->call().begin_messages(tag, common_) % calls_told_apart;
        tag_ += static_cast<std::int32_t>(call) * tags_of_call;
        knows_next_ = false;
        knows_previous_ = false;
    }
}

void Immediate::keep(Error error) {
    if (first_error_) {
        error.drop();
    } else {
        first_error_ = error;
    }
}

void Immediate::start(message::Request* request, int peer) {
    if (request == nullptr) {
        keep(fail(MPI_ERR_NO_MEM, "no memory for the requests of a collective operation"));
        return;
    }
    // The call waits for all that it begins.
    constexpr bool awaited = true;
    if (Error error = engine_.start(*request, awaited)) {
        keep(error);
        engine_.discard(*request);
        return;
    }
    keep_under_way(*request, peer);
}

void Immediate::keep_under_way(message::Request& request, int peer) {
    if (!request.complete) {
        request.outcome.source = peer; // until it completes
    }
    request.next_part = under_way_;
    under_way_ = &request;
}

void Immediate::start_send(const Buffer& buffer, int to) {
    if (is_elsewhere(to)) [[unlikely]] {
        return;
    }
    const Buffer sent = first_error_ ? no_data() : buffer;
    const std::uint32_t peer = speaking().endpoint(to);
    if (engine_.send_now(sent, peer, envelope(rank()))) {
        return;
    }
    message::Request* request = engine_.make();
    if (request != nullptr) {
        message::Engine::prepare_send(*request, message::Operation::send, sent, peer,
                                      envelope(rank()));
    }
    start(request, to);
}

void Immediate::start_receive(const Buffer& buffer, int from) {
    if (is_elsewhere(from)) [[unlikely]] {
        return;
    }
    if (message::Request* request = engine_.receive_later(buffer, envelope(from))) {
        keep_under_way(*request, from);
        return;
    }
    message::Request* request = engine_.make();
    if (request != nullptr) {
        message::Engine::prepare_receive(*request, buffer, envelope(from));
    }
    start(request, from);
}

void Immediate::finish() {
    while (under_way_ != nullptr) {
        message::Request& request = *under_way_;
        const bool answers = await(request);
        under_way_ = request.next_part;
        if (!request.complete) [[unlikely]] {
            const int peer = request.outcome.source;
            engine_.orphan(request);
            keep(answers ? ring_->call().outcome()
                         : fail(MPI_ERR_PROC_ABORTED, "rank %d has ended", peer));
            continue;
        }
        if (request.outcome.error_class != MPI_SUCCESS || is_short(request)) [[unlikely]] {
            keep(failure_of(request.outcome, static_cast<MPI_Count>(request.bytes)));
        }
        if (request.operation == message::Operation::receive) {
            heard(request.outcome.source);
        }
        engine_.discard(request);
    }
}

// Whether a peer's process has ended (mpiexec --keep-going).
bool Immediate::has_ended(int peer) const {
    return engine_.rank().has_ended(speaking().endpoint(peer));
}

// Waits for a request unless its peer turns out to be elsewhere, or to have ended. Returns false if
// it has. (It is looked for before a sleep: what it has sent before has come by then.)
bool Immediate::await(message::Request& request) {
    if (request.complete) {
        return true;
    }
    const int peer = request.outcome.source;
    bool ended = false;
    engine_.wait_unless(
        request,
        [&] {
            return ended || (ring_ && ring_->call().unequal() && ring_->call().differs_at(peer));
        },
        [&] {
            if (has_ended(peer)) [[unlikely]] {
                ended = true;
                return true;
            }
            if (!ring_) {
                return false;
            }
            tell_sleepers();
            return ring_->call().differs_at(peer);
        });
    return request.complete || !ended;
}

// Another thread of the rank may free the datatype meanwhile.
void Immediate::finish_keeping(const datatype::Datatype& type) {
    datatype::retain(type);
    finish();
    datatype::release(type);
}

void Immediate::send(const Buffer& buffer, int to) {
    start_send(buffer, to);
    if (under_way_ != nullptr) {
        finish_keeping(*buffer.type);
    }
}

void Immediate::receive(const Buffer& buffer, int from) {
    std::size_t bytes;
    if (!is_elsewhere(from) && buffer.type->contiguous && buffer.type->predefined &&
        engine_.receive_short(buffer.base, static_cast<std::size_t>(buffer.bytes()),
                              static_cast<std::size_t>(buffer.type->size),
                              speaking().endpoint(from), envelope(from), message::Engine::no_call,
                              bytes)) {
        if (static_cast<MPI_Count>(bytes) != buffer.bytes()) [[unlikely]] {
            keep(too_short(from, static_cast<MPI_Count>(bytes), buffer.bytes()));
        }
        heard(from);
        return;
    }
    start_receive(buffer, from);
    finish_keeping(*buffer.type);
}

void Immediate::exchange(const Buffer& out, int to, const Buffer& in, int from) {
    // A message that has left at once needs nobody's receive.
    constexpr auto few = static_cast<MPI_Count>(message::Engine::short_bytes);
    if (!first_error_ && out.bytes() <= few && in.bytes() <= few &&
        engine_.send_now(out, speaking().endpoint(to), envelope(rank()))) {
        return receive(in, from);
    }
    start_receive(in, from);
    start_send(out, to);
    finish();
}

void Immediate::copy(const Buffer& from, const Buffer& to) {
    if (first_error_) [[unlikely]] {
        return;
    }
    // Operations that are under way go on meanwhile: peers wait for room, or for what they are
    // sent.
    const MPI_Count bytes = std::min(from.bytes(), to.bytes());
    if (under_way_ == nullptr || bytes <= 2 * bytes_between_looks || from.same_place(to)) {
        coll::copy(from, to);
        return;
    }
    for (MPI_Count first = 0; first < bytes; first += bytes_between_looks) {
        datatype::copy_data(from, to, first, std::min(bytes_between_looks, bytes - first));
        engine_.progress();
    }
}

void Immediate::combine(const Reduction& reduction, const void* in, void* inout, MPI_Count count) {
    if (!first_error_) [[likely]] {
        apply_unlocked(engine_.rank(), reduction.op, in, inout, count, reduction.type);
    }
}

void Immediate::tell_sleepers() {
    if ((!knows_next_ || !knows_previous_) &&
        ring_->call().tell_sleepers(!knows_next_, !knows_previous_)) [[unlikely]] {
        knows_next_ = true;
        knows_previous_ = true;
    }
}

Error Immediate::end() {
    finish();
    if (ring_) {
        tell_sleepers();
        if (ring_->call().unequal()) [[unlikely]] {
            keep(ring_->call().outcome());
            if (!ring_->call().all_take_messages()) {
                ring_->arrive_aside();
            }
        }
    }
    return std::exchange(first_error_, Error());
}

} // namespace warren::coll
