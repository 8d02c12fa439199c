// The short ways of MPI_Comm_rank, MPI_Comm_size and MPI_Type_size. See short_messages.hpp: false
// means that nothing has been done. Libraries of other ABIs (src/foreign) compile these, too: they
// find the context and the sizes of datatypes by way of ForeignHooks.
#pragma once

#include <cstdint>

#include "mpi/entry/context.hpp"

namespace warren::mpi {

// Whether the calling thread may take short ways.
[[gnu::always_inline]] inline bool is_open(const Context* context) {
    return context != nullptr && !context->rank.lock.closed() && context->failed_on == nullptr;
}

// The communicator of a query; null: the long way.
[[gnu::always_inline]] inline const comm::Communicator*
queried_communicator(Context* context, MPI_Comm comm, const int* result) {
    return is_open(context) && result != nullptr ? context->communicators.find(comm) : nullptr;
}

[[gnu::always_inline]] inline bool short_comm_rank(Context* context, MPI_Comm comm, int* rank) {
    const comm::Communicator* communicator = queried_communicator(context, comm, rank);
    if (communicator == nullptr) [[unlikely]] {
        return false;
    }
    *rank = communicator->rank();
    return true;
}

[[gnu::always_inline]] inline bool short_comm_size(Context* context, MPI_Comm comm, int* size) {
    const comm::Communicator* communicator = queried_communicator(context, comm, size);
    if (communicator == nullptr) [[unlikely]] {
        return false;
    }
    *size = communicator->size();
    return true;
}

// `sizes`: datatype::short_sizes.
template <typename Size>
[[gnu::always_inline]] inline bool short_type_size(Context* context, const std::uint8_t* sizes,
                                                   MPI_Datatype datatype, Size* size) {
    const std::uintptr_t index =
        reinterpret_cast<std::uintptr_t>(datatype) - datatype::predefined_first;
    if (!is_open(context) || size == nullptr || index >= datatype::predefined_limit ||
        sizes[index] == datatype::too_long) [[unlikely]] {
        return false;
    }
    *size = sizes[index];
    return true;
}

// As entry points call them.
[[gnu::always_inline]] inline bool short_comm_rank(MPI_Comm comm, int* rank) {
    return short_comm_rank(own_context, comm, rank);
}
[[gnu::always_inline]] inline bool short_comm_size(MPI_Comm comm, int* size) {
    return short_comm_size(own_context, comm, size);
}
template <typename Size>
[[gnu::always_inline]] inline bool short_type_size(MPI_Datatype datatype, Size* size) {
    return short_type_size(own_context, datatype::short_sizes.data(), datatype, size);
}

} // namespace warren::mpi
