#include "mpi/transport/shm/copy_large.hpp"

#include <algorithm>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/processor.hpp"

namespace warren::transport {

namespace {

void prefetch(const char* from, std::size_t bytes) {
    for (std::size_t offset = 0; offset < bytes; offset += LargeCopy::line_bytes) {
        __builtin_prefetch(from + offset);
    }
}

void copy_plain(void* to, const void* from, std::size_t bytes) {
    prefetch(static_cast<const char*>(from),
             bytes < vector_ahead_bytes ? bytes : vector_ahead_bytes);
    std::memcpy(to, from, bytes);
}

#if defined(__x86_64__)

[[gnu::target("avx512f")]] void copy_512(void* to, const void* from, std::size_t bytes) {
    auto* target = static_cast<char*>(to);
    const auto* source = static_cast<const char*>(from);
    prefetch(source, bytes < vector_ahead_bytes ? bytes : vector_ahead_bytes);
    while (bytes >= vector_stride_bytes) {
        if (bytes > vector_ahead_bytes) {
            prefetch(source + vector_ahead_bytes, vector_stride_bytes);
        }
        const __m512i a = _mm512_loadu_si512(source);
        const __m512i b = _mm512_loadu_si512(source + 64);
        const __m512i c = _mm512_loadu_si512(source + 128);
        const __m512i d = _mm512_loadu_si512(source + 192);
        _mm512_storeu_si512(target, a);
        _mm512_storeu_si512(target + 64, b);
        _mm512_storeu_si512(target + 128, c);
        _mm512_storeu_si512(target + 192, d);
        source += vector_stride_bytes;
        target += vector_stride_bytes;
        bytes -= vector_stride_bytes;
    }
    std::memcpy(target, source, bytes);
}

#endif

} // namespace

void LargeCopy::pass(void* to, const void* from, std::size_t bytes) {
#if defined(__x86_64__)
    auto* target = static_cast<char*>(to);
    const auto* source = static_cast<const char*>(from);
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(target) % line_bytes;
    const std::size_t head = before < bytes ? before : bytes;
    std::memcpy(target, source, head);
    std::size_t done = head;
    for (; bytes - done >= line_bytes; done += line_bytes) {
        const auto* here = reinterpret_cast<const __m128i*>(source + done);
        auto* there = reinterpret_cast<__m128i*>(target + done);
        const __m128i a = _mm_loadu_si128(here);
        const __m128i b = _mm_loadu_si128(here + 1);
        const __m128i c = _mm_loadu_si128(here + 2);
        const __m128i d = _mm_loadu_si128(here + 3);
        _mm_stream_si128(there, a);
        _mm_stream_si128(there + 1, b);
        _mm_stream_si128(there + 2, c);
        _mm_stream_si128(there + 3, d);
    }
    std::memcpy(target + done, source + done, bytes - done);
    _mm_sfence(); // streams keep no order with later stores
#else
    std::memcpy(to, from, bytes);
#endif
}

LargeCopy::LargeCopy()
    : vector_copy_(copy_plain),
      near_bytes_(std::max(least_near_bytes, processor_core_cache_bytes())) {
#if defined(__x86_64__)
    strings_ = processor_has_fast_strings();
    if (processor_has_avx512f()) {
        vector_copy_ = copy_512;
    }
#endif
}

} // namespace warren::transport
