// The predefined copy and delete functions of Open MPI's ABI: real ones, for each kind of object.
// Thread rule: constants.
#pragma once

#include "mpi.h"

#define WARREN_OPENMPI_ATTRIBUTE_OWNERS(OWNER) OWNER() OWNER(COMM_) OWNER(TYPE_) OWNER(WIN_)

#pragma GCC visibility push(default)
extern "C" {
#define WARREN_DECLARE_FUNCTIONS(owner)                                                            \
    int OMPI_C_MPI_##owner##NULL_COPY_FN(void*, int, void*, void*, void**, int*);                  \
    int OMPI_C_MPI_##owner##DUP_FN(void*, int, void*, void*, void**, int*);                        \
    int OMPI_C_MPI_##owner##NULL_DELETE_FN(void*, int, void*, void*);
WARREN_OPENMPI_ATTRIBUTE_OWNERS(WARREN_DECLARE_FUNCTIONS)
#undef WARREN_DECLARE_FUNCTIONS
}
#pragma GCC visibility pop

namespace warren::foreign {

// The standard's are small numbers, which need no call.
template <typename Function>
void* core_copy_function(Function* function) {
    auto* address = reinterpret_cast<void*>(function);
#define WARREN_TRANSLATE_FUNCTIONS(owner)                                                          \
    if (address == reinterpret_cast<void*>(OMPI_C_MPI_##owner##NULL_COPY_FN)) {                    \
        return reinterpret_cast<void*>(MPI_COMM_NULL_COPY_FN);                                     \
    }                                                                                              \
    if (address == reinterpret_cast<void*>(OMPI_C_MPI_##owner##DUP_FN)) {                          \
        return reinterpret_cast<void*>(MPI_COMM_DUP_FN);                                           \
    }
    WARREN_OPENMPI_ATTRIBUTE_OWNERS(WARREN_TRANSLATE_FUNCTIONS)
#undef WARREN_TRANSLATE_FUNCTIONS
    return address;
}

template <typename Function>
void* core_delete_function(Function* function) {
    auto* address = reinterpret_cast<void*>(function);
#define WARREN_TRANSLATE_FUNCTION(owner)                                                           \
    if (address == reinterpret_cast<void*>(OMPI_C_MPI_##owner##NULL_DELETE_FN)) {                  \
        return reinterpret_cast<void*>(MPI_COMM_NULL_DELETE_FN);                                   \
    }
    WARREN_OPENMPI_ATTRIBUTE_OWNERS(WARREN_TRANSLATE_FUNCTION)
#undef WARREN_TRANSLATE_FUNCTION
    return address;
}

} // namespace warren::foreign
