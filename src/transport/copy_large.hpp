// Copies between a program's buffer and a bounce buffer.
//
// On x86 the microcoded string move is the fastest store of large blocks that another core will
// read, and prefetching the first lines before a read that another core has just written hides the
// way between them (measured against plain, vector and non-temporal copies of all sizes).
#pragma once

#include <cstddef>
#include <cstring>

namespace warren::transport {

#if defined(__x86_64__)
// Whether the processor has fast string moves (CPUID: ERMS).
bool has_fast_string_move();

inline void string_move(void* to, const void* from, std::size_t bytes) {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}
#endif

class LargeCopy {
  public:
#if defined(__x86_64__)
    LargeCopy() : strings_(has_fast_string_move()) {}
#endif

    // Into memory that another core will read.
    void put(void* to, const void* from, std::size_t bytes) const {
#if defined(__x86_64__)
        if (strings_) {
            string_move(to, from, bytes);
            return;
        }
#endif
        std::memcpy(to, from, bytes);
    }

    // From memory that another core has written.
    void get(void* to, const void* from, std::size_t bytes) const {
        const std::size_t ahead = bytes < prefetched_bytes ? bytes : prefetched_bytes;
        for (std::size_t offset = 0; offset < ahead; offset += 64) {
            __builtin_prefetch(static_cast<const char*>(from) + offset);
        }
#if defined(__x86_64__)
        if (strings_ && bytes > vector_limit_bytes) {
            string_move(to, from, bytes);
            return;
        }
#endif
        std::memcpy(to, from, bytes);
    }

  private:
    static constexpr std::size_t prefetched_bytes = 4096;
    static constexpr std::size_t vector_limit_bytes = 16384;

    bool strings_ = false;
};

} // namespace warren::transport
