// ForeignHooks: what libraries of other ABIs (src/foreign) need of this one beside its procedures:
// adapters for functions of the program that take foreign handles, attributes of Fortran, copies of
// array sections, and numbers of blocks.
// Thread rule: that of the procedure that makes the object; peers and neighbours: any thread.
#pragma once

#include "mpi.h"
#include "mpi/comm/attributes.hpp"
#include "mpi/comm/error_handler.hpp"
#include "mpi/op/op.hpp"

namespace warren::mpi {

struct Context;

// A copy that an operation uses in place of an array section: one element of `layout` at `section`.
struct SectionCopy {
    void* section;
    MPI_Datatype layout;
    void* copy; // from malloc
    MPI_Count bytes;
    bool goes_back; // when the operation ends
};

struct ForeignHooks {
    // An object that has just been made gets the adapter that calls its function.
    // adapt_op: null leaves the operation's function as it is; the one before is returned.
    coll::Op::Function (*adapt_op)(MPI_Op op, coll::Op::Adapter adapter,
                                   coll::Op::Function function);
    void (*adapt_errhandler)(MPI_Errhandler errhandler, comm::ErrorHandler::Adapter adapter);
    void (*adapt_keyval)(int keyval, comm::AttributeOwner owner,
                         comm::Keyval::CopyAdapter copy_adapter,
                         comm::Keyval::DeleteAdapter delete_adapter);

    // Values of attributes that Fortran sets (comm/attribute_numbers.hpp). make_number stores the
    // address to set: null before MPI_Init, which the setting procedure refuses. False: no memory.
    // free_number: setting it failed.
    bool (*make_number)(MPI_Aint number, void** address);
    void (*free_number)(void* address);
    // False: C has set the value.
    bool (*number_at)(void* value, MPI_Aint* number);

    // Functions of a registration of events get levels of safety as `number` says.
    void (*adapt_event)(MPI_T_event_registration registration, int (*number)(int));

    // Gives the copy to the request of a collective operation that has just been made; a persistent
    // one fills it at each start. False: the operation has ended, the caller keeps the copy.
    bool (*hold_copy)(MPI_Request request, const SectionCopy& copy);

    // Ranks that a collective operation exchanges blocks with; 0 of what is no communicator.
    int (*peers)(MPI_Comm comm);
    int (*neighbours_in)(MPI_Comm comm);
    int (*neighbours_out)(MPI_Comm comm);

    // For short ways of queries (short_queries.hpp): where the calling thread's context is, at a
    // distance from its thread pointer that is the same for all threads; and datatype::short_sizes.
    Context* const* (*context_place)();
    const std::uint8_t* short_sizes;

    // Whether a data representation has been registered with this state: MPI_Register_datarep has
    // succeeded, whatever an error handler has made of its code.
    bool (*has_representation)(const char* name, const void* extra_state);
};

} // namespace warren::mpi

extern "C" const warren::mpi::ForeignHooks warren_foreign_hooks;
