// Partitioned communication: the receiving half.

#include <algorithm>

#include "mpi/coll/steps.hpp"
#include "mpi/entry/partitioned_requests.hpp"
#include "mpi/entry/point_to_point.hpp"
#include "mpi/message/engine_view.hpp"

namespace warren::mpi {

using message::Buffer;
using message::Engine;
using message::Request;

Buffer PartitionedReceive::buffer_of(int number) {
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

void PartitionedReceive::post(Context& context, Request& request) {
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

// Called when a message has arrived, or never will.
void PartitionedReceive::end_message(Engine& engine, int number) {
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

// The messages that have not come are not received any more.
void PartitionedReceive::give_up(Engine& engine) {
    for (Request*& message : messages) {
        if (message != nullptr) {
            engine.orphan(*message);
            message = nullptr;
        }
    }
    ended = announcement.partitions;
}

// The sender's partitions that have data of this one, or stand where it does if there are no data:
// they arrive, too.
bool PartitionedReceive::arrived(Engine& engine, int number) {
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
    PartitionedReceive& receive = partitioned_receive_of(request);
    if (request.null_peer) {
        delete &receive;
    } else {
        context.partitioned.end(context, receive);
    }
    release_bound(request);
}

// Whether the sender has ended, and nothing more comes from it.
bool is_lost(Context& context, const PartitionedReceive& receive) {
    return message::EngineView(context.messages)
        .lost()
        .never_comes({.context = receive.comm_context, .source = receive.source, .tag = 0});
}

bool fail_lost(Request& request, const PartitionedReceive& receive) {
    request.outcome.source = receive.source;
    request.outcome.tag = receive.tag;
    request.outcome.error_class = MPI_ERR_PROC_ABORTED;
    return true;
}

bool step_receive(Request& request) {
    auto& context = *static_cast<Context*>(request.context);
    PartitionedReceive& receive = partitioned_receive_of(request);
    if (!receive.matched) {
        context.partitioned.match(context);
        if (!receive.matched) {
            return is_lost(context, receive) && fail_lost(request, receive);
        }
    }
    if (!receive.posted) {
        receive.post(context, request);
    }
    for (; receive.ended < receive.announcement.partitions; ++receive.ended) {
        const Request* message = receive.messages[static_cast<std::size_t>(receive.ended)];
        if (message != nullptr && !message->complete) {
            if (!is_lost(context, receive)) {
                return false;
            }
            receive.give_up(context.messages);
            return fail_lost(request, receive);
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
    auto receive =
        std::make_unique<PartitionedReceive>(false, buffer_of(buf, count, datatype), partitions);
    receive->comm_context = comm.collective_context();
    receive->source = dest;
    receive->tag = tag;
    Request* request = nullptr;
    if (Error error = make_partitioned(context, *receive, dest, tag, comm, request)) {
        return error;
    }
    PartitionedReceive& made = *receive.release();
    request->release = release_receive;
    request->stepping.step = step_receive;
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
    if (Error error = check_partitioned(*request, false)) {
        return error;
    }
    PartitionedReceive& receive = partitioned_receive_of(*request);
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
        context.messages.look();
        *flag = request->complete || has_arrived();
    }
    return {};
}
} // namespace warren::mpi
