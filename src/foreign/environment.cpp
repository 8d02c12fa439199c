// Procedures of several chapters that are not of the common form.

#include "foreign/arguments.hpp"
#include "foreign/export.hpp"

namespace warren::foreign {

namespace {

// MPI_DISPLACEMENT_CURRENT, of files that are opened with MPI_MODE_SEQUENTIAL.
constexpr MPI_Offset foreign_displacement_current = -54278278;

} // namespace

WARREN_FOREIGN(int, Pcontrol, (int, ...)) {
    return MPI_SUCCESS;
}

// The ABI is not the standard's.
WARREN_FOREIGN(int, Abi_get_version, (int* abi_major, int* abi_minor)) {
    const int code = core.Abi_get_version(abi_major, abi_minor);
    if (code == MPI_SUCCESS) {
        *abi_major = -1;
        *abi_minor = -1;
    }
    return foreign_error(code);
}

WARREN_FOREIGN(int, File_set_view,
               (File fh, MPI_Offset disp, Datatype etype, Datatype filetype, const char* datarep,
                Info info)) {
    return foreign_error(
        core.File_set_view(handle::File::core(fh),
                           disp == foreign_displacement_current ? MPI_DISPLACEMENT_CURRENT : disp,
                           handle::Datatype::core(etype), handle::Datatype::core(filetype), datarep,
                           handle::Info::core(info)));
}

WARREN_FOREIGN(int, File_get_view,
               (File fh, MPI_Offset* disp, Datatype* etype, Datatype* filetype, char* datarep)) {
    HandlePointer<handle::Datatype, Way::out> etype_(etype);
    HandlePointer<handle::Datatype, Way::out> filetype_(filetype);
    return foreign_error(
        core.File_get_view(handle::File::core(fh), disp, etype_.data(), filetype_.data(), datarep));
}

// The arrays mean something at the root only.
WARREN_FOREIGN(int, Comm_spawn_multiple,
               (int count, char** commands, char*** argv, const int* maxprocs, const Info* info,
                int root, Comm comm, Comm* intercomm, int* codes)) {
    const MPI_Comm core_comm = handle::Comm::core(comm);
    int rank = -1;
    if (hooks.peers(core_comm) > 0) {
        core.Comm_rank(core_comm, &rank);
    }
    HandlePointer<handle::Comm, Way::out> intercomm_(intercomm);
    Handles<handle::Info, Way::in> info_(rank == root ? info : nullptr, rank == root ? count : 0);
    int processes = 0;
    for (int i = 0; rank == root && maxprocs != nullptr && i < count; ++i) {
        processes += maxprocs[i];
    }
    ErrorCodes codes_(codes, processes);
    if (!info_.made() || !codes_.made()) {
        return no_memory();
    }
    // Away from the root, codes come of a success only, which is 0 here too.
    return foreign_error(core.Comm_spawn_multiple(
        rank == root ? count : 0, commands, argv, maxprocs, info_.data(), root, core_comm,
        intercomm_.data(), rank == root ? codes_.data() : codes));
}

WARREN_FOREIGN(int, Status_c2f, (const Status* c_status, int* f_status)) {
    std::memcpy(f_status, c_status, sizeof *c_status);
    return MPI_SUCCESS;
}

WARREN_FOREIGN(int, Status_f2c, (const int* f_status, Status* c_status)) {
    std::memcpy(c_status, f_status, sizeof *c_status);
    return MPI_SUCCESS;
}

// The status of the module mpi_f08 has the layout of C's.
WARREN_FOREIGN(int, Status_c2f08, (const Status* c_status, Status* f08_status)) {
    *f08_status = *c_status;
    return MPI_SUCCESS;
}

WARREN_FOREIGN(int, Status_f082c, (const Status* f08_status, Status* c_status)) {
    *c_status = *f08_status;
    return MPI_SUCCESS;
}

WARREN_FOREIGN(int, Status_f082f, (const Status* f08_status, int* f_status)) {
    std::memcpy(f_status, f08_status, sizeof *f08_status);
    return MPI_SUCCESS;
}

WARREN_FOREIGN(int, Status_f2f08, (const int* f_status, Status* f08_status)) {
    std::memcpy(f08_status, f_status, sizeof *f08_status);
    return MPI_SUCCESS;
}

} // namespace warren::foreign

// Whether buffers may be in the memory of accelerators.
#pragma GCC visibility push(default)
extern "C" {
int MPIX_Query_cuda_support();
int MPIX_Query_rocm_support();
int MPIX_Query_hip_support();
int MPIX_Query_ze_support();
int MPIX_GPU_query_support(int kind, int* supported);

int MPIX_Query_cuda_support() {
    return 0;
}
int MPIX_Query_rocm_support() {
    return 0;
}
int MPIX_Query_hip_support() {
    return 0;
}
int MPIX_Query_ze_support() {
    return 0;
}
int MPIX_GPU_query_support(int, int* supported) {
    *supported = 0;
    return MPI_SUCCESS;
}
} // extern "C"
#pragma GCC visibility pop
