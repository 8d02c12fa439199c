// The tool information interface (MPI chapter 15): initialised and asked at any time, and empty:
// Warren has no control variables, performance variables, categories or events yet. Its calls
// return their codes, there are no error handlers. Thread rule: any thread at any time.
#pragma once

#include "mpi.h"

namespace warren::mpi {

// Counted: as many finalize as init_thread.
int t_init_thread(int required, int* provided);
int t_finalize();
bool tool_interface_initialised();

int t_cvar_get_num(int* num_cvar);
int t_pvar_get_num(int* num_pvar);
int t_category_get_num(int* num_cat);
int t_category_changed(int* update_number);
int t_event_get_num(int* num_events);
int t_source_get_num(int* num_sources);

// A session has nothing in it but can be had.
int t_pvar_session_create(MPI_T_pvar_session* session);
int t_pvar_session_free(MPI_T_pvar_session* session);

} // namespace warren::mpi
