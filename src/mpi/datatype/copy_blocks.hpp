// copy_blocks: equally large, equally spaced blocks of memory, the inner loops of pack and unpack.
//
// Their limit depends on where the blocks lie. In the caches it is instructions: the loops
// know the usual block sizes. Far strides leave the hardware's prefetcher behind at every page, so
// blocks are asked for beforehand, into the second-level cache: strides are often powers of two,
// and then a way of the first level holds none of them. And what is too large for the caches should
// not be read before it is overwritten, nor displace what is in them: it is streamed to memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mpi.h"

namespace warren::datatype {

// Where what is written goes.
enum class Target : std::uint8_t {
    cache,
    // Past the caches. Others may read it after stream_fence() only.
    memory
};

// Data that touches more memory than this is not left in the caches: they keep less, or have better
// use.
inline constexpr MPI_Count cache_bytes = MPI_Count{8} << 20;

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
