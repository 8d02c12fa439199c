// Waiting for requests, testing them, and their end.

#include "mpi/entry/point_to_point.hpp"
#include "mpi/entry/requests.hpp"

namespace warren::mpi {

using message::Request;

namespace {

// Nothing to wait for: an inactive persistent request, or none at all.
bool is_idle(const Request* request) {
    return request == nullptr || !request->active;
}

// The request of an array's element; null for MPI_REQUEST_NULL.
Error find_request(Context& context, const MPI_Request array[], int index, Request*& request) {
    const MPI_Request handle = array[index];
    if (handle == MPI_REQUEST_NULL) {
        request = nullptr;
        return {};
    }
    if (handle == request_handle(context.messages.sent())) {
        request = &context.messages.sent();
        return {};
    }
    request = context.messages.requests().held(handle);
    if (request == nullptr) [[unlikely]] {
        return fail(MPI_ERR_REQUEST,
                    "array_of_requests[%d] is %p: no request, or one that was freed", index,
                    static_cast<const void*>(array[index]));
    }
    return {};
}

// Whether all handles are requests, before anything is done with any of them.
Error check_requests(Context& context, int count, const MPI_Request array[]) {
    for (int i = 0; i < count; ++i) {
        Request* request;
        if (Error error = find_request(context, array, i, request)) {
            return error;
        }
    }
    return {};
}

Request* request_at(Context& context, const MPI_Request array[], int index) {
    return array[index] == MPI_REQUEST_NULL ? nullptr
                                            : context.messages.requests().held(array[index]);
}

// Whether a handle names the request, in the whole or the short form.
bool is_named(const Request& request, MPI_Request handle) {
    const MPI_Request whole = request_handle(request);
    return whole == handle || is_short_form(reinterpret_cast<std::uintptr_t>(handle),
                                            reinterpret_cast<std::uintptr_t>(whole));
}

MPI_Status* status_at(MPI_Status* statuses, int index) {
    return statuses != nullptr ? statuses + index : nullptr;
}

void set_status_error(MPI_Status* status, int code) {
    if (status != nullptr) {
        status->MPI_ERROR = code;
    }
}

WaitReason several(Context& context, int count) {
    return {.call = context.messages.current_call,
            .peer = MPI_ANY_SOURCE,
            .tag = MPI_ANY_TAG,
            .requests = static_cast<std::uint32_t>(count)};
}

// The completed requests that a call completes one by one, with the error that it ends with.
class Ending {
  public:
    explicit Ending(Context& context) : context_(context) {}

    // Ends request i of the arrays; a null or inactive one has an empty status.
    void end(Request* request, MPI_Request* handle, MPI_Status* status) {
        int error_class = MPI_SUCCESS;
        if (is_idle(request)) {
            set_empty_status(status);
        } else if (Error error = end_request(context_, *request, handle, status)) [[unlikely]] {
            error_class = error.error_class();
            first_.drop();
            first_ = error;
            ++failed_;
        }
        set_status_error(status, error_class);
    }

    Error result() {
        if (failed_ == 0) [[likely]] {
            return {};
        }
        ErrorRecord* record = first_.take();
        Error error = fail(MPI_ERR_IN_STATUS, "%d of the operations failed; the last: %s", failed_,
                           record->text.c_str());
        delete record;
        return error;
    }

  private:
    Context& context_;
    Error first_;
    int failed_ = 0;
};

} // namespace

// --- One

Error wait(Context& context, Request* request, MPI_Request* request_handle, MPI_Status* status) {
    if (is_idle(request)) {
        set_empty_status(status);
        return {};
    }
    context.messages.wait(*request);
    return end_request(context, *request, request_handle, status);
}

Error test(Context& context, Request* request, MPI_Request* request_handle, int* flag,
           MPI_Status* status) {
    if (is_idle(request)) {
        *flag = 1;
        set_empty_status(status);
        return {};
    }
    if (!request->complete) {
        context.messages.look();
    }
    *flag = request->complete;
    return request->complete ? end_request(context, *request, request_handle, status) : Error();
}

Error request_get_status(Context& context, Request* request, int* flag, MPI_Status* status) {
    if (is_idle(request)) {
        *flag = 1;
        set_empty_status(status);
        return {};
    }
    if (!request->complete) {
        context.messages.look();
    }
    *flag = request->complete;
    if (!request->complete) {
        return {};
    }
    if (request->operation == message::Operation::generalised) {
        MPI_Status own;
        return query_generalised(*request, status != nullptr ? *status : own);
    }
    set_status(status, request->outcome);
    return {};
}

Error request_free(Context& context, Request& request) {
    if (request.shared) {
        return {};
    }
    if (request.operation == message::Operation::partitioned) {
        if (Error error = check_free_partitioned(request)) {
            return error;
        }
    }
    // (Programs free what MPI_Request_get_status has found complete.)
    if (request.operation == message::Operation::collective && request.active &&
        !request.complete) {
        return fail(MPI_ERR_REQUEST,
                    "the request is a collective operation's, which must be completed");
    }
    if (request.active && !request.complete) {
        // It goes on, and dies by itself: nobody starts it again.
        request.persistent = false;
    }
    context.messages.discard(request);
    return {};
}

// --- All

namespace {

// They are all waited for.
void await_rest(Context& context, int count, const MPI_Request requests[]) {
    for (int i = 0; i < count; ++i) {
        if (Request* request = request_at(context, requests, i); !is_idle(request)) {
            context.messages.await(*request);
        }
    }
}

} // namespace

Error waitall(Context& context, int count, MPI_Request array_of_requests[],
              MPI_Status* array_of_statuses) {
    // The requests found before the first wait, so that most are not looked up twice.
    constexpr int remembered = 64;
    Request* found[remembered];
    for (int i = 0; i < count; ++i) {
        Request* request;
        if (Error error = find_request(context, array_of_requests, i, request)) [[unlikely]] {
            return error;
        }
        if (i < remembered) {
            found[i] = request;
        }
    }
    Ending ending(context);
    bool said = false;
    for (int i = 0; i < count; ++i) {
        // (A program that names a request twice must not end it twice.)
        Request* request =
            i < remembered && (found[i] == nullptr || is_named(*found[i], array_of_requests[i]))
                ? found[i]
                : request_at(context, array_of_requests, i);
        if (!is_idle(request)) {
            if (!request->complete && !said && context.messages.may_be_pushed(*request)) {
                said = true;
                await_rest(context, count - i, array_of_requests + i);
            }
            context.messages.wait(*request);
        }
        ending.end(request, &array_of_requests[i], status_at(array_of_statuses, i));
    }
    return ending.result();
}

namespace {

bool all_complete(Context& context, int count, const MPI_Request array[]) {
    for (int i = 0; i < count; ++i) {
        const Request* request = request_at(context, array, i);
        if (!is_idle(request) && !request->complete) {
            return false;
        }
    }
    return true;
}

// The first active request that is complete; MPI_UNDEFINED when there is none. any_active tells
// whether there is something to wait for.
int first_complete(Context& context, int count, const MPI_Request array[], bool& any_active) {
    any_active = false;
    for (int i = 0; i < count; ++i) {
        const Request* request = request_at(context, array, i);
        if (!is_idle(request)) {
            any_active = true;
            if (request->complete) {
                return i;
            }
        }
    }
    return MPI_UNDEFINED;
}

} // namespace

Error testall(Context& context, int count, MPI_Request array_of_requests[], int* flag,
              MPI_Status* array_of_statuses) {
    if (Error error = check_requests(context, count, array_of_requests)) {
        return error;
    }
    if (!all_complete(context, count, array_of_requests)) {
        context.messages.look();
        if (!all_complete(context, count, array_of_requests)) {
            *flag = 0;
            return {};
        }
    }
    *flag = 1;
    return waitall(context, count, array_of_requests, array_of_statuses);
}

Error request_get_status_all(Context& context, int count, const MPI_Request array_of_requests[],
                             int* flag, MPI_Status* array_of_statuses) {
    if (Error error = check_requests(context, count, array_of_requests)) {
        return error;
    }
    if (!all_complete(context, count, array_of_requests)) {
        context.messages.look();
    }
    *flag = all_complete(context, count, array_of_requests);
    for (int i = 0; *flag && i < count; ++i) {
        int complete;
        if (Error error = request_get_status(context, request_at(context, array_of_requests, i),
                                             &complete, status_at(array_of_statuses, i))) {
            return error;
        }
    }
    return {};
}

// --- Any

Error waitany(Context& context, int count, MPI_Request array_of_requests[], int* indx,
              MPI_Status* status) {
    if (Error error = check_requests(context, count, array_of_requests)) {
        return error;
    }
    bool any_active = false;
    context.messages.wait_until(
        [&] {
            *indx = first_complete(context, count, array_of_requests, any_active);
            return *indx != MPI_UNDEFINED || !any_active;
        },
        several(context, count));
    if (*indx == MPI_UNDEFINED) {
        set_empty_status(status);
        return {};
    }
    return end_request(context, *request_at(context, array_of_requests, *indx),
                       &array_of_requests[*indx], status);
}

Error testany(Context& context, int count, MPI_Request array_of_requests[], int* indx, int* flag,
              MPI_Status* status) {
    if (Error error = check_requests(context, count, array_of_requests)) {
        return error;
    }
    bool any_active = false;
    *indx = first_complete(context, count, array_of_requests, any_active);
    if (*indx == MPI_UNDEFINED && any_active) {
        context.messages.look();
        *indx = first_complete(context, count, array_of_requests, any_active);
    }
    *flag = *indx != MPI_UNDEFINED || !any_active;
    if (*indx == MPI_UNDEFINED) {
        if (*flag) {
            set_empty_status(status);
        }
        return {};
    }
    return end_request(context, *request_at(context, array_of_requests, *indx),
                       &array_of_requests[*indx], status);
}

Error request_get_status_any(Context& context, int count, const MPI_Request array_of_requests[],
                             int* indx, int* flag, MPI_Status* status) {
    if (Error error = check_requests(context, count, array_of_requests)) {
        return error;
    }
    bool any_active = false;
    *indx = first_complete(context, count, array_of_requests, any_active);
    if (*indx == MPI_UNDEFINED && any_active) {
        context.messages.look();
        *indx = first_complete(context, count, array_of_requests, any_active);
    }
    *flag = *indx != MPI_UNDEFINED || !any_active;
    if (*indx == MPI_UNDEFINED) {
        if (*flag) {
            set_empty_status(status);
        }
        return {};
    }
    int complete;
    return request_get_status(context, request_at(context, array_of_requests, *indx), &complete,
                              status);
}

// --- Some

namespace {

// Ends all requests that are complete.
Error end_some(Context& context, int count, MPI_Request array[], int* outcount, int indices[],
               MPI_Status* statuses) {
    Ending ending(context);
    int ended = 0;
    for (int i = 0; i < count; ++i) {
        Request* request = request_at(context, array, i);
        if (!is_idle(request) && request->complete) {
            indices[ended] = i;
            ending.end(request, &array[i], status_at(statuses, ended));
            ++ended;
        }
    }
    *outcount = ended;
    return ending.result();
}

} // namespace

Error waitsome(Context& context, int incount, MPI_Request array_of_requests[], int* outcount,
               int array_of_indices[], MPI_Status* array_of_statuses) {
    if (Error error = check_requests(context, incount, array_of_requests)) {
        return error;
    }
    bool any_active = false;
    context.messages.wait_until(
        [&] {
            return first_complete(context, incount, array_of_requests, any_active) !=
                       MPI_UNDEFINED ||
                   !any_active;
        },
        several(context, incount));
    if (!any_active) {
        *outcount = MPI_UNDEFINED;
        return {};
    }
    return end_some(context, incount, array_of_requests, outcount, array_of_indices,
                    array_of_statuses);
}

Error testsome(Context& context, int incount, MPI_Request array_of_requests[], int* outcount,
               int array_of_indices[], MPI_Status* array_of_statuses) {
    if (Error error = check_requests(context, incount, array_of_requests)) {
        return error;
    }
    bool any_active = false;
    if (first_complete(context, incount, array_of_requests, any_active) == MPI_UNDEFINED &&
        any_active) {
        context.messages.look();
    }
    if (!any_active) {
        *outcount = MPI_UNDEFINED;
        return {};
    }
    return end_some(context, incount, array_of_requests, outcount, array_of_indices,
                    array_of_statuses);
}

Error request_get_status_some(Context& context, int incount, const MPI_Request array_of_requests[],
                              int* outcount, int array_of_indices[],
                              MPI_Status* array_of_statuses) {
    if (Error error = check_requests(context, incount, array_of_requests)) {
        return error;
    }
    bool any_active = false;
    if (first_complete(context, incount, array_of_requests, any_active) == MPI_UNDEFINED &&
        any_active) {
        context.messages.look();
    }
    if (!any_active) {
        *outcount = MPI_UNDEFINED;
        return {};
    }
    *outcount = 0;
    for (int i = 0; i < incount; ++i) {
        Request* request = request_at(context, array_of_requests, i);
        if (!is_idle(request) && request->complete) {
            int complete;
            array_of_indices[*outcount] = i;
            if (Error error = request_get_status(context, request, &complete,
                                                 status_at(array_of_statuses, *outcount))) {
                return error;
            }
            ++*outcount;
        }
    }
    return {};
}

} // namespace warren::mpi
