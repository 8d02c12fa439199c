// ForeignHooks: what libraries of other ABIs (src/foreign) need of this one beside its procedures:
// adapters for functions of the program that take foreign handles, and numbers of blocks.
// Thread rule: that of the procedure that makes the object; peers and neighbours: any thread.
#pragma once

#include "mpi.h"
#include "mpi/comm/attributes.hpp"
#include "mpi/comm/error_handler.hpp"
#include "mpi/op/op.hpp"

namespace warren::mpi {

struct ForeignHooks {
    // An object that has just been made gets the adapter that calls its function.
    void (*adapt_op)(MPI_Op op, coll::Op::Adapter adapter);
    void (*adapt_errhandler)(MPI_Errhandler errhandler, comm::ErrorHandler::Adapter adapter);
    void (*adapt_keyval)(int keyval, comm::AttributeOwner owner,
                         comm::Keyval::CopyAdapter copy_adapter,
                         comm::Keyval::DeleteAdapter delete_adapter);

    // Functions of a registration of events get levels of safety as `number` says.
    void (*adapt_event)(MPI_T_event_registration registration, int (*number)(int));

    // Ranks that a collective operation exchanges blocks with; 0 of what is no communicator.
    int (*peers)(MPI_Comm comm);
    int (*neighbours_in)(MPI_Comm comm);
    int (*neighbours_out)(MPI_Comm comm);
};

} // namespace warren::mpi

extern "C" const warren::mpi::ForeignHooks warren_foreign_hooks;
