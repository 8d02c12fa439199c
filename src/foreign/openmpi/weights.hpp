// MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY of Open MPI's ABI. Thread rule: constants.
#pragma once

#include <cstdint>

#include "mpi.h"

namespace warren::foreign {

template <typename Int>
Int* core_weights(Int* weights) {
    constexpr std::uintptr_t unweighted = 2;
    constexpr std::uintptr_t empty = 3;
    const auto address = reinterpret_cast<std::uintptr_t>(weights);
    return address == unweighted ? MPI_UNWEIGHTED : address == empty ? MPI_WEIGHTS_EMPTY : weights;
}

} // namespace warren::foreign
