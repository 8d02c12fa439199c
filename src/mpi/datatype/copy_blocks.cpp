#include "mpi/datatype/copy_blocks.hpp"

#include <algorithm>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "mpi/datatype/tuning.hpp"

namespace warren::datatype {

namespace {

// Calls a generic function with the block size as a constant where it is a usual one, else with 0.
template <typename Function>
void with_constant_size(MPI_Count bytes, Function function) {
    switch (bytes) {
    case 1:
        return function.template operator()<1>();
    case 2:
        return function.template operator()<2>();
    case 4:
        return function.template operator()<4>();
    case 8:
        return function.template operator()<8>();
    case 12:
        return function.template operator()<12>();
    case 16:
        return function.template operator()<16>();
    case 24:
        return function.template operator()<24>();
    case 32:
        return function.template operator()<32>();
    case 48:
        return function.template operator()<48>();
    case 64:
        return function.template operator()<64>();
    default:
        return function.template operator()<0>();
    }
}

bool is_far(MPI_Count stride) {
    return stride >= far_stride || stride <= -far_stride;
}

// Number of blocks to prefetch.
MPI_Count blocks_ahead(MPI_Count stride) {
    return stride % second_level_way == 0 ? few_blocks_ahead : blocks_ahead_usually;
}

// base + place as an integer: base may be MPI_BOTTOM, and the place an absolute address; what lies
// beyond the last block need not be a valid pointer.
template <typename Byte>
Byte* at(Byte* base, MPI_Count place) {
    return reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(base) +
                                   static_cast<std::uintptr_t>(place));
}

void prefetch(const std::byte* line) {
    constexpr int second_level = 2;
    __builtin_prefetch(line, 0, second_level);
}

// Copies a block of a contiguous source, such as a message.
void copy_from_message(std::byte* to, const std::byte* from, std::size_t bytes) {
    constexpr std::size_t line = 64;
    for (; bytes >= line; bytes -= line) {
        __builtin_prefetch(from + ahead_bytes);
        std::memcpy(to, from, line);
        to += line;
        from += line;
    }
    std::memcpy(to, from, bytes);
}

// Copies a large block and prefetches the beginnings of the next ones, since the hardware's
// prefetcher stops at the end of the page. (Prefetching beyond the last block does no harm.)
void copy_large(std::byte* to, const std::byte* from, std::size_t bytes, Target target,
                MPI_Count to_stride, MPI_Count from_stride) {
    constexpr std::size_t line = 64;
    const std::size_t lines = std::min(bytes, prefetched_beginning);
    if (is_far(from_stride)) {
        for (std::size_t offset = 0; offset < lines; offset += line) {
            prefetch(at(from, from_stride) + offset);
        }
    }
    if (target == Target::memory) {
        stream_block(to, from, bytes);
        return;
    }
    if (is_far(to_stride)) {
        for (std::size_t offset = 0; offset < lines; offset += line) {
            prefetch(at(to, to_stride) + offset);
        }
    }
    if (from_stride == static_cast<MPI_Count>(bytes)) {
        copy_from_message(to, from, bytes);
    } else {
        std::memcpy(to, from, bytes);
    }
}

// Past the caches, a size that the compiler knows.
template <std::size_t bytes>
void stream_fixed(std::byte* to, const std::byte* from) {
#if defined(__x86_64__)
    if constexpr (bytes % sizeof(long long) == 0) {
        for (std::size_t part = 0; part < bytes; part += sizeof(long long)) {
            long long word;
            std::memcpy(&word, from + part, sizeof word);
            _mm_stream_si64(reinterpret_cast<long long*>(to + part), word);
        }
        return;
    }
#endif
    std::memcpy(to, from, bytes);
}

// Small blocks go four at a time: the branch of a loop takes a cycle, in which the processor stores
// two blocks.
template <std::size_t bytes>
void copy_near(std::byte* to, MPI_Count to_stride, const std::byte* from, MPI_Count from_stride,
               MPI_Count count) {
    if constexpr (bytes <= largest_unrolled_block) {
        for (; count >= 4; count -= 4) {
            std::memcpy(to, from, bytes);
            std::memcpy(at(to, to_stride), at(from, from_stride), bytes);
            std::memcpy(at(to, 2 * to_stride), at(from, 2 * from_stride), bytes);
            std::memcpy(at(to, 3 * to_stride), at(from, 3 * from_stride), bytes);
            to = at(to, 4 * to_stride);
            from = at(from, 4 * from_stride);
        }
    }
    for (; count > 0; --count) {
        std::memcpy(to, from, bytes);
        to = at(to, to_stride);
        from = at(from, from_stride);
    }
}

// The first blocks of one side, where they are far from each other.
void fetch_first(const std::byte* block, MPI_Count stride, MPI_Count count) {
    if (is_far(stride)) {
        for (; count > 0; --count) {
            prefetch(block);
            block = at(block, stride);
        }
    }
}

// (It prefetches nothing beyond the last block: each block may be on a separate page.)
template <std::size_t bytes>
void copy_far(std::byte* to, MPI_Count to_stride, const std::byte* from, MPI_Count from_stride,
              MPI_Count count) {
    const MPI_Count to_first = std::min(blocks_ahead(to_stride), count);
    const MPI_Count from_first = std::min(blocks_ahead(from_stride), count);
    fetch_first(from, from_stride, from_first);
    fetch_first(to, to_stride, to_first);
    const MPI_Count ahead = std::max(to_first, from_first);
    const MPI_Count to_ahead = to_first * to_stride;
    const MPI_Count from_ahead = from_first * from_stride;
    for (; count > ahead; --count) {
        prefetch(at(from, from_ahead));
        prefetch(at(to, to_ahead));
        std::memcpy(to, from, bytes);
        to = at(to, to_stride);
        from = at(from, from_stride);
    }
    copy_near<bytes>(to, to_stride, from, from_stride, count);
}

template <std::size_t bytes>
void copy_to_memory(std::byte* to, MPI_Count to_stride, const std::byte* from,
                    MPI_Count from_stride, MPI_Count count) {
    for (; count > 0; --count) {
        __builtin_prefetch(from + ahead_bytes);
        stream_fixed<bytes>(to, from);
        to = at(to, to_stride);
        from = at(from, from_stride);
    }
}

} // namespace

void stream_block(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
    constexpr std::size_t line = 64;
    if (bytes >= 4 * line) {
        const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) % line;
        std::memcpy(to, from, head);
        for (to += head, from += head, bytes -= head; bytes >= line; bytes -= line) {
            __builtin_prefetch(from + ahead_bytes);
            for (std::size_t part = 0; part < line; part += sizeof(__m128i)) {
                _mm_stream_si128(reinterpret_cast<__m128i*>(to + part),
                                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + part)));
            }
            to += line;
            from += line;
        }
    }
#endif
    std::memcpy(to, from, bytes);
}

void copy_blocks(std::byte* to, MPI_Count to_stride, const std::byte* from, MPI_Count from_stride,
                 MPI_Count count, MPI_Count bytes, Target target) {
    const auto size = static_cast<std::size_t>(bytes);
    if (count == 1 || (to_stride == bytes && from_stride == bytes)) {
        std::memcpy(to, from, size * static_cast<std::size_t>(count));
        return;
    }
    with_constant_size(bytes, [=]<std::size_t fixed>() {
        if constexpr (fixed == 0) {
            for (MPI_Count i = 0; i < count; ++i) {
                copy_large(at(to, i * to_stride), at(from, i * from_stride), size, target,
                           to_stride, from_stride);
            }
        } else if (target == Target::memory) {
            copy_to_memory<fixed>(to, to_stride, from, from_stride, count);
        } else if (count >= 8 && (is_far(to_stride) || is_far(from_stride))) {
            copy_far<fixed>(to, to_stride, from, from_stride, count);
        } else {
            copy_near<fixed>(to, to_stride, from, from_stride, count);
        }
    });
}

void gather_blocks(std::byte* to, const std::byte* base, const MPI_Count* places, MPI_Count count,
                   MPI_Count bytes) {
    with_constant_size(bytes, [=]<std::size_t fixed>() {
        const std::size_t size = fixed != 0 ? fixed : static_cast<std::size_t>(bytes);
        for (MPI_Count i = 0; i < count; ++i) {
            std::memcpy(to + size * static_cast<std::size_t>(i), at(base, places[i]), size);
        }
    });
}

void scatter_blocks(std::byte* base, const MPI_Count* places, const std::byte* from,
                    MPI_Count count, MPI_Count bytes) {
    with_constant_size(bytes, [=]<std::size_t fixed>() {
        const std::size_t size = fixed != 0 ? fixed : static_cast<std::size_t>(bytes);
        for (MPI_Count i = 0; i < count; ++i) {
            std::memcpy(at(base, places[i]), from + size * static_cast<std::size_t>(i), size);
        }
    });
}

} // namespace warren::datatype
