// copy_blocks: equally large, equally spaced blocks of memory, the inner loop of pack and unpack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mpi.h"

namespace warren::datatype {

// A loop whose block size is known to the compiler: one load and store per 1 to 32 bytes.
template <std::size_t bytes>
inline void copy_fixed(std::byte* to, MPI_Count to_stride, const std::byte* from,
                       MPI_Count from_stride, MPI_Count count) {
    for (; count > 0; --count) {
        std::memcpy(to, from, bytes);
        // As integers: the step beyond the last block need not be a valid pointer.
        to = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(to) + to_stride);
        from = reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(from) +
                                                  from_stride);
    }
}

// Copies `count` blocks of `bytes`; strides are in bytes and may be negative.
void copy_blocks(std::byte* to, MPI_Count to_stride, const std::byte* from, MPI_Count from_stride,
                 MPI_Count count, MPI_Count bytes);

} // namespace warren::datatype
