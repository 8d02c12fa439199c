// Groups and communicators (MPI chapter 7): what their entry points call.
//
// Arguments have been checked: handles are live objects. Freeing takes the object; the entry point
// sets the program's handle to null afterwards. Arrays are checked by the callee. Called with the
// rank's lock held.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"
#include "mpi/entry/short_queries.hpp"

namespace warren::mpi {

struct Process;

Error group_compare(Context& context, comm::Group& group1, comm::Group& group2, int* result);
Error group_difference(Context& context, comm::Group& group1, comm::Group& group2,
                       MPI_Group* newgroup);
Error group_excl(Context& context, comm::Group& group, int n, const int ranks[],
                 MPI_Group* newgroup);
Error group_free(Context& context, comm::Group& group);
Error group_incl(Context& context, comm::Group& group, int n, const int ranks[],
                 MPI_Group* newgroup);
Error group_intersection(Context& context, comm::Group& group1, comm::Group& group2,
                         MPI_Group* newgroup);
Error group_range_excl(Context& context, comm::Group& group, int n, int ranges[][3],
                       MPI_Group* newgroup);
Error group_range_incl(Context& context, comm::Group& group, int n, int ranges[][3],
                       MPI_Group* newgroup);
Error group_rank(Context& context, comm::Group& group, int* rank);
Error group_size(Context& context, comm::Group& group, int* size);
Error group_translate_ranks(Context& context, comm::Group& group1, int n, const int ranks1[],
                            comm::Group& group2, int ranks2[]);
Error group_union(Context& context, comm::Group& group1, comm::Group& group2, MPI_Group* newgroup);

Error comm_compare(Context& context, comm::Communicator& comm1, comm::Communicator& comm2,
                   int* result);
Error comm_create(Context& context, comm::Communicator& comm, comm::Group& group,
                  MPI_Comm* newcomm);
Error comm_create_group(Context& context, comm::Communicator& comm, comm::Group& group, int tag,
                        MPI_Comm* newcomm);
Error comm_dup(Context& context, comm::Communicator& comm, MPI_Comm* newcomm);
Error comm_dup_with_info(Context& context, comm::Communicator& comm, comm::Info* info,
                         MPI_Comm* newcomm);
// The duplicate is the program's when the request has completed.
Error comm_idup(Context& context, comm::Communicator& comm, MPI_Comm* newcomm,
                MPI_Request* request);
Error comm_idup_with_info(Context& context, comm::Communicator& comm, comm::Info* info,
                          MPI_Comm* newcomm, MPI_Request* request);
Error comm_free(Context& context, comm::Communicator& comm);
// Waits until the communicator's buffered sends have left.
Error comm_disconnect(Context& context, comm::Communicator& comm);
Error comm_get_name(Context& context, comm::Communicator* comm, char* comm_name, int* resultlen);
Error comm_group(Context& context, comm::Communicator& comm, MPI_Group* group);
Error comm_rank(Context& context, comm::Communicator& comm, int* rank);
Error comm_remote_group(Context& context, comm::Communicator& comm, MPI_Group* group);
Error comm_remote_size(Context& context, comm::Communicator& comm, int* size);
Error comm_set_name(Context& context, comm::Communicator& comm, const char* comm_name);
Error comm_size(Context& context, comm::Communicator& comm, int* size);
Error comm_split(Context& context, comm::Communicator& comm, int color, int key, MPI_Comm* newcomm);
Error comm_split_type(Context& context, comm::Communicator& comm, int split_type, int key,
                      comm::Info* info, MPI_Comm* newcomm);
// Which resources the calling thread is confined to; before MPI_Init, too.
Error get_hw_resource_info(Process& process, MPI_Info* hw_info);
Error comm_test_inter(Context& context, comm::Communicator& comm, int* flag);

Error intercomm_create(Context& context, comm::Communicator& local_comm, int local_leader,
                       MPI_Comm peer_comm, int remote_leader, int tag, MPI_Comm* newintercomm);
Error intercomm_merge(Context& context, comm::Communicator& intercomm, int high,
                      MPI_Comm* newintracomm);

} // namespace warren::mpi
