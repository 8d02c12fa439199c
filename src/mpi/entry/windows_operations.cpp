// Synchronisation of windows, and the operations on their memory.
#include "mpi/entry/context.hpp"
#include "mpi/entry/requests.hpp"
#include "mpi/entry/windows.hpp"

namespace warren::mpi {

namespace {

// A request-based operation, which is "only valid within a passive target epoch" (MPI 5.0, 12.3.5).
// Operations complete in their call: so does the request.
template <typename Operation>
Error complete_at_once(Context& context, rma::Window& win, int target, MPI_Request* request,
                       Operation operation) {
    if (target != MPI_PROC_NULL && !win.epochs().passive(target)) {
        return fail(MPI_ERR_RMA_SYNC,
                    "an operation with a request needs an epoch of MPI_Win_lock or "
                    "MPI_Win_lock_all, and there is none for rank %d",
                    target);
    }
    Error error = operation();
    win.poll(); // its completion is no call of the window's
    if (!error) {
        *request = request_handle(context.messages.sent());
    }
    return error;
}

Error check_pointer(const char* name, const void* pointer) {
    return pointer != nullptr ? Error() : fail(MPI_ERR_BUFFER, "%s is a null pointer", name);
}

// Short ways don't come here, but they are closed while somebody wants to know.
void count(Context& context, MPI_Count count, const datatype::Datatype& type,
           const rma::Window& win, int target) {
    if (!context.rank.lock.observed()) [[likely]] {
        return;
    }
    const auto bytes = static_cast<std::uint64_t>(count * type.size);
    context.rank.counts.window_operations.add(bytes);
    if (context.rank.profile.on() && target != MPI_PROC_NULL) {
        context.rank.profile.accessed(win.communicator().endpoint(target), bytes);
    }
}

// Calls use(layout) with that of data at a target, whose place the window knows.
template <typename Use>
Error with_layout(MPI_Count count, const datatype::Datatype& type, Use use) {
    MPI_Count bytes;
    if (!type.bytes_of(count, bytes)) {
        return fail(MPI_ERR_COUNT,
                    "target_count = %lld: that many elements are more bytes than 64 bits count",
                    static_cast<long long>(count));
    }
    return use(buffer_of(nullptr, count, type));
}

} // namespace

Error win_fence(Context&, int assertions, rma::Window& win) {
    return win.fence(assertions);
}

Error win_lock(Context&, int lock_type, int rank, int assertions, rma::Window& win) {
    return win.lock(lock_type, rank, assertions);
}

Error win_unlock(Context&, int rank, rma::Window& win) {
    return win.unlock(rank);
}

Error win_lock_all(Context&, int assertions, rma::Window& win) {
    return win.lock_all(assertions);
}

Error win_unlock_all(Context&, rma::Window& win) {
    return win.unlock_all();
}

Error win_flush(Context&, int rank, rma::Window& win) {
    return win.flush(rank);
}

Error win_flush_all(Context&, rma::Window& win) {
    return win.flush_all();
}

Error win_flush_local(Context&, int rank, rma::Window& win) {
    return win.flush(rank);
}

Error win_flush_local_all(Context&, rma::Window& win) {
    return win.flush_all();
}

Error win_sync(Context&, rma::Window& win) {
    rma::Window::synchronise();
    win.poll();
    return {};
}

Error win_post(Context&, comm::Group& group, int assertions, rma::Window& win) {
    return win.post(group, assertions);
}

Error win_start(Context&, comm::Group& group, int assertions, rma::Window& win) {
    return win.start(group, assertions);
}

Error win_complete(Context&, rma::Window& win) {
    return win.complete();
}

Error win_wait(Context&, rma::Window& win) {
    return win.wait();
}

Error win_test(Context&, rma::Window& win, int* flag) {
    bool over = false;
    Error error = win.test(over);
    *flag = over ? 1 : 0;
    return error;
}

Error put(Context& context, const void* origin_addr, MPI_Count origin_count,
          const datatype::Datatype& origin_datatype, int target_rank, MPI_Aint target_disp,
          MPI_Count target_count, const datatype::Datatype& target_datatype, rma::Window& win) {
    count(context, origin_count, origin_datatype, win, target_rank);
    return with_layout(target_count, target_datatype, [&](const message::Buffer& there) {
        return win.put(buffer_of(origin_addr, origin_count, origin_datatype), target_rank,
                       target_disp, there);
    });
}

Error get(Context& context, void* origin_addr, MPI_Count origin_count,
          const datatype::Datatype& origin_datatype, int target_rank, MPI_Aint target_disp,
          MPI_Count target_count, const datatype::Datatype& target_datatype, rma::Window& win) {
    count(context, origin_count, origin_datatype, win, target_rank);
    return with_layout(target_count, target_datatype, [&](const message::Buffer& there) {
        return win.get(buffer_of(origin_addr, origin_count, origin_datatype), target_rank,
                       target_disp, there);
    });
}

Error accumulate(Context& context, const void* origin_addr, MPI_Count origin_count,
                 const datatype::Datatype& origin_datatype, int target_rank, MPI_Aint target_disp,
                 MPI_Count target_count, const datatype::Datatype& target_datatype, coll::Op& op,
                 rma::Window& win) {
    count(context, origin_count, origin_datatype, win, target_rank);
    return with_layout(target_count, target_datatype, [&](const message::Buffer& there) {
        return win.accumulate(buffer_of(origin_addr, origin_count, origin_datatype), nullptr,
                              target_rank, target_disp, there, op);
    });
}

Error get_accumulate(Context& context, const void* origin_addr, MPI_Count origin_count,
                     const datatype::Datatype& origin_datatype, void* result_addr,
                     MPI_Count result_count, const datatype::Datatype& result_datatype,
                     int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                     const datatype::Datatype& target_datatype, coll::Op& op, rma::Window& win) {
    count(context, result_count, result_datatype, win, target_rank);
    const message::Buffer result = buffer_of(result_addr, result_count, result_datatype);
    return with_layout(target_count, target_datatype, [&](const message::Buffer& there) {
        return win.accumulate(buffer_of(origin_addr, origin_count, origin_datatype), &result,
                              target_rank, target_disp, there, op);
    });
}

Error fetch_and_op(Context& context, const void* origin_addr, void* result_addr,
                   const datatype::Datatype& datatype, int target_rank, MPI_Aint target_disp,
                   coll::Op& op, rma::Window& win) {
    count(context, 1, datatype, win, target_rank);
    if (op.kind() != coll::OpKind::no_op) {
        if (Error error = check_pointer("origin_addr", origin_addr)) {
            return error;
        }
    }
    if (Error error = check_pointer("result_addr", result_addr)) {
        return error;
    }
    return win.fetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp, op);
}

Error compare_and_swap(Context& context, const void* origin_addr, const void* compare_addr,
                       void* result_addr, const datatype::Datatype& datatype, int target_rank,
                       MPI_Aint target_disp, rma::Window& win) {
    count(context, 1, datatype, win, target_rank);
    if (Error error = check_pointer("origin_addr", origin_addr)) {
        return error;
    }
    if (Error error = check_pointer("compare_addr", compare_addr)) {
        return error;
    }
    if (Error error = check_pointer("result_addr", result_addr)) {
        return error;
    }
    return win.compare_and_swap(origin_addr, compare_addr, result_addr, datatype, target_rank,
                                target_disp);
}

Error rput(Context& context, const void* origin_addr, MPI_Count origin_count,
           const datatype::Datatype& origin_datatype, int target_rank, MPI_Aint target_disp,
           MPI_Count target_count, const datatype::Datatype& target_datatype, rma::Window& win,
           MPI_Request* request) {
    return complete_at_once(context, win, target_rank, request, [&] {
        return put(context, origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                   target_count, target_datatype, win);
    });
}

Error rget(Context& context, void* origin_addr, MPI_Count origin_count,
           const datatype::Datatype& origin_datatype, int target_rank, MPI_Aint target_disp,
           MPI_Count target_count, const datatype::Datatype& target_datatype, rma::Window& win,
           MPI_Request* request) {
    return complete_at_once(context, win, target_rank, request, [&] {
        return get(context, origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                   target_count, target_datatype, win);
    });
}

Error raccumulate(Context& context, const void* origin_addr, MPI_Count origin_count,
                  const datatype::Datatype& origin_datatype, int target_rank, MPI_Aint target_disp,
                  MPI_Count target_count, const datatype::Datatype& target_datatype, coll::Op& op,
                  rma::Window& win, MPI_Request* request) {
    return complete_at_once(context, win, target_rank, request, [&] {
        return accumulate(context, origin_addr, origin_count, origin_datatype, target_rank,
                          target_disp, target_count, target_datatype, op, win);
    });
}

Error rget_accumulate(Context& context, const void* origin_addr, MPI_Count origin_count,
                      const datatype::Datatype& origin_datatype, void* result_addr,
                      MPI_Count result_count, const datatype::Datatype& result_datatype,
                      int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                      const datatype::Datatype& target_datatype, coll::Op& op, rma::Window& win,
                      MPI_Request* request) {
    return complete_at_once(context, win, target_rank, request, [&] {
        return get_accumulate(context, origin_addr, origin_count, origin_datatype, result_addr,
                              result_count, result_datatype, target_rank, target_disp, target_count,
                              target_datatype, op, win);
    });
}

} // namespace warren::mpi
