// Sessions (MPI chapter 11), and communicators made from groups without a parent: what their entry
// points call.
//
// Process sets: mpi://WORLD, the ranks of the job, and mpi://SELF. Sessions and MPI_Init may begin
// and end in any order. The rank's context is in use while one of them is. When the last session
// ends, the context is kept unused, and the next session uses it again. After MPI_Finalize in a
// process that has had no session, the context is gone, and a first session is refused.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"

namespace warren::mpi {

// Opens and closes sessions. Without the rank's lock.
Error session_init(comm::Info* info, comm::ErrorHandler& errhandler, MPI_Session* session);
Error session_finalize(Context& context, comm::Session& session);

// Under the rank's lock.
Error session_get_info(Context& context, comm::Session& session, MPI_Info* info_used);
Error session_get_num_psets(Context& context, comm::Session& session, comm::Info* info,
                            int* npset_names);
Error session_get_nth_pset(Context& context, comm::Session& session, comm::Info* info, int n,
                           int* pset_len, char* pset_name);
Error session_get_pset_info(Context& context, comm::Session& session, const char* pset_name,
                            MPI_Info* info);
Error group_from_session_pset(Context& context, comm::Session& session, const char* pset_name,
                              MPI_Group* newgroup);
Error comm_create_from_group(Context& context, comm::Group& group, const char* stringtag,
                             comm::Info* info, comm::ErrorHandler& errhandler, MPI_Comm* newcomm);
Error intercomm_create_from_groups(Context& context, comm::Group& local_group, int local_leader,
                                   MPI_Group remote_group, int remote_leader, const char* stringtag,
                                   comm::Info* info, comm::ErrorHandler& errhandler,
                                   MPI_Comm* newintercomm);

Error session_set_errhandler(Context& context, comm::Session& session,
                             comm::ErrorHandler& errhandler);
Error session_get_errhandler(Context& context, comm::Session& session, MPI_Errhandler* errhandler);
// Without the rank's lock.
Error session_call_errhandler(Context& context, comm::Session& session, int errorcode);

} // namespace warren::mpi
