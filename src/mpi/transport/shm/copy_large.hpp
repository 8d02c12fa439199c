// Copies between a program's buffer and a bounce buffer.
//
// On x86 the microcoded string move is the fastest way through the caches to store large blocks
// that another core will read (measured against plain and vector copies of all sizes); stores past
// the caches take half as long between some cores, and twice as long between others
// (mpi/transport/shm/copy_methods.hpp). When a core reads what another has just written,
// prefetching well ahead hides the way between them. String moves like both sides to have the same
// alignment: see BouncePlace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mpi/transport/shm/tuning.hpp"

namespace warren::transport {

class LargeCopy {
  public:
    // Looks at the processor once.
    LargeCopy();

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

    // Copies past this core's caches, straight to memory. A thread that acquires a later release of
    // this thread sees the data.
    static void pass(void* to, const void* from, std::size_t bytes);
    // False: pass() is put().
#if defined(__x86_64__)
    static constexpr bool can_pass = true;
#else
    static constexpr bool can_pass = false;
#endif

    // Copies a piece of a message of `total` bytes out of memory that another core has written.
    // (String moves don't read what they overwrite. That matters if the target isn't in the nearer
    // caches.)
    void get(void* to, const void* from, std::size_t bytes, std::uint64_t total) const {
        if (bytes <= vector_limit_bytes && total <= near_bytes_) {
            vector_copy_(to, from, bytes);
            return;
        }
        for (std::size_t offset = 0; offset < string_prefetch_bytes; offset += line_bytes) {
            __builtin_prefetch(static_cast<const char*>(from) + offset);
        }
#if defined(__x86_64__)
        if (strings_) {
            string_move(to, from, bytes);
            return;
        }
#endif
        std::memcpy(to, from, bytes);
    }

    static constexpr std::size_t line_bytes = 64;

    // Most bytes that should be under way between two ranks: it stays in the nearer
    // caches of both.
    std::size_t near_bytes() const {
        return near_bytes_;
    }

  private:
    using Copy = void (*)(void* to, const void* from, std::size_t bytes);

#if defined(__x86_64__)
    static void string_move(void* to, const void* from, std::size_t bytes) {
        asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    }
#endif

    Copy vector_copy_;
    bool strings_ = false;
    std::size_t near_bytes_ = least_near_bytes;
};

} // namespace warren::transport
