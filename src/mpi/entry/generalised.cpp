// Generalised requests: operations that the program carries out itself (MPI 5.0, 13.2).

#include <utility>

#include "mpi/entry/point_to_point.hpp"
#include "mpi/entry/release.hpp"
#include "mpi/entry/requests.hpp"

namespace warren::mpi {

using message::Operation;
using message::Request;

namespace {

struct Generalised {
    MPI_Grequest_query_function* query;
    MPI_Grequest_free_function* free;
    MPI_Grequest_cancel_function* cancel;
    void* extra_state;
};

Generalised& state_of(const Request& request) {
    return *static_cast<Generalised*>(request.attachment);
}

// Calls one of the program's functions, which may call MPI, without the rank's lock.
template <typename Call>
int call_unlocked(const Request& request, Call call) {
    Context& context = *static_cast<Context*>(request.context);
    // Calls that the function makes succeed or fail by themselves; what has failed in this one
    // stays.
    comm::Communicator* const failed_on = std::exchange(context.failed_on, nullptr);
    const int failed_class = context.failed_class;
    context.rank.lock.unlock();
    const int code = call();
    context.rank.lock.lock();
    if (comm::Communicator* others = std::exchange(context.failed_on, failed_on)) {
        release(context, *others);
    }
    context.failed_class = failed_class;
    return code;
}

Error callback_error(const char* callback, int code) {
    if (code == MPI_SUCCESS) {
        return {};
    }
    // The call fails with the code of the program's function.
    return fail(code, "the %s function of the generalised request returned %d", callback, code);
}

// Tells the program once that the request ends.
Error free_generalised(Request& request) {
    Generalised& state = state_of(request);
    if (state.free == nullptr) {
        return {};
    }
    MPI_Grequest_free_function* const free = std::exchange(state.free, nullptr);
    return callback_error("free", call_unlocked(request, [&] { return free(state.extra_state); }));
}

void release_generalised(Request& request) {
    free_generalised(request).drop(); // nobody waits for it any more
    auto& context = *static_cast<Context*>(request.context);
    delete &state_of(request);
    release(context, *static_cast<comm::Communicator*>(request.communicator));
}

} // namespace

Error grequest_start(Context& context, MPI_Grequest_query_function* query_fn,
                     MPI_Grequest_free_function* free_fn, MPI_Grequest_cancel_function* cancel_fn,
                     void* extra_state, MPI_Request* handle) {
    Request* request = context.messages.make();
    if (request == nullptr) {
        return no_memory_for_request();
    }
    request->operation = Operation::generalised;
    request->envelope = {.context = context.communicators.self().context(),
                         .source = MPI_ANY_SOURCE,
                         .tag = MPI_ANY_TAG};
    request->attachment = new Generalised{
        .query = query_fn, .free = free_fn, .cancel = cancel_fn, .extra_state = extra_state};
    bind(context, *request, context.communicators.self());
    request->release = release_generalised;
    request->active = true;
    request->complete = false;
    *handle = request_handle(*request);
    return {};
}

Error grequest_complete(Context& context, Request& request) {
    if (request.operation != Operation::generalised) {
        return fail(MPI_ERR_REQUEST, "the request is not a generalised one");
    }
    context.messages.requests().complete(request);
    return {};
}

Error query_generalised(Request& request, MPI_Status& status) {
    set_status(&status, empty_outcome());
    const Generalised& state = state_of(request);
    return state.query != nullptr
               ? callback_error(
                     "query", call_unlocked(
                                  request, [&] { return state.query(state.extra_state, &status); }))
               : Error();
}

Error end_generalised(Request& request, MPI_Status& status) {
    Error error = query_generalised(request, status);
    Error freed = free_generalised(request);
    if (error) {
        freed.drop();
        return error;
    }
    return freed;
}

Error cancel(Context& context, Request& request) {
    if (request.operation == Operation::generalised) {
        const Generalised& state = state_of(request);
        return state.cancel != nullptr
                   ? callback_error("cancel",
                                    call_unlocked(request,
                                                  [&] {
                                                      return state.cancel(state.extra_state,
                                                                          request.complete);
                                                  }))
                   : Error();
    }
    if (request.operation == Operation::partitioned) {
        return fail(MPI_ERR_REQUEST, "a partitioned operation cannot be cancelled");
    }
    if (request.operation == Operation::collective) {
        return fail(MPI_ERR_REQUEST, "a collective operation cannot be cancelled");
    }
    if (request.operation == Operation::file) {
        return fail(MPI_ERR_REQUEST, "a file access cannot be cancelled");
    }
    if (request.operation == Operation::combined) {
        return fail(MPI_ERR_REQUEST, "a send and receive in one cannot be cancelled");
    }
    context.messages.cancel(request);
    return {};
}

} // namespace warren::mpi
