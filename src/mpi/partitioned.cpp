#include "mpi/partitioned.hpp"

#include <algorithm>

#include "coll/agreement.hpp"
#include "coll/steps.hpp"
#include "comm/context_ids.hpp"
#include "mpi/point_to_point.hpp"
#include "mpi/release.hpp"
#include "mpi/requests.hpp"

namespace warren::mpi {

using message::Buffer;
using message::Engine;
using message::Envelope;
using message::Operation;
using message::Request;

namespace {

// What a sender tells its receiver: plain memory, which travels as bytes.
struct Announcement {
    std::uint32_t context; // of the messages, one per partition of the sender
    std::int32_t tag;
    std::int32_t partitions;
    std::int32_t unused;
    std::int64_t partition_bytes;
};

// The pair's messages: from its only sender, tagged with the partition's number.
Envelope envelope_of(std::uint32_t context, int partition) {
    return {.context = context, .source = 0, .tag = partition};
}

// Both kinds.
struct Partitioned {
    Partitioned(bool is_send, const Buffer& one_partition, int count)
        : sends(is_send), partition(one_partition), partitions(count) {}

    const bool sends;
    const Buffer partition; // the first one
    const int partitions;
    // Messages under way by number; null: none, or it has ended.
    std::vector<Request*> messages;
    int ended = 0; // all messages below this one have
};

Partitioned& state_of(const Request& request) {
    return *static_cast<Partitioned*>(request.attachment);
}

struct Send : Partitioned {
    using Partitioned::Partitioned;

    std::uint32_t context = 0;
    std::vector<bool> ready;
    int ready_count = 0;

    Buffer buffer_of(int number) const {
        auto* base = static_cast<std::byte*>(partition.base) +
                     number * partition.count * partition.type->extent;
        return {base, partition.count, partition.type};
    }
};

} // namespace

struct PartitionedMatching::Receive : Partitioned {
    using Partitioned::Partitioned;

    std::uint32_t comm_context = 0;
    int source = 0;
    int tag = 0;
    bool matched = false;
    bool orphan = false; // the request is gone
    Announcement announcement;
    bool posted = false; // this round's receives
    int error_class = MPI_SUCCESS;
    // Of messages that begin or end inside elements of a type with gaps: all data, as it came.
    std::unique_ptr<std::byte[]> staged;

    MPI_Count bytes() const { return partitions * partition.bytes(); }
    // The bytes before a message; at most all that there are.
    MPI_Count begin_of(int number) const {
        return std::min(number * announcement.partition_bytes, bytes());
    }
    Buffer buffer_of(int number);
    void post(Context& context, Request& request);
    void end_message(Engine& engine, int number);
    bool arrived(Engine& engine, int number);
};

namespace {

using Receive = PartitionedMatching::Receive;

Receive& receive_of(const Request& request) {
    return static_cast<Receive&>(state_of(request));
}

Send& send_of(const Request& request) {
    return static_cast<Send&>(state_of(request));
}

} // namespace

// --- Matching

// An announcement that is awaited, or has come.
struct PartitionedMatching::Notice {
    PartitionedMatching* matching;
    Context* context;
    comm::Communicator* comm; // whose context number must last until it has come
    std::uint32_t comm_context;
    int source;
    Announcement announcement;

    bool concerns(const Receive& receive) const {
        return receive.comm_context == comm_context && receive.source == source &&
               receive.tag == announcement.tag;
    }
};

PartitionedMatching::PartitionedMatching() = default;

PartitionedMatching::~PartitionedMatching() {
    for (Receive* receive : unmatched_) {
        if (receive->orphan) {
            delete receive;
        }
    }
}

Error PartitionedMatching::add(Context& context, Receive& receive, comm::Communicator& comm) {
    Engine& engine = context.messages;
    auto notice = std::make_unique<Notice>(
        Notice{this, &context, &comm, comm.collective_context(), receive.source, {}});
    Request* request = engine.make();
    if (request == nullptr) {
        return no_memory_for_request();
    }
    Engine::prepare_receive(*request,
                            coll::bytes_of(&notice->announcement, sizeof notice->announcement),
                            {.context = comm.collective_context(),
                             .source = receive.source,
                             .tag = static_cast<int>(coll::Tag::partitioned)});
    request->attachment = notice.get();
    request->release = arrived;
    context.communicators.retain(comm);
    awaited_.push_back(std::move(notice));
    unmatched_.push_back(&receive);
    if (Error error = engine.start(*request)) {
        // (A receive of contiguous bytes does not fail.)
        engine.discard(*request);
        return error;
    }
    // Nobody waits for it: it ends by itself, in arrived().
    engine.discard(*request);
    match(context);
    return {};
}

// The end of an announcement's request, in the middle of the engine's progress.
void PartitionedMatching::arrived(Request& request) {
    auto* notice = static_cast<Notice*>(request.attachment);
    PartitionedMatching& matching = *notice->matching;
    const auto own = std::find_if(matching.awaited_.begin(), matching.awaited_.end(),
                                  [&](const auto& each) { return each.get() == notice; });
    matching.announced_.push_back(std::move(*own));
    matching.awaited_.erase(own);
    release(*notice->context, *notice->comm);
}

void PartitionedMatching::match(Context& context) {
    for (auto notice = announced_.begin(); notice != announced_.end();) {
        const auto found =
            std::find_if(unmatched_.begin(), unmatched_.end(),
                         [&](const Receive* receive) { return (*notice)->concerns(*receive); });
        if (found == unmatched_.end()) {
            ++notice;
            continue;
        }
        Receive& receive = **found;
        unmatched_.erase(found);
        receive.announcement = (*notice)->announcement;
        receive.matched = true;
        notice = announced_.erase(notice);
        if (receive.orphan) {
            end(context, receive);
        }
    }
}

void PartitionedMatching::end(Context& context, Receive& receive) {
    if (!receive.matched) {
        receive.orphan = true; // keeps its place among those that wait for announcements
        return;
    }
    coll::give_back(context.rank, {receive.announcement.context, 0});
    delete &receive;
}

// --- Sending

namespace {

void release_send(Request& request) {
    Send& send = send_of(request);
    auto& context = *static_cast<Context*>(request.context);
    coll::give_back(context.rank, {send.context, 0});
    delete &send;
    release_bound(request);
}

void release_announcement(Request& request) {
    delete static_cast<Announcement*>(request.attachment);
}

// Leaves at once or by itself.
Error announce(Engine& engine, const Announcement& announcement, std::uint32_t peer,
               const comm::Communicator& comm) {
    const Envelope envelope = {.context = comm.collective_context(),
                               .source = comm.rank(),
                               .tag = static_cast<int>(coll::Tag::partitioned)};
    if (engine.send_now(coll::bytes_of(&announcement, sizeof announcement), peer, envelope)) {
        return {};
    }
    Request* request = engine.make();
    if (request == nullptr) {
        return no_memory_for_request();
    }
    auto* copy = new Announcement(announcement);
    request->attachment = copy;
    request->release = release_announcement;
    Engine::prepare_send(*request, Operation::send, coll::bytes_of(copy, sizeof *copy), peer,
                         envelope);
    Error error = engine.start(*request);
    engine.discard(*request);
    return error;
}

bool step_send(Request& request) {
    Send& send = send_of(request);
    if (send.ready_count < send.partitions) {
        return false;
    }
    Engine& engine = static_cast<Context*>(request.context)->messages;
    for (; send.ended < send.partitions; ++send.ended) {
        Request*& message = send.messages[static_cast<std::size_t>(send.ended)];
        if (message != nullptr) {
            if (!message->complete) {
                return false;
            }
            engine.discard(*message);
            message = nullptr;
        }
    }
    return true;
}

Error check_partitions(int partitions) {
    return partitions >= 0 ? Error() : fail(MPI_ERR_ARG, "partitions = %d is negative", partitions);
}

// Makes the request; its attachment is the caller's then.
Error make_request(Context& context, Partitioned& state, int peer, int tag,
                   comm::Communicator& comm, Request*& request) {
    request = context.messages.make();
    if (request == nullptr) {
        return no_memory_for_request();
    }
    request->operation = Operation::partitioned;
    request->persistent = true;
    request->null_peer = peer == MPI_PROC_NULL;
    request->peer = request->null_peer ? 0 : comm.world_rank(peer);
    request->envelope = {.context = comm.context(), .source = peer, .tag = tag};
    request->buffer = state.partition;
    request->attachment = &state;
    bind(context, *request, comm);
    return {};
}

} // namespace

Error psend_init(Context& context, const void* buf, int partitions, MPI_Count count,
                 const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                 comm::Info*, MPI_Request* handle) {
    if (Error error = check_partitions(partitions)) {
        return error;
    }
    auto made = std::make_unique<Send>(true, buffer_of(buf, count, datatype), partitions);
    Send* send = made.get();
    send->messages.resize(static_cast<std::size_t>(partitions));
    send->ready.resize(static_cast<std::size_t>(partitions));
    Announcement announcement = {};
    if (dest != MPI_PROC_NULL) {
        announcement.context = comm::ContextIds::take(context.rank.segment, 2);
        if (announcement.context == 0) {
            return fail(MPI_ERR_NO_MEM, "no number for another partitioned operation");
        }
        send->context = announcement.context;
        announcement.tag = tag;
        announcement.partitions = partitions;
        announcement.partition_bytes = send->partition.bytes();
    }
    Request* request = nullptr;
    if (Error error = make_request(context, *send, dest, tag, comm, request)) {
        return error;
    }
    made.release(); // NOLINT(bugprone-unused-return-value): it is the request's now
    request->release = release_send;
    request->step = step_send;
    if (dest != MPI_PROC_NULL) {
        if (Error error = announce(context.messages, announcement, request->peer, comm)) {
            context.messages.discard(*request);
            return error;
        }
    }
    *handle = request_handle(*request);
    return {};
}

namespace {

Error check_active(const Request& request, bool sends) {
    if (request.operation != Operation::partitioned || state_of(request).sends != sends) {
        return fail(MPI_ERR_REQUEST, "the request is no partitioned %s",
                    sends ? "send" : "receive");
    }
    if (sends && !request.active) {
        return fail(MPI_ERR_REQUEST, "the partitioned send has not been started");
    }
    return {};
}

Error check_partition(const Partitioned& state, int partition) {
    if (partition < 0 || partition >= state.partitions) {
        return fail(MPI_ERR_ARG, "partition %d is not in 0 … %d", partition, state.partitions - 1);
    }
    return {};
}

Error check_unready(const Send& send, int partition) {
    if (Error error = check_partition(send, partition)) {
        return error;
    }
    if (send.ready[static_cast<std::size_t>(partition)]) {
        return fail(MPI_ERR_ARG, "partition %d has been marked as ready before", partition);
    }
    return {};
}

Error send_partition(Context& context, Request& request, int partition) {
    Send& send = send_of(request);
    const auto index = static_cast<std::size_t>(partition);
    Engine& engine = context.messages;
    if (!request.null_peer) {
        const Buffer buffer = send.buffer_of(partition);
        const Envelope envelope = envelope_of(send.context, partition);
        if (!engine.send_now(buffer, request.peer, envelope)) {
            Request* message = engine.make();
            if (message == nullptr) {
                return no_memory_for_request();
            }
            Engine::prepare_send(*message, Operation::send, buffer, request.peer, envelope);
            if (Error error = engine.start(*message)) {
                engine.discard(*message);
                return error;
            }
            send.messages[index] = message;
        }
    }
    send.ready[index] = true;
    if (++send.ready_count == send.partitions && !request.null_peer) {
        // Another thread may wait for this; perhaps asleep, if all has left already.
        engine.progress();
    }
    return {};
}

} // namespace

Error pready(Context& context, int partition, Request& request) {
    return pready_range(context, partition, partition, request);
}

Error pready_range(Context& context, int partition_low, int partition_high, Request& request) {
    if (Error error = check_active(request, true)) {
        return error;
    }
    if (partition_low > partition_high) {
        return fail(MPI_ERR_ARG, "partition_low = %d is above partition_high = %d", partition_low,
                    partition_high);
    }
    const Send& send = send_of(request);
    // The ends first, so that nobody counts to a wild number.
    for (const int end : {partition_low, partition_high}) {
        if (Error error = check_partition(send, end)) {
            return error;
        }
    }
    for (int partition = partition_low; partition <= partition_high; ++partition) {
        if (Error error = check_unready(send, partition)) {
            return error;
        }
    }
    for (int partition = partition_low; partition <= partition_high; ++partition) {
        if (Error error = send_partition(context, request, partition)) {
            return error;
        }
    }
    return {};
}

Error pready_list(Context& context, int length, const int array_of_partitions[], Request& request) {
    if (Error error = check_active(request, true)) {
        return error;
    }
    if (length < 0) {
        return fail(MPI_ERR_ARG, "length = %d is negative", length);
    }
    Send& send = send_of(request);
    for (int i = 0; i < length; ++i) {
        Error error = check_unready(send, array_of_partitions[i]);
        if (error) {
            return error;
        }
    }
    for (int i = 0; i < length; ++i) {
        // One that is listed twice is found here.
        if (Error error = check_unready(send, array_of_partitions[i])) {
            return error;
        }
        if (Error error = send_partition(context, request, array_of_partitions[i])) {
            return error;
        }
    }
    return {};
}

// --- Receiving

Buffer PartitionedMatching::Receive::buffer_of(int number) {
    const MPI_Count begin = begin_of(number);
    const MPI_Count size = begin_of(number + 1) - begin;
    const datatype::Datatype& type = *partition.type;
    auto* base = static_cast<std::byte*>(partition.base);
    if (type.contiguous) {
        return coll::bytes_of(base + begin, size);
    }
    if (begin % type.size == 0 && size % type.size == 0) {
        return {base + begin / type.size * type.extent, size / type.size, &type};
    }
    if (staged == nullptr) {
        staged = std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes()));
    }
    return coll::bytes_of(staged.get() + begin, size);
}

void PartitionedMatching::Receive::post(Context& context, Request& request) {
    Engine& engine = context.messages;
    posted = true;
    ended = 0;
    error_class = MPI_SUCCESS;
    request.outcome = {};
    messages.assign(static_cast<std::size_t>(announcement.partitions), nullptr);
    for (int number = 0; number < announcement.partitions; ++number) {
        Request* message = engine.make();
        if (message == nullptr) {
            error_class = MPI_ERR_NO_MEM;
            continue;
        }
        Engine::prepare_receive(*message, buffer_of(number),
                                envelope_of(announcement.context, number));
        if (Error error = engine.start(*message)) {
            error_class = error.error_class();
            error.drop();
            engine.discard(*message);
            continue;
        }
        messages[static_cast<std::size_t>(number)] = message;
    }
}

// Of a message that has come, or never will.
void PartitionedMatching::Receive::end_message(Engine& engine, int number) {
    Request*& message = messages[static_cast<std::size_t>(number)];
    if (message == nullptr) {
        return;
    }
    const message::Outcome& outcome = message->outcome;
    if (outcome.error_class != MPI_SUCCESS) {
        error_class = outcome.error_class;
    }
    const MPI_Count begin = begin_of(number);
    if (staged != nullptr && message->buffer.base == staged.get() + begin) {
        partition.type->unpack_part(staged.get() + begin, begin, outcome.bytes, partition.base,
                                    partitions * partition.count);
    }
    engine.discard(*message);
    message = nullptr;
}

// The sender's partitions that have data of this one, or stand where it does if there are no data:
// they arrive, too.
bool PartitionedMatching::Receive::arrived(Engine& engine, int number) {
    const MPI_Count own = partition.bytes();
    const MPI_Count sent = announcement.partition_bytes;
    const bool empty = own == 0 || sent == 0;
    const MPI_Count numerator = empty ? announcement.partitions : own;
    const MPI_Count denominator = empty ? partitions : sent;
    const MPI_Count end = ((number + 1) * numerator + denominator - 1) / denominator;
    for (MPI_Count i = number * numerator / denominator;
         i < std::min<MPI_Count>(end, announcement.partitions); ++i) {
        const Request* message = messages[static_cast<std::size_t>(i)];
        if (message != nullptr && !message->complete) {
            return false;
        }
        end_message(engine, static_cast<int>(i));
    }
    return true;
}

namespace {

void release_receive(Request& request) {
    auto& context = *static_cast<Context*>(request.context);
    Receive& receive = receive_of(request);
    if (request.null_peer) {
        delete &receive;
    } else {
        context.partitioned.end(context, receive);
    }
    release_bound(request);
}

bool step_receive(Request& request) {
    auto& context = *static_cast<Context*>(request.context);
    Receive& receive = receive_of(request);
    if (!receive.matched) {
        context.partitioned.match(context);
        if (!receive.matched) {
            return false;
        }
    }
    if (!receive.posted) {
        receive.post(context, request);
    }
    for (; receive.ended < receive.announcement.partitions; ++receive.ended) {
        const Request* message = receive.messages[static_cast<std::size_t>(receive.ended)];
        if (message != nullptr && !message->complete) {
            return false;
        }
        receive.end_message(context.messages, receive.ended);
    }
    request.outcome.source = receive.source;
    request.outcome.tag = receive.tag;
    request.outcome.bytes = receive.begin_of(receive.announcement.partitions);
    request.outcome.available =
        receive.announcement.partitions * receive.announcement.partition_bytes;
    request.outcome.error_class = receive.error_class;
    return true;
}

} // namespace

Error precv_init(Context& context, void* buf, int partitions, MPI_Count count,
                 const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                 comm::Info*, MPI_Request* handle) {
    if (Error error = check_partitions(partitions)) {
        return error;
    }
    if (dest != MPI_PROC_NULL && (dest < 0 || dest >= comm.peers())) {
        return fail(MPI_ERR_RANK, "source = %d is not in 0 … %d", dest, comm.peers() - 1);
    }
    auto receive = std::make_unique<Receive>(false, buffer_of(buf, count, datatype), partitions);
    receive->comm_context = comm.collective_context();
    receive->source = dest;
    receive->tag = tag;
    Request* request = nullptr;
    if (Error error = make_request(context, *receive, dest, tag, comm, request)) {
        return error;
    }
    Receive& made = *receive.release();
    request->release = release_receive;
    request->step = step_receive;
    if (dest != MPI_PROC_NULL) {
        if (Error error = context.partitioned.add(context, made, comm)) {
            context.messages.discard(*request);
            return error;
        }
    }
    *handle = request_handle(*request);
    return {};
}

Error parrived(Context& context, Request* request, int partition, int* flag) {
    *flag = 1;
    if (request == nullptr) {
        return {};
    }
    if (Error error = check_active(*request, false)) {
        return error;
    }
    Receive& receive = receive_of(*request);
    if (Error error = check_partition(receive, partition)) {
        return error;
    }
    if (!request->active || request->complete) {
        return {};
    }
    const auto has_arrived = [&] {
        return receive.posted && receive.arrived(context.messages, partition);
    };
    if (!has_arrived()) {
        context.messages.progress();
        *flag = request->complete || has_arrived();
    }
    return {};
}

// --- Both

Error start_partitioned(Context& context, Request& request) {
    Partitioned& state = state_of(request);
    state.ended = 0;
    if (state.sends) {
        auto& send = static_cast<Send&>(state);
        send.ready.assign(send.ready.size(), false);
        send.ready_count = 0;
    } else {
        static_cast<Receive&>(state).posted = false;
    }
    if (request.null_peer) {
        request.active = true;
        request.complete = true;
        request.outcome = state.sends ? empty_outcome() : null_peer_outcome();
        return {};
    }
    context.messages.start_stepping(request);
    if (!state.sends && static_cast<Receive&>(state).matched) {
        // So that what comes finds its place.
        static_cast<Receive&>(state).post(context, request);
    }
    return {};
}

Error check_free_partitioned(const Request& request) {
    if (request.active && !request.complete && state_of(request).sends &&
        send_of(request).ready_count < send_of(request).partitions) {
        return fail(MPI_ERR_REQUEST,
                    "the partitioned send is active and has partitions that are not ready");
    }
    return {};
}

} // namespace warren::mpi
