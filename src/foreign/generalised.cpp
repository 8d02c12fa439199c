// Generalised requests: the program's functions get the foreign status, through a record that lives
// as long as the request.

#include <new>

#include "foreign/arguments.hpp"
#include "foreign/export.hpp"

namespace warren::foreign {

namespace {

using QueryFunction = int(void* extra_state, Status* status);
using FreeFunction = int(void* extra_state);
using CancelFunction = int(void* extra_state, int complete);

struct GeneralisedRequest {
    QueryFunction* query;
    FreeFunction* free;
    CancelFunction* cancel;
    void* extra_state;
};

int query(void* extra_state, MPI_Status* status) {
    const auto& request = *static_cast<GeneralisedRequest*>(extra_state);
    Status made{};
    const int code = request.query(request.extra_state, &made);
    *status = load_status(made);
    return core_error(code);
}

int free_record(void* extra_state) {
    auto* request = static_cast<GeneralisedRequest*>(extra_state);
    const int code = request->free(request->extra_state);
    delete request;
    return core_error(code);
}

int cancel(void* extra_state, int complete) {
    const auto& request = *static_cast<GeneralisedRequest*>(extra_state);
    return core_error(request.cancel(request.extra_state, complete));
}

} // namespace

WARREN_FOREIGN(int, Grequest_start,
               (QueryFunction * query_fn, FreeFunction* free_fn, CancelFunction* cancel_fn,
                void* extra_state, Request* request)) {
    HandlePointer<handle::Request, Way::out> request_(request);
    auto* made = new (std::nothrow) GeneralisedRequest{query_fn, free_fn, cancel_fn, extra_state};
    if (made == nullptr) {
        return no_memory();
    }
    const int code = core.Grequest_start(
        query_fn != nullptr ? query : nullptr, free_fn != nullptr ? free_record : nullptr,
        cancel_fn != nullptr ? cancel : nullptr, made, request_.data());
    if (code != MPI_SUCCESS) {
        delete made;
    }
    return foreign_error(code);
}

} // namespace warren::foreign
