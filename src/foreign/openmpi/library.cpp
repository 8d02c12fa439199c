// Symbols of libmpi.so.40 beside the standard's procedures: objects, attribute functions, and
// conversions between handles and Fortran's integers.

#include "attribute_functions.hpp"
#include "foreign/arguments.hpp"
#include "foreign/export.hpp"
#include "objects.hpp"

#undef MPI_T_PVAR_ALL_HANDLES

namespace {

int ignored_status[6];

} // namespace

#pragma GCC visibility push(default)
extern "C" {

#define WARREN_DEFINE_OBJECT(name, handle, bytes) warren::foreign::PredefinedObject<bytes> name;
WARREN_OPENMPI_OBJECTS(WARREN_DEFINE_OBJECT)
#undef WARREN_DEFINE_OBJECT

int* MPI_F_STATUS_IGNORE = nullptr; // the Fortran library sets these two
int* MPI_F_STATUSES_IGNORE = nullptr;
void* MPI_F08_STATUS_IGNORE = ignored_status;
void* MPI_F08_STATUSES_IGNORE = ignored_status;

#define WARREN_DEFINE_FUNCTIONS(owner)                                                             \
    int OMPI_C_MPI_##owner##NULL_COPY_FN(void*, int, void*, void*, void**, int* wanted) {          \
        *wanted = 0;                                                                               \
        return MPI_SUCCESS;                                                                        \
    }                                                                                              \
    int OMPI_C_MPI_##owner##DUP_FN(void*, int, void*, void* value, void** copied, int* wanted) {   \
        *copied = value;                                                                           \
        *wanted = 1;                                                                               \
        return MPI_SUCCESS;                                                                        \
    }                                                                                              \
    int OMPI_C_MPI_##owner##NULL_DELETE_FN(void*, int, void*, void*) {                             \
        return MPI_SUCCESS;                                                                        \
    }
WARREN_OPENMPI_ATTRIBUTE_OWNERS(WARREN_DEFINE_FUNCTIONS)
#undef WARREN_DEFINE_FUNCTIONS

} // extern "C"
#pragma GCC visibility pop

namespace warren::foreign {

// Fortran's integers: the ABI's numbers of predefined handles, and the standard's of others.
#define WARREN_FORTRAN_INTEGERS(kind, name, type)                                                  \
    WARREN_FOREIGN(int, kind##_c2f, (type handle)) {                                               \
        const auto core_handle = handle::type::core(handle);                                       \
        const auto bits = reinterpret_cast<std::uintptr_t>(core_handle);                           \
        return bits >= first_handle ? core.kind##_toint(core_handle) : number_of_##name(bits);     \
    }                                                                                              \
    WARREN_FOREIGN(type, kind##_f2c, (int number)) {                                               \
        const auto core_handle =                                                                   \
            number >= static_cast<int>(first_handle)                                               \
                ? core.kind##_fromint(number)                                                      \
                : reinterpret_cast<handle::type::Core>(core_of_number_##name(number));             \
        return handle::type::foreign(core_handle);                                                 \
    }                                                                                              \
    WARREN_FOREIGN(int, kind##_toint, (type handle)) {                                             \
        return call_##kind##_c2f(handle);                                                          \
    }                                                                                              \
    WARREN_FOREIGN(type, kind##_fromint, (int number)) {                                           \
        return call_##kind##_f2c(number);                                                          \
    }

WARREN_FORTRAN_INTEGERS(Comm, comm, Comm)
WARREN_FORTRAN_INTEGERS(Type, datatype, Datatype)
WARREN_FORTRAN_INTEGERS(Group, group, Group)
WARREN_FORTRAN_INTEGERS(Info, info, Info)
WARREN_FORTRAN_INTEGERS(Errhandler, errhandler, Errhandler)
WARREN_FORTRAN_INTEGERS(Op, op, Op)
WARREN_FORTRAN_INTEGERS(Request, request, Request)
WARREN_FORTRAN_INTEGERS(Message, message, Message)
WARREN_FORTRAN_INTEGERS(Win, win, Win)
WARREN_FORTRAN_INTEGERS(Session, session, Session)
WARREN_FORTRAN_INTEGERS(File, file, File)

#undef WARREN_FORTRAN_INTEGERS

} // namespace warren::foreign
