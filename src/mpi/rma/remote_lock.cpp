#include "mpi/rma/remote_lock.hpp"

#include <cstring>

#include "mpi/rma/window.hpp"

namespace warren::rma {

namespace {

std::vector<std::byte> lock_request(ServedKind kind, bool exclusive) {
    ServedHead head;
    head.kind = kind;
    head.exclusive = exclusive ? 1 : 0;
    std::vector<std::byte> request(sizeof head);
    std::memcpy(request.data(), &head, sizeof head);
    return request;
}

Error refusal(const ServedAnswer& answer, int target) {
    if (answer.error_class == MPI_SUCCESS) {
        return {};
    }
    return fail(answer.error_class,
                answer.error_class == MPI_ERR_PROC_ABORTED
                    ? "a rank has ended, and held the lock of rank %d, or others of the window"
                    : "rank %d can't change its lock",
                target);
}

} // namespace

Error RemoteLock::ask(ServedKind kind, bool exclusive, bool& taken) {
    const std::vector<std::byte> request = lock_request(kind, exclusive);
    ServedAnswer answer = {};
    if (Error error = server_.ask(window_, target_, request, &answer, sizeof answer)) {
        return error;
    }
    if (Error error = refusal(answer, target_)) {
        return error;
    }
    taken = answer.taken != 0;
    return {};
}

Error ask_shared_locks(WindowServer& server, const Window& window, ServedKind kind,
                       const std::vector<int>& targets, std::vector<std::uint8_t>& taken) {
    const std::vector<std::byte> request = lock_request(kind, false);
    std::vector<WindowServer::Asked> asked(targets.size());
    std::vector<ServedAnswer> answers(targets.size());
    Error first;
    std::size_t begun = 0;
    for (; begun < targets.size() && !first; ++begun) {
        first = server.begin(window, targets[begun], request, &answers[begun],
                             sizeof answers[begun], asked[begun]);
    }
    begun -= first ? 1 : 0;
    for (std::size_t i = 0; i < begun; ++i) {
        Error error = server.finish(window, asked[i]);
        if (!error) {
            error = refusal(answers[i], targets[i]);
            taken[static_cast<std::size_t>(targets[i])] = answers[i].taken != 0 ? 1 : 0;
        }
        first = first_of(first, error);
    }
    return first;
}

} // namespace warren::rma
