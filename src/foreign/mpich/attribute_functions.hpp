// The predefined copy and delete functions of MPICH's ABI: null pointers, but for MPIR_Dup_fn.
// Thread rule: constants.
#pragma once

#include "mpi.h"

extern "C" int MPIR_Dup_fn(int object, int keyval, void* extra_state, void* value, void** copied,
                           int* wanted);

namespace warren::foreign {

// The standard's MPI_COMM_DUP_FN is the address 1, others are themselves.
template <typename Function>
void* core_copy_function(Function* function) {
    return reinterpret_cast<void*>(function) == reinterpret_cast<void*>(MPIR_Dup_fn)
               ? reinterpret_cast<void*>(MPI_COMM_DUP_FN)
               : reinterpret_cast<void*>(function);
}

template <typename Function>
void* core_delete_function(Function* function) {
    return reinterpret_cast<void*>(function);
}

} // namespace warren::foreign
