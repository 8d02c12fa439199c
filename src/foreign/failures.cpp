// Extensions for programs that go on without processes that have failed. Libraries that were built
// for Open MPI 5 don't load without them, mpi4py among these. Here a job ends with its first
// process that fails, if it is not told to go on: what is asked is answered as for a communicator
// without failures, and none can be revoked.

#include "foreign/arguments.hpp"
#include "foreign/export.hpp"

namespace warren::foreign {

namespace {

// Raises an error where `comm` is none.
int check_communicator(Comm comm) {
    int is_inter = 0;
    return core.Comm_test_inter(handle::Comm::core(comm), &is_inter);
}

// Raises the error, or one of `comm`.
int raise(Comm comm, int error_class) {
    const int code = check_communicator(comm);
    if (code == MPI_SUCCESS) {
        core.Comm_call_errhandler(handle::Comm::core(comm), error_class);
        return foreign_error(error_class);
    }
    return foreign_error(code);
}
int refuse(Comm comm) {
    return raise(comm, MPI_ERR_UNSUPPORTED_OPERATION);
}

// Stores the answer, which is the same for every communicator.
template <typename Value>
int answer(Comm comm, Value* place, Value value) {
    if (place == nullptr) {
        return raise(comm, MPI_ERR_ARG);
    }
    const int code = check_communicator(comm);
    if (code == MPI_SUCCESS) {
        *place = value;
    }
    return foreign_error(code);
}

// Between two groups the result of a reduction is the other's alone.
bool has_two_groups(Comm comm) {
    int is_inter = 0;
    return core.Comm_test_inter(handle::Comm::core(comm), &is_inter) == MPI_SUCCESS &&
           is_inter != 0;
}

int failed_of(Comm comm, Group* failed) {
    return answer(comm, failed, handle::Group::foreign(MPI_GROUP_EMPTY));
}

} // namespace

#pragma GCC visibility push(default)
extern "C" {

int MPIX_Comm_revoke(Comm comm);
int MPIX_Comm_is_revoked(Comm comm, int* is_revoked);
int MPIX_Comm_shrink(Comm comm, Comm* made);
int MPIX_Comm_agree(Comm comm, int* flag);
int MPIX_Comm_iagree(Comm comm, int* flag, Request* request);
int MPIX_Comm_get_failed(Comm comm, Group* failed);
int MPIX_Comm_ack_failed(Comm comm, int most, int* acknowledged);
int MPIX_Comm_failure_ack(Comm comm);
int MPIX_Comm_failure_get_acked(Comm comm, Group* failed);

int MPIX_Comm_revoke(Comm comm) {
    return refuse(comm);
}

int MPIX_Comm_is_revoked(Comm comm, int* is_revoked) {
    return answer(comm, is_revoked, 0);
}

// With all processes, in their order, without attributes.
int MPIX_Comm_shrink(Comm comm, Comm* made) {
    HandlePointer<handle::Comm, Way::out> made_(made);
    return foreign_error(core.Comm_split(handle::Comm::core(comm), 0, 0, made_.data()));
}

int MPIX_Comm_agree(Comm comm, int* flag) {
    if (has_two_groups(comm)) {
        return refuse(comm);
    }
    return foreign_error(
        core.Allreduce(MPI_IN_PLACE, flag, 1, MPI_INT, MPI_BAND, handle::Comm::core(comm)));
}

int MPIX_Comm_iagree(Comm comm, int* flag, Request* request) {
    if (has_two_groups(comm)) {
        return refuse(comm);
    }
    HandlePointer<handle::Request, Way::out> request_(request);
    return foreign_error(core.Iallreduce(MPI_IN_PLACE, flag, 1, MPI_INT, MPI_BAND,
                                         handle::Comm::core(comm), request_.data()));
}

int MPIX_Comm_get_failed(Comm comm, Group* failed) {
    return failed_of(comm, failed);
}

int MPIX_Comm_ack_failed(Comm comm, int, int* acknowledged) {
    return answer(comm, acknowledged, 0);
}

int MPIX_Comm_failure_ack(Comm comm) {
    return foreign_error(check_communicator(comm));
}

int MPIX_Comm_failure_get_acked(Comm comm, Group* failed) {
    return failed_of(comm, failed);
}

} // extern "C"
#pragma GCC visibility pop

} // namespace warren::foreign
