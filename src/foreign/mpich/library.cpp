// Symbols of libmpi.so.12 beside the standard's procedures: variables, and conversions between
// handles and Fortran's integers, which have equal values.

#include <cstring>

#include "attribute_functions.hpp"
#include "foreign/arguments.hpp"
#include "foreign/export.hpp"

#undef MPI_UNWEIGHTED
#undef MPI_WEIGHTS_EMPTY
#undef MPI_T_PVAR_ALL_HANDLES

namespace warren::foreign {

int unweighted;
int weights_empty;
char no_handles;

namespace {

int ignored_f08_status[5];

} // namespace

} // namespace warren::foreign

#pragma GCC visibility push(default)
extern "C" {

// Executables copy these variables: their sizes are the ABI's.
extern int* const MPI_UNWEIGHTED;
extern int* const MPI_WEIGHTS_EMPTY;
extern void* const MPI_T_PVAR_ALL_HANDLES;
int* const MPI_UNWEIGHTED = &warren::foreign::unweighted;
int* const MPI_WEIGHTS_EMPTY = &warren::foreign::weights_empty;
void* const MPI_T_PVAR_ALL_HANDLES = &warren::foreign::no_handles;
int* MPI_F_STATUS_IGNORE = nullptr; // the Fortran library sets these two
int* MPI_F_STATUSES_IGNORE = nullptr;
void* MPI_F08_STATUS_IGNORE = warren::foreign::ignored_f08_status;
void* MPI_F08_STATUSES_IGNORE = warren::foreign::ignored_f08_status;

int MPIR_Dup_fn(int, int, void*, void* value, void** copied, int* wanted) {
    *copied = value;
    *wanted = 1;
    return MPI_SUCCESS;
}

} // extern "C"
#pragma GCC visibility pop

namespace warren::foreign {

#define WARREN_SAME_INTEGER(kind)                                                                  \
    WARREN_FOREIGN(int, kind##_c2f, (int handle)) {                                                \
        return handle;                                                                             \
    }                                                                                              \
    WARREN_FOREIGN(int, kind##_f2c, (int handle)) {                                                \
        return handle;                                                                             \
    }                                                                                              \
    WARREN_FOREIGN(int, kind##_toint, (int handle)) {                                              \
        return handle;                                                                             \
    }                                                                                              \
    WARREN_FOREIGN(int, kind##_fromint, (int handle)) {                                            \
        return handle;                                                                             \
    }

WARREN_SAME_INTEGER(Comm)
WARREN_SAME_INTEGER(Type)
WARREN_SAME_INTEGER(Group)
WARREN_SAME_INTEGER(Info)
WARREN_SAME_INTEGER(Errhandler)
WARREN_SAME_INTEGER(Op)
WARREN_SAME_INTEGER(Request)
WARREN_SAME_INTEGER(Message)
WARREN_SAME_INTEGER(Win)
WARREN_SAME_INTEGER(Session)

#undef WARREN_SAME_INTEGER

// Fortran's MPI_FILE_NULL is 0.
WARREN_FOREIGN(int, File_c2f, (File file)) {
    return file == nullptr ? 0 : core.File_toint(handle::File::core(file));
}
WARREN_FOREIGN(File, File_f2c, (int file)) {
    return file == 0 ? nullptr : handle::File::foreign(core.File_fromint(file));
}
WARREN_FOREIGN(int, File_toint, (File file)) {
    return call_File_c2f(file);
}
WARREN_FOREIGN(File, File_fromint, (int file)) {
    return call_File_f2c(file);
}

} // namespace warren::foreign
