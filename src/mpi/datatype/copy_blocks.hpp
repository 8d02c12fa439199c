// copy_blocks: equally large, equally spaced blocks of memory, the inner loops of pack and unpack.
//
// The bottleneck depends on where the blocks lie:
//  * in the caches, instructions: the loops have special cases for the usual block sizes;
//  * at large strides, latency: the hardware's prefetcher stops at each page, so blocks are
//    prefetched into the second-level cache (the strides are often powers of two, which map all
//    blocks to few sets of the first level);
//  * beyond the caches, bandwidth: data is streamed to memory, so that its lines are neither read
//    before they are overwritten nor displace others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mpi.h"
#include "mpi/datatype/tuning.hpp"

namespace warren::datatype {

// Destination of the stores.
enum class Target : std::uint8_t {
    cache,
    // Past the caches. Others may read it after stream_fence() only.
    memory
};

// Copies `count` blocks of `bytes`; strides are in bytes and may be negative.
void copy_blocks(std::byte* to, MPI_Count to_stride, const std::byte* from, MPI_Count from_stride,
                 MPI_Count count, MPI_Count bytes, Target target = Target::cache);

// Copies blocks where one side's lie at base + places[i] and the other's one after the other.
void gather_blocks(std::byte* to, const std::byte* base, const MPI_Count* places, MPI_Count count,
                   MPI_Count bytes);
void scatter_blocks(std::byte* base, const MPI_Count* places, const std::byte* from,
                    MPI_Count count, MPI_Count bytes);

// One block past the caches.
void stream_block(std::byte* to, const std::byte* from, std::size_t bytes);

// Orders what was streamed before what is stored later.
inline void stream_fence() {
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

} // namespace warren::datatype
