// Datatypes, packing and reduction operations (MPI chapters 5 and 6.9): what their entry points
// call.
//
// Arguments have been checked: handles are live objects; datatypes of pack and unpack are
// committed; counts are not negative; strings and results are not null. Elements of arrays are the
// callee's to check. Where a result of an original procedure does not fit its int, the entry point
// makes it MPI_UNDEFINED (type_size) or MPI_ERR_VALUE_TOO_LARGE (positions and sizes of packing).
// Freeing takes the object; the entry point sets the program's handle to null afterwards. Called
// with the rank's lock held.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/count_array.hpp"
#include "mpi/entry/objects.hpp"
#include "mpi/entry/short_queries.hpp"

namespace warren::mpi {

Error type_contiguous(Context& context, MPI_Count count, const datatype::Datatype& oldtype,
                      MPI_Datatype* newtype);
Error type_create_darray(Context& context, int size, int rank, int ndims,
                         CountArray array_of_gsizes, const int array_of_distribs[],
                         const int array_of_dargs[], const int array_of_psizes[], int order,
                         const datatype::Datatype& oldtype, MPI_Datatype* newtype);
Error type_create_hindexed(Context& context, MPI_Count count, CountArray array_of_blocklengths,
                           CountArray array_of_displacements, const datatype::Datatype& oldtype,
                           MPI_Datatype* newtype);
Error type_create_hindexed_block(Context& context, MPI_Count count, MPI_Count blocklength,
                                 CountArray array_of_displacements,
                                 const datatype::Datatype& oldtype, MPI_Datatype* newtype);
Error type_create_hvector(Context& context, MPI_Count count, MPI_Count blocklength,
                          MPI_Count stride, const datatype::Datatype& oldtype,
                          MPI_Datatype* newtype);
Error type_create_indexed_block(Context& context, MPI_Count count, MPI_Count blocklength,
                                CountArray array_of_displacements,
                                const datatype::Datatype& oldtype, MPI_Datatype* newtype);
Error type_create_resized(Context& context, const datatype::Datatype& oldtype, MPI_Count lb,
                          MPI_Count extent, MPI_Datatype* newtype);
Error type_create_struct(Context& context, MPI_Count count, CountArray array_of_blocklengths,
                         CountArray array_of_displacements, const MPI_Datatype array_of_types[],
                         MPI_Datatype* newtype);
Error type_create_subarray(Context& context, int ndims, CountArray array_of_sizes,
                           CountArray array_of_subsizes, CountArray array_of_starts, int order,
                           const datatype::Datatype& oldtype, MPI_Datatype* newtype);
Error type_dup(Context& context, const datatype::Datatype& oldtype, MPI_Datatype* newtype);
Error type_indexed(Context& context, MPI_Count count, CountArray array_of_blocklengths,
                   CountArray array_of_displacements, const datatype::Datatype& oldtype,
                   MPI_Datatype* newtype);
Error type_vector(Context& context, MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                  const datatype::Datatype& oldtype, MPI_Datatype* newtype);

Error type_commit(Context& context, const datatype::Datatype& datatype);
Error type_free(Context& context, const datatype::Datatype& datatype);

Error type_get_contents(Context& context, const datatype::Datatype& datatype, int max_integers,
                        int max_addresses, int max_datatypes, int array_of_integers[],
                        MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[]);
Error type_get_envelope(Context& context, const datatype::Datatype& datatype, int* num_integers,
                        int* num_addresses, int* num_datatypes, int* combiner);
Error type_get_extent(Context& context, const datatype::Datatype& datatype, MPI_Count& lb,
                      MPI_Count& extent);
Error type_get_extent_x(Context& context, const datatype::Datatype& datatype, MPI_Count* lb,
                        MPI_Count* extent);
Error type_get_name(Context& context, const datatype::Datatype* datatype, char* type_name,
                    int* resultlen);
Error type_get_true_extent(Context& context, const datatype::Datatype& datatype, MPI_Count& true_lb,
                           MPI_Count& true_extent);
Error type_get_true_extent_x(Context& context, const datatype::Datatype& datatype,
                             MPI_Count* true_lb, MPI_Count* true_extent);
Error type_set_name(Context& context, const datatype::Datatype& datatype, const char* type_name);
Error type_size(Context& context, const datatype::Datatype& datatype, MPI_Count& size);
Error type_size_x(Context& context, const datatype::Datatype& datatype, MPI_Count* size);
Error type_get_envelope_c(Context& context, const datatype::Datatype& datatype,
                          MPI_Count* num_integers, MPI_Count* num_addresses,
                          MPI_Count* num_large_counts, MPI_Count* num_datatypes, int* combiner);
Error type_get_contents_c(Context& context, const datatype::Datatype& datatype,
                          MPI_Count max_integers, MPI_Count max_addresses,
                          MPI_Count max_large_counts, MPI_Count max_datatypes,
                          int array_of_integers[], MPI_Aint array_of_addresses[],
                          MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[]);

Error get_address(Context& context, const void* location, MPI_Aint* address);
Error type_create_f90_complex(Context& context, int p, int r, MPI_Datatype* newtype);
Error type_create_f90_integer(Context& context, int r, MPI_Datatype* newtype);
Error type_create_f90_real(Context& context, int p, int r, MPI_Datatype* newtype);
Error type_get_value_index(Context& context, const datatype::Datatype& value_type,
                           const datatype::Datatype& index_type, MPI_Datatype* pair_type);
Error type_match_size(Context& context, int typeclass, int size, MPI_Datatype* datatype);

// Packing.
Error pack(Context& context, const void* inbuf, MPI_Count incount,
           const datatype::Datatype& datatype, void* outbuf, MPI_Count outsize, MPI_Count& position,
           comm::Communicator& comm);
Error pack_external(Context& context, const char* datarep, const void* inbuf, MPI_Count incount,
                    const datatype::Datatype& datatype, void* outbuf, MPI_Count outsize,
                    MPI_Count& position);
Error pack_external_size(Context& context, const char* datarep, MPI_Count incount,
                         const datatype::Datatype& datatype, MPI_Count& size);
Error pack_size(Context& context, MPI_Count incount, const datatype::Datatype& datatype,
                comm::Communicator& comm, MPI_Count& size);
Error unpack(Context& context, const void* inbuf, MPI_Count insize, MPI_Count& position,
             void* outbuf, MPI_Count outcount, const datatype::Datatype& datatype,
             comm::Communicator& comm);
Error unpack_external(Context& context, const char datarep[], const void* inbuf, MPI_Count insize,
                      MPI_Count& position, void* outbuf, MPI_Count outcount,
                      const datatype::Datatype& datatype);

// Reduction operations: one of the two functions is null.
Error op_commutative(Context& context, coll::Op& op, int* commute);
Error op_create(Context& context, MPI_User_function* user_fn, MPI_User_function_c* user_fn_c,
                int commute, MPI_Op* op);
Error op_free(Context& context, coll::Op& op);

} // namespace warren::mpi
