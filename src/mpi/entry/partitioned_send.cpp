// Partitioned communication: the sending half.

#include "mpi/coll/agreement.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/entry/partitioned_requests.hpp"
#include "mpi/entry/point_to_point.hpp"

namespace warren::mpi {

using message::Buffer;
using message::Engine;
using message::Envelope;
using message::Operation;
using message::Request;

namespace {

Buffer part_of(const PartitionedSend& send, int number) {
    const Buffer& first = send.partition;
    auto* base = static_cast<std::byte*>(first.base) + number * first.count * first.type->extent;
    return {base, first.count, first.type};
}

void release_send(Request& request) {
    PartitionedSend& send = partitioned_send_of(request);
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
    PartitionedSend& send = partitioned_send_of(request);
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
            if (message->outcome.error_class != MPI_SUCCESS) {
                request.outcome.error_class = message->outcome.error_class;
            }
            engine.discard(*message);
            message = nullptr;
        }
    }
    return true;
}
} // namespace

Error psend_init(Context& context, const void* buf, int partitions, MPI_Count count,
                 const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                 comm::Info*, MPI_Request* handle) {
    if (Error error = check_partitions(partitions)) {
        return error;
    }
    auto made =
        std::make_unique<PartitionedSend>(true, buffer_of(buf, count, datatype), partitions);
    PartitionedSend* send = made.get();
    send->messages.resize(static_cast<std::size_t>(partitions));
    send->ready.resize(static_cast<std::size_t>(partitions));
    Announcement announcement = {};
    if (dest != MPI_PROC_NULL) {
        announcement.context = context.rank.bootstrap().take_context(2);
        if (announcement.context == 0) {
            return fail(MPI_ERR_NO_MEM, "no number for another partitioned operation");
        }
        send->context = announcement.context;
        announcement.tag = tag;
        announcement.partitions = partitions;
        announcement.partition_bytes = send->partition.bytes();
    }
    Request* request = nullptr;
    if (Error error = make_partitioned(context, *send, dest, tag, comm, request)) {
        return error;
    }
    made.release(); // NOLINT(bugprone-unused-return-value): it is the request's now
    request->release = release_send;
    request->stepping.step = step_send;
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

Error check_unready(const PartitionedSend& send, int partition) {
    if (Error error = check_partition(send, partition)) {
        return error;
    }
    if (send.ready[static_cast<std::size_t>(partition)]) {
        return fail(MPI_ERR_ARG, "partition %d has been marked as ready before", partition);
    }
    return {};
}

Error send_partition(Context& context, Request& request, int partition) {
    PartitionedSend& send = partitioned_send_of(request);
    const auto index = static_cast<std::size_t>(partition);
    Engine& engine = context.messages;
    if (!request.null_peer) {
        const Buffer buffer = part_of(send, partition);
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
    if (Error error = check_partitioned(request, true)) {
        return error;
    }
    if (partition_low > partition_high) {
        return fail(MPI_ERR_ARG, "partition_low = %d is above partition_high = %d", partition_low,
                    partition_high);
    }
    const PartitionedSend& send = partitioned_send_of(request);
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
    if (Error error = check_partitioned(request, true)) {
        return error;
    }
    if (length < 0) {
        return fail(MPI_ERR_ARG, "length = %d is negative", length);
    }
    PartitionedSend& send = partitioned_send_of(request);
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
} // namespace warren::mpi
