// Partitioned communication: matching, and what sends and receives have in common.

#include <algorithm>

#include "mpi/coll/agreement.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/entry/partitioned_requests.hpp"
#include "mpi/entry/release.hpp"
#include "mpi/entry/requests.hpp"

namespace warren::mpi {

using message::Engine;
using message::Operation;
using message::Request;

// --- Matching

// An announcement that is awaited, or has come.
struct PartitionedMatching::Notice {
    PartitionedMatching* matching;
    Context* context;
    comm::Communicator* comm; // whose context number must last until it has come
    std::uint32_t comm_context;
    int source;
    Announcement announcement;

    bool concerns(const PartitionedReceive& receive) const {
        return receive.comm_context == comm_context && receive.source == source &&
               receive.tag == announcement.tag;
    }
};

PartitionedMatching::PartitionedMatching() = default;

PartitionedMatching::~PartitionedMatching() {
    for (PartitionedReceive* receive : unmatched_) {
        if (receive->orphan) {
            delete receive;
        }
    }
}

Error PartitionedMatching::add(Context& context, PartitionedReceive& receive,
                               comm::Communicator& comm) {
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
        const auto found = std::find_if(
            unmatched_.begin(), unmatched_.end(),
            [&](const PartitionedReceive* receive) { return (*notice)->concerns(*receive); });
        if (found == unmatched_.end()) {
            ++notice;
            continue;
        }
        PartitionedReceive& receive = **found;
        unmatched_.erase(found);
        receive.announcement = (*notice)->announcement;
        receive.matched = true;
        notice = announced_.erase(notice);
        if (receive.orphan) {
            end(context, receive);
        }
    }
}

void PartitionedMatching::end(Context& context, PartitionedReceive& receive) {
    if (!receive.matched) {
        receive.orphan = true; // keeps its place among those that wait for announcements
        return;
    }
    coll::give_back(context.rank, {receive.announcement.context, 0});
    delete &receive;
}

// --- Requests

Error check_partitions(int partitions) {
    return partitions >= 0 ? Error() : fail(MPI_ERR_ARG, "partitions = %d is negative", partitions);
}

Error check_partition(const Partitioned& state, int partition) {
    if (partition < 0 || partition >= state.partitions) {
        return fail(MPI_ERR_ARG, "partition %d is not in 0 … %d", partition, state.partitions - 1);
    }
    return {};
}

Error check_partitioned(const Request& request, bool sends) {
    if (request.operation != Operation::partitioned || partitioned_of(request).sends != sends) {
        return fail(MPI_ERR_REQUEST, "the request is no partitioned %s",
                    sends ? "send" : "receive");
    }
    if (sends && !request.active) {
        return fail(MPI_ERR_REQUEST, "the partitioned send has not been started");
    }
    return {};
}

Error make_partitioned(Context& context, Partitioned& state, int peer, int tag,
                       comm::Communicator& comm, Request*& request) {
    request = context.messages.make();
    if (request == nullptr) {
        return no_memory_for_request();
    }
    request->operation = Operation::partitioned;
    request->persistent = true;
    request->null_peer = peer == MPI_PROC_NULL;
    request->peer = request->null_peer ? 0 : comm.endpoint(peer);
    request->envelope = {.context = comm.context(), .source = peer, .tag = tag};
    request->buffer = state.partition;
    request->attachment = &state;
    bind(context, *request, comm);
    return {};
}

Error start_partitioned(Context& context, Request& request) {
    Partitioned& state = partitioned_of(request);
    state.ended = 0;
    if (state.sends) {
        auto& send = static_cast<PartitionedSend&>(state);
        send.ready.assign(send.ready.size(), false);
        send.ready_count = 0;
    } else {
        static_cast<PartitionedReceive&>(state).posted = false;
    }
    if (request.null_peer) {
        request.active = true;
        request.complete = true;
        request.outcome = state.sends ? empty_outcome() : null_peer_outcome();
        return {};
    }
    context.messages.start_stepping(request);
    if (!state.sends && static_cast<PartitionedReceive&>(state).matched) {
        // So that what comes finds its place.
        static_cast<PartitionedReceive&>(state).post(context, request);
    }
    return {};
}

Error check_free_partitioned(const Request& request) {
    if (request.active && !request.complete && partitioned_of(request).sends &&
        partitioned_send_of(request).ready_count < partitioned_send_of(request).partitions) {
        return fail(MPI_ERR_REQUEST,
                    "the partitioned send is active and has partitions that are not ready");
    }
    return {};
}

} // namespace warren::mpi
