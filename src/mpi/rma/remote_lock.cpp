#include "mpi/rma/remote_lock.hpp"

#include <cstring>

#include "mpi/rma/window.hpp"

namespace warren::rma {

Error RemoteLock::ask(ServedKind kind, bool exclusive, bool& taken) {
    ServedHead head;
    head.kind = kind;
    head.exclusive = exclusive ? 1 : 0;
    std::vector<std::byte> request(sizeof head);
    std::memcpy(request.data(), &head, sizeof head);
    ServedAnswer answer = {};
    if (Error error = server_.ask(window_, target_, request, &answer, sizeof answer)) {
        return error;
    }
    if (answer.error_class != MPI_SUCCESS) {
        return fail(answer.error_class,
                    answer.error_class == MPI_ERR_PROC_ABORTED
                        ? "a rank has ended, and held the lock of rank %d, or others of the window"
                        : "rank %d can't change its lock",
                    target_);
    }
    taken = answer.taken != 0;
    return {};
}

} // namespace warren::rma
