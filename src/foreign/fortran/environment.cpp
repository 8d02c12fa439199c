// Fortran's procedures that are not of the common form, and those that MPI 3.0 removed, whose
// addresses are INTEGERs of the default size.

#include "foreign/fortran/arguments.hpp"

namespace warren::foreign::fortran {

extern "C" {
int call_Init(int*, char***) asm("PMPI_Init");
int call_Init_thread(int*, char***, int, int*) asm("PMPI_Init_thread");
int call_Info_get(Info, const char*, int, char*, int*) asm("PMPI_Info_get");
int call_Info_get_string(Info, const char*, int*, char*, int*) asm("PMPI_Info_get_string");
int call_Session_get_nth_pset(Session, Info, int, int*, char*) asm("PMPI_Session_get_nth_pset");
int call_Info_create_env(int, char**, Info*) asm("PMPI_Info_create_env");
int call_Buffer_detach(void*, int*) asm("PMPI_Buffer_detach");
int call_Comm_detach_buffer(Comm, void*, int*) asm("PMPI_Comm_detach_buffer");
int call_Session_detach_buffer(Session, void*, int*) asm("PMPI_Session_detach_buffer");
int call_Type_create_struct(int, const int*, const MPI_Aint*, const Datatype*,
                            Datatype*) asm("PMPI_Type_create_struct");
int call_Type_create_hindexed(int, const int*, const MPI_Aint*, Datatype,
                              Datatype*) asm("PMPI_Type_create_hindexed");
int call_Type_create_hvector(int, int, MPI_Aint, Datatype,
                             Datatype*) asm("PMPI_Type_create_hvector");
int call_Type_get_extent(Datatype, MPI_Aint*, MPI_Aint*) asm("PMPI_Type_get_extent");
}

WARREN_FORTRAN(init, INIT, (int* ierror)) {
    finish(ierror, call_Init(nullptr, nullptr));
}
WARREN_FORTRAN(init_thread, INIT_THREAD, (int* required, int* provided, int* ierror)) {
    finish(ierror, call_Init_thread(nullptr, nullptr, *required, provided));
}
WARREN_FORTRAN_FUNCTION(double, wtime, WTIME, ()) {
    return core.Wtime();
}
WARREN_FORTRAN_FUNCTION(double, wtick, WTICK, ()) {
    return core.Wtick();
}
WARREN_FORTRAN_FUNCTION(MPI_Aint, aint_add, AINT_ADD, (MPI_Aint * base, MPI_Aint* displacement)) {
    return core.Aint_add(*base, *displacement);
}
WARREN_FORTRAN_FUNCTION(MPI_Aint, aint_diff, AINT_DIFF, (MPI_Aint * first, MPI_Aint* second)) {
    return core.Aint_diff(*first, *second);
}
WARREN_FORTRAN(pcontrol, PCONTROL, (int*, int* ierror)) {
    finish(ierror, MPI_SUCCESS);
}
// The address of the buffer does not come back.
WARREN_FORTRAN(buffer_detach, BUFFER_DETACH, (void*, int* size, int* ierror)) {
    void* detached = nullptr;
    finish(ierror, call_Buffer_detach(&detached, size));
}
WARREN_FORTRAN(comm_detach_buffer, COMM_DETACH_BUFFER, (int* comm, void*, int* size, int* ierror)) {
    void* detached = nullptr;
    finish(ierror, call_Comm_detach_buffer(integer::Comm::from(*comm), &detached, size));
}
WARREN_FORTRAN(session_detach_buffer, SESSION_DETACH_BUFFER,
               (int* session, void*, int* size, int* ierror)) {
    void* detached = nullptr;
    finish(ierror, call_Session_detach_buffer(integer::Session::from(*session), &detached, size));
}

WARREN_FORTRAN(info_get, INFO_GET,
               (int* info, char* key, int* valuelen, char* value, int* flag, int* ierror,
                std::size_t key_length, std::size_t value_length)) {
    constexpr int longest = 4096;
    InfoStringIn key_(key, key_length);
    StringOut value_(value, value_length);
    const int length = *valuelen < longest ? *valuelen : longest;
    int found = 0;
    const int code =
        call_Info_get(integer::Info::from(*info), key_.data(), length, value_.data(), &found);
    if (found == 0) {
        value_.leave_alone();
    }
    *flag = found;
    finish(ierror, code);
}
// C's length counts the null character.
WARREN_FORTRAN(info_get_string, INFO_GET_STRING,
               (int* info, char* key, int* buflen, char* value, int* flag, int* ierror,
                std::size_t key_length, std::size_t value_length)) {
    constexpr int longest = 4096;
    InfoStringIn key_(key, key_length);
    StringOut value_(value, value_length);
    int length = *buflen == 0 ? 0 : (*buflen < longest ? *buflen : longest) + 1;
    int found = 0;
    const int code = call_Info_get_string(integer::Info::from(*info), key_.data(), &length,
                                          value_.data(), &found);
    if (found == 0) {
        value_.leave_alone();
    } else {
        *buflen = length - 1;
    }
    *flag = found;
    finish(ierror, code);
}

WARREN_FORTRAN(session_get_nth_pset, SESSION_GET_NTH_PSET,
               (int* session, int* info, int* n, int* length, char* name, int* ierror,
                std::size_t name_length)) {
    constexpr int longest = 4096;
    StringOut name_(name, name_length);
    int bytes = *length == 0 ? 0 : (*length < longest ? *length : longest) + 1;
    const int code = call_Session_get_nth_pset(
        integer::Session::from(*session), integer::Info::from(*info), *n, &bytes, name_.data());
    if (code == MPI_SUCCESS) {
        *length = bytes - 1;
    }
    finish(ierror, code);
}

WARREN_FORTRAN(info_create_env, INFO_CREATE_ENV, (int* info, int* ierror)) {
    Integer<integer::Info, Way::out> made(info);
    finish(ierror, call_Info_create_env(0, nullptr, made.data()));
}

// For variables that compilers may have in registers: a call to an unknown procedure suffices.
WARREN_FORTRAN(f_sync_reg, F_SYNC_REG, (void*)) {}

WARREN_FORTRAN(address, ADDRESS, (void* location, int* address, int* ierror)) {
    *address = static_cast<int>(reinterpret_cast<MPI_Aint>(c_buffer(location)));
    finish(ierror, MPI_SUCCESS);
}
WARREN_FORTRAN(type_extent, TYPE_EXTENT, (int* type, int* extent, int* ierror)) {
    MPI_Aint lower = 0;
    MPI_Aint found = 0;
    finish(ierror, call_Type_get_extent(integer::Type::from(*type), &lower, &found));
    *extent = static_cast<int>(found);
}
WARREN_FORTRAN(type_lb, TYPE_LB, (int* type, int* displacement, int* ierror)) {
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    finish(ierror, call_Type_get_extent(integer::Type::from(*type), &lower, &extent));
    *displacement = static_cast<int>(lower);
}
WARREN_FORTRAN(type_ub, TYPE_UB, (int* type, int* displacement, int* ierror)) {
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    finish(ierror, call_Type_get_extent(integer::Type::from(*type), &lower, &extent));
    *displacement = static_cast<int>(lower + extent);
}
WARREN_FORTRAN(type_hvector, TYPE_HVECTOR,
               (int* count, int* blocklength, int* stride, int* oldtype, int* newtype,
                int* ierror)) {
    Integer<integer::Type, Way::out> made(newtype);
    finish(ierror, call_Type_create_hvector(*count, *blocklength, *stride,
                                            integer::Type::from(*oldtype), made.data()));
}

namespace {

// Displacements of the default size, in the size of addresses.
class Displacements {
  public:
    Displacements(const int* given, int number) : wide_(number) {
        for (MPI_Count i = 0; i < wide_.length(); ++i) {
            wide_[i] = given[i];
        }
    }
    MPI_Aint* data() { return wide_.data(); }

  private:
    Array<MPI_Aint> wide_;
};

} // namespace

WARREN_FORTRAN(type_hindexed, TYPE_HINDEXED,
               (int* count, int* lengths, int* displacements, int* oldtype, int* newtype,
                int* ierror)) {
    Integer<integer::Type, Way::out> made(newtype);
    Displacements wide(displacements, *count);
    finish(ierror, call_Type_create_hindexed(*count, lengths, wide.data(),
                                             integer::Type::from(*oldtype), made.data()));
}
WARREN_FORTRAN(type_struct, TYPE_STRUCT,
               (int* count, int* lengths, int* displacements, int* types, int* newtype,
                int* ierror)) {
    Integer<integer::Type, Way::out> made(newtype);
    Displacements wide(displacements, *count);
    Integers<integer::Type, Way::in> types_(types, *count);
    finish(ierror,
           call_Type_create_struct(*count, lengths, wide.data(), types_.data(), made.data()));
}

} // namespace warren::foreign::fortran
