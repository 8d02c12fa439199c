// One-sided communication (MPI chapter 12): what its entry points call.
//
// Arguments have been checked: handles are objects, target ranks are of the window or
// MPI_PROC_NULL, counts are in range, datatypes are committed, the origin's buffers may be read.
// Not checked: displacements, bounds, epochs and assertions, which the room mpi/rma looks at.
// Thread rule: called with the rank's lock held; waits release it.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"
#include "mpi/entry/short_windows.hpp"

namespace warren::mpi {

// Windows. First what a rank whose arguments are wrong does, so that the others don't wait.
Error refuse_new_window(Context& context, comm::Communicator& comm, Error wrong);
Error win_create(Context& context, void* base, MPI_Aint size, MPI_Count disp_unit, comm::Info* info,
                 comm::Communicator& comm, MPI_Win* win);
Error win_allocate(Context& context, MPI_Aint size, MPI_Count disp_unit, comm::Info* info,
                   comm::Communicator& comm, void* baseptr, MPI_Win* win);
Error win_allocate_shared(Context& context, MPI_Aint size, MPI_Count disp_unit, comm::Info* info,
                          comm::Communicator& comm, void* baseptr, MPI_Win* win);
Error win_create_dynamic(Context& context, comm::Info* info, comm::Communicator& comm,
                         MPI_Win* win);
Error win_attach(Context& context, rma::Window& win, void* base, MPI_Aint size);
Error win_detach(Context& context, rma::Window& win, const void* base);
Error win_free(Context& context, rma::Window& win);
Error win_get_group(Context& context, rma::Window& win, MPI_Group* group);
Error win_shared_query(Context& context, rma::Window& win, int rank, MPI_Aint* size,
                       MPI_Count& disp_unit, void* baseptr);
Error win_set_name(Context& context, rma::Window& win, const char* win_name);
Error win_get_name(Context& context, rma::Window* win, char* win_name, int* resultlen);
Error win_set_info(Context& context, rma::Window& win, comm::Info& info);
Error win_get_info(Context& context, rma::Window& win, MPI_Info* info_used);

// Synchronisation.
Error win_fence(Context& context, int assertions, rma::Window& win);
Error win_lock(Context& context, int lock_type, int rank, int assertions, rma::Window& win);
Error win_unlock(Context& context, int rank, rma::Window& win);
Error win_lock_all(Context& context, int assertions, rma::Window& win);
Error win_unlock_all(Context& context, rma::Window& win);
Error win_flush(Context& context, int rank, rma::Window& win);
Error win_flush_all(Context& context, rma::Window& win);
Error win_flush_local(Context& context, int rank, rma::Window& win);
Error win_flush_local_all(Context& context, rma::Window& win);
Error win_sync(Context& context, rma::Window& win);
Error win_post(Context& context, comm::Group& group, int assertions, rma::Window& win);
Error win_start(Context& context, comm::Group& group, int assertions, rma::Window& win);
Error win_complete(Context& context, rma::Window& win);
Error win_wait(Context& context, rma::Window& win);
Error win_test(Context& context, rma::Window& win, int* flag);

// Operations. Those with a request are complete when they return.
Error put(Context& context, const void* origin_addr, MPI_Count origin_count,
          const datatype::Datatype& origin_datatype, int target_rank, MPI_Aint target_disp,
          MPI_Count target_count, const datatype::Datatype& target_datatype, rma::Window& win);
Error get(Context& context, void* origin_addr, MPI_Count origin_count,
          const datatype::Datatype& origin_datatype, int target_rank, MPI_Aint target_disp,
          MPI_Count target_count, const datatype::Datatype& target_datatype, rma::Window& win);
Error accumulate(Context& context, const void* origin_addr, MPI_Count origin_count,
                 const datatype::Datatype& origin_datatype, int target_rank, MPI_Aint target_disp,
                 MPI_Count target_count, const datatype::Datatype& target_datatype, coll::Op& op,
                 rma::Window& win);
Error get_accumulate(Context& context, const void* origin_addr, MPI_Count origin_count,
                     const datatype::Datatype& origin_datatype, void* result_addr,
                     MPI_Count result_count, const datatype::Datatype& result_datatype,
                     int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                     const datatype::Datatype& target_datatype, coll::Op& op, rma::Window& win);
Error fetch_and_op(Context& context, const void* origin_addr, void* result_addr,
                   const datatype::Datatype& datatype, int target_rank, MPI_Aint target_disp,
                   coll::Op& op, rma::Window& win);
Error compare_and_swap(Context& context, const void* origin_addr, const void* compare_addr,
                       void* result_addr, const datatype::Datatype& datatype, int target_rank,
                       MPI_Aint target_disp, rma::Window& win);
Error rput(Context& context, const void* origin_addr, MPI_Count origin_count,
           const datatype::Datatype& origin_datatype, int target_rank, MPI_Aint target_disp,
           MPI_Count target_count, const datatype::Datatype& target_datatype, rma::Window& win,
           MPI_Request* request);
Error rget(Context& context, void* origin_addr, MPI_Count origin_count,
           const datatype::Datatype& origin_datatype, int target_rank, MPI_Aint target_disp,
           MPI_Count target_count, const datatype::Datatype& target_datatype, rma::Window& win,
           MPI_Request* request);
Error raccumulate(Context& context, const void* origin_addr, MPI_Count origin_count,
                  const datatype::Datatype& origin_datatype, int target_rank, MPI_Aint target_disp,
                  MPI_Count target_count, const datatype::Datatype& target_datatype, coll::Op& op,
                  rma::Window& win, MPI_Request* request);
Error rget_accumulate(Context& context, const void* origin_addr, MPI_Count origin_count,
                      const datatype::Datatype& origin_datatype, void* result_addr,
                      MPI_Count result_count, const datatype::Datatype& result_datatype,
                      int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                      const datatype::Datatype& target_datatype, coll::Op& op, rma::Window& win,
                      MPI_Request* request);

} // namespace warren::mpi
