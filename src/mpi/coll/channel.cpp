#include "mpi/coll/channel.hpp"

namespace warren::coll {

Error failure_of(const message::Outcome& outcome) {
    if (outcome.error_class == MPI_SUCCESS) {
        return {};
    }
    if (outcome.error_class == MPI_ERR_TRUNCATE) {
        return fail(
            MPI_ERR_TRUNCATE,
            "rank %d sent %lld bytes in a collective operation where this rank expects %lld",
            outcome.source, static_cast<long long>(outcome.available),
            static_cast<long long>(outcome.bytes));
    }
    if (outcome.error_class == MPI_ERR_PROC_ABORTED) {
        return fail(MPI_ERR_PROC_ABORTED, "rank %d has ended", outcome.source);
    }
    return fail(outcome.error_class, "a message of rank %d in a collective operation failed",
                outcome.source);
}

Error too_short(int source, MPI_Count bytes, MPI_Count expected) {
    return fail(MPI_ERR_TRUNCATE,
                "rank %d sent %lld bytes in a collective operation where this rank expects %lld: "
                "their calls do not match, or it has failed itself",
                source, static_cast<long long>(bytes), static_cast<long long>(expected));
}

Error failure_of(const message::Outcome& outcome, MPI_Count expected) {
    if (outcome.error_class == MPI_SUCCESS && outcome.bytes < expected) {
        return too_short(outcome.source, outcome.bytes, expected);
    }
    return failure_of(outcome);
}

Error Channel::send(const Buffer& buffer, int to) const {
    return engine_.send(message::Operation::send, buffer, communicator_.endpoint(to),
                        envelope(rank()));
}

Error Channel::receive(const Buffer& buffer, int from) const {
    message::Outcome outcome;
    if (Error error = engine_.receive(buffer, envelope(from), outcome)) {
        return error;
    }
    return failure_of(outcome, buffer.bytes()); // who has failed sends nothing
}

} // namespace warren::coll
