#include "mpi/entry/schedules.hpp"

#include "mpi/entry/requests.hpp"

namespace warren::mpi {

using message::Request;

namespace {

// Number `number` of the operations that share the tags from `first` up to `end`.
std::unique_ptr<coll::Schedule> schedule_of(Context& context, comm::Communicator& comm,
                                            coll::Tag first, coll::Tag end, std::uint32_t number) {
    const auto tags = static_cast<std::uint32_t>(end) - static_cast<std::uint32_t>(first);
    const auto tag = static_cast<std::int32_t>(first) + static_cast<std::int32_t>(number % tags);
    return std::make_unique<coll::Schedule>(context.messages, comm, tag);
}

void release_scheduled(Request& request) {
    delete static_cast<coll::Schedule*>(request.attachment);
    release_bound(request);
}

} // namespace

std::unique_ptr<coll::Schedule> nonblocking_schedule(Context& context, comm::Communicator& comm) {
    return schedule_of(context, comm, coll::Tag::nonblocking, coll::Tag::persistent,
                       comm.nonblocking_collectives++);
}

std::unique_ptr<coll::Schedule> persistent_schedule(Context& context, comm::Communicator& comm) {
    return schedule_of(context, comm, coll::Tag::persistent, coll::Tag::create_group,
                       comm.persistent_collectives++);
}

Request* make_scheduled(Context& context, comm::Communicator& comm,
                        std::unique_ptr<coll::Schedule> schedule) {
    Request* request = context.messages.make();
    if (request == nullptr) {
        return nullptr;
    }
    bind(context, *request, comm);
    schedule.release()->attach(*request);
    request->release = release_scheduled;
    return request;
}

Error start_scheduled(Context& context, Request* request, MPI_Request* handle) {
    if (request == nullptr) {
        return no_memory_for_request();
    }
    coll::Schedule::start(context.messages, *request);
    *handle = request_handle(*request);
    return {};
}

Error keep_scheduled(Request* request, MPI_Request* handle) {
    if (request == nullptr) {
        return no_memory_for_request();
    }
    request->persistent = true;
    *handle = request_handle(*request);
    return {};
}

} // namespace warren::mpi
