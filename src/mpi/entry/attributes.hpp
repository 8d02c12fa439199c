// Attributes (MPI chapter 7.7, and 9.1 for the predefined ones): what their entry points call, and
// the deprecated forms (MPI_Attr_…, MPI_Keyval_…). Called with the rank's lock held, which is given
// away while a function of the program runs.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"

namespace warren::mpi {

Error comm_create_keyval(Context& context, MPI_Comm_copy_attr_function* copy,
                         MPI_Comm_delete_attr_function* remove, int* keyval, void* extra_state);
Error comm_free_keyval(Context& context, int* keyval);
Error comm_set_attr(Context& context, comm::Communicator& comm, int keyval, void* value);
// Stores the value at `value`, a void**: of predefined keys a pointer to an int.
Error comm_get_attr(Context& context, comm::Communicator& comm, int keyval, void* value, int* flag);
Error comm_delete_attr(Context& context, comm::Communicator& comm, int keyval);

Error type_create_keyval(Context& context, MPI_Type_copy_attr_function* copy,
                         MPI_Type_delete_attr_function* remove, int* keyval, void* extra_state);
Error type_free_keyval(Context& context, int* keyval);
Error type_set_attr(Context& context, const datatype::Datatype& type, int keyval, void* value);
Error type_get_attr(Context& context, const datatype::Datatype& type, int keyval, void* value,
                    int* flag);
Error type_delete_attr(Context& context, const datatype::Datatype& type, int keyval);

// Keys of windows can be made, though windows can't yet.
Error win_set_attr(Context& context, rma::Window& win, int keyval, void* value);
Error win_get_attr(Context& context, rma::Window& win, int keyval, void* value, int* flag);
Error win_delete_attr(Context& context, rma::Window& win, int keyval);
Error win_create_keyval(Context& context, MPI_Win_copy_attr_function* copy,
                        MPI_Win_delete_attr_function* remove, int* keyval, void* extra_state);
Error win_free_keyval(Context& context, int* keyval);

} // namespace warren::mpi
