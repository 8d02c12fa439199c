// Symbols of the modules beside the standard's C procedures: operators for handles, conversions of
// statuses, sizes, and those procedures whose large-count forms take functions.

#include "sections.hpp"

namespace warren::foreign::fortran {

// Handles of a kind are equal if their INTEGERs are.
#define WARREN_HANDLE_OPERATORS(kind)                                                              \
    extern "C" __attribute__((visibility("default"))) int equal_##kind(                            \
        const int* a, const int* b) asm("mpi_abi_equal_" #kind "_");                               \
    extern "C" __attribute__((visibility("default"))) int unequal_##kind(                          \
        const int* a, const int* b) asm("mpi_abi_unequal_" #kind "_");                             \
    int equal_##kind(const int* a, const int* b) {                                                 \
        return *a == *b;                                                                           \
    }                                                                                              \
    int unequal_##kind(const int* a, const int* b) {                                               \
        return *a != *b;                                                                           \
    }
WARREN_HANDLE_OPERATORS(comm)
WARREN_HANDLE_OPERATORS(datatype)
WARREN_HANDLE_OPERATORS(group)
WARREN_HANDLE_OPERATORS(info)
WARREN_HANDLE_OPERATORS(errhandler)
WARREN_HANDLE_OPERATORS(op)
WARREN_HANDLE_OPERATORS(request)
WARREN_HANDLE_OPERATORS(session)
WARREN_HANDLE_OPERATORS(message)
WARREN_HANDLE_OPERATORS(file)
WARREN_HANDLE_OPERATORS(win)
#undef WARREN_HANDLE_OPERATORS

// Both forms of a status are the same eight INTEGERs.
WARREN_FORTRAN(status_f2f08, STATUS_F2F08, (const int* from, Status* to, int* ierror)) {
    std::memcpy(to, from, sizeof *to);
    finish(ierror, MPI_SUCCESS);
}
WARREN_FORTRAN(status_f082f, STATUS_F082F, (const Status* from, int* to, int* ierror)) {
    std::memcpy(to, from, sizeof *from);
    finish(ierror, MPI_SUCCESS);
}

WARREN_FORTRAN_SECTIONS(sizeof, f08ts, (const Descriptor* x, int* size, int* ierror)) {
    *size = static_cast<int>(x->element_bytes);
    finish(ierror, MPI_SUCCESS);
}

WARREN_FORTRAN_SECTIONS(f_sync_reg, f08ts, (const Descriptor*)) {}

// A reduction function that takes counts of the large kind; the count is passed on as it comes.
WARREN_FORTRAN_SECTIONS(op_create_c, f08,
                        (MPI_User_function_c * function, int* commute, int* op, int* ierror)) {
    MPI_Op made = MPI_OP_NULL;
    const int code = core.Op_create_c(function, *commute != 0, &made);
    if (code == MPI_SUCCESS) {
        const auto call = [](coll::Op::Function user, void* in, void* inout, void* count,
                             MPI_Datatype type) {
            int number = integer::Type::to(type);
            reinterpret_cast<void (*)(void*, void*, void*, int*)>(user)(in, inout, count, &number);
        };
        hooks.adapt_op(made, call, nullptr);
        *op = integer::Op::to(made);
    }
    finish(ierror, code);
}

// (As that of INTEGER counts: foreign/fortran/refused.cpp.)
WARREN_FORTRAN_SECTIONS(register_datarep_c, f08,
                        (char*, void*, void*, void*, MPI_Aint*, int* ierror, std::size_t)) {
    finish(ierror, MPI_ERR_UNSUPPORTED_OPERATION);
}

WARREN_FORTRAN_SECTIONS(conversion_fn_null, c,
                        (void*, int*, MPI_Count*, void*, MPI_Offset*, MPI_Aint*, int* ierror)) {
    finish(ierror, MPI_SUCCESS);
}

} // namespace warren::foreign::fortran
