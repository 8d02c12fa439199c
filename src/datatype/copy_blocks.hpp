// copy_blocks: equally large, equally spaced blocks of memory, the inner loop of pack and unpack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mpi.h"

namespace warren::datatype {

// A loop whose block size is known to the compiler: one load and store per 1 to 64 bytes. Far
// strides leave the hardware's prefetcher behind at every page, so `ahead` blocks are asked for
// beforehand.
template <std::size_t bytes, bool far>
inline void copy_fixed(std::byte* to, MPI_Count to_stride, const std::byte* from,
                       MPI_Count from_stride, MPI_Count count) {
    // As integers: what lies beyond the last block need not be a valid pointer.
    auto to_place = reinterpret_cast<std::uintptr_t>(to);
    auto from_place = reinterpret_cast<std::uintptr_t>(from);
    for (; count > 0; --count) {
        if constexpr (far) {
            constexpr MPI_Count ahead = 16;
            __builtin_prefetch(reinterpret_cast<const void*>(from_place + ahead * from_stride), 0);
            __builtin_prefetch(reinterpret_cast<const void*>(to_place + ahead * to_stride), 1);
        }
        std::memcpy(reinterpret_cast<void*>(to_place), reinterpret_cast<const void*>(from_place),
                    bytes);
        to_place += to_stride;
        from_place += from_stride;
    }
}

// Copies `count` blocks of `bytes`; strides are in bytes and may be negative.
void copy_blocks(std::byte* to, MPI_Count to_stride, const std::byte* from, MPI_Count from_stride,
                 MPI_Count count, MPI_Count bytes);

// The same where one side's blocks lie at base + places[i] and the other's one after the other.
void gather_blocks(std::byte* to, const std::byte* base, const MPI_Count* places, MPI_Count count,
                   MPI_Count bytes);
void scatter_blocks(std::byte* base, const MPI_Count* places, const std::byte* from,
                    MPI_Count count, MPI_Count bytes);

} // namespace warren::datatype
