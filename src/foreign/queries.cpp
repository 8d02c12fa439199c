// MPI_Comm_rank, MPI_Comm_size and MPI_Type_size: a call of the core would cost more than what they
// do, so their short ways are compiled in here.

#include <cstddef>

#include "foreign/arguments.hpp"
#include "foreign/export.hpp"
#include "mpi/entry/short_queries.hpp"

namespace warren::foreign {

namespace {

std::byte* thread_pointer() {
#if defined(__x86_64__)
    std::byte* pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
#else
    return static_cast<std::byte*>(__builtin_thread_pointer());
#endif
}

// From the thread pointer to the place of the core's context; set before functions of the program
// run. Invariant: no place is at distance 0, where the thread's own data are.
std::ptrdiff_t context_distance = 0;

[[gnu::constructor(101)]] void find_context_distance() {
    context_distance = reinterpret_cast<const std::byte*>(hooks.context_place()) - thread_pointer();
}

mpi::Context* calling_context() {
    return context_distance != 0
               ? *reinterpret_cast<mpi::Context* const*>(thread_pointer() + context_distance)
               : nullptr;
}

template <typename Size>
bool type_size(MPI_Datatype datatype, Size* size) {
    return mpi::short_type_size(calling_context(), hooks.short_sizes, datatype, size);
}

} // namespace

WARREN_FOREIGN(int, Comm_rank, (Comm comm, int* rank)) {
    const MPI_Comm core_comm = handle::Comm::core(comm);
    if (mpi::short_comm_rank(calling_context(), core_comm, rank)) [[likely]] {
        return MPI_SUCCESS;
    }
    return foreign_error(core.Comm_rank(core_comm, rank));
}

WARREN_FOREIGN(int, Comm_size, (Comm comm, int* size)) {
    const MPI_Comm core_comm = handle::Comm::core(comm);
    if (mpi::short_comm_size(calling_context(), core_comm, size)) [[likely]] {
        return MPI_SUCCESS;
    }
    return foreign_error(core.Comm_size(core_comm, size));
}

WARREN_FOREIGN(int, Type_size, (Datatype datatype, int* size)) {
    const MPI_Datatype core_datatype = handle::Datatype::core(datatype);
    if (type_size(core_datatype, size)) [[likely]] {
        return MPI_SUCCESS;
    }
    return foreign_error(core.Type_size(core_datatype, size));
}

WARREN_FOREIGN(int, Type_size_c, (Datatype datatype, MPI_Count* size)) {
    const MPI_Datatype core_datatype = handle::Datatype::core(datatype);
    if (type_size(core_datatype, size)) [[likely]] {
        return MPI_SUCCESS;
    }
    return foreign_error(core.Type_size_c(core_datatype, size));
}

} // namespace warren::foreign
