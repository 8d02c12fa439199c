// Abilities of the processor, as the C library found them when the process began. Compilers'
// built-ins ask the processor again, about everything there is, and virtual ones take a microsecond
// or more for each answer: a tenth of a rank's start. Thread rule: any thread at any time.
#pragma once

#include <cstddef>
#include <unistd.h>

namespace warren {

// The cache behind a core's nearest one, which few cores or none share; 0: not known.
inline std::size_t processor_core_cache_bytes() {
    const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

} // namespace warren

#if defined(__x86_64__)
// glibc's header is C's.
#define _Bool bool // NOLINT(bugprone-reserved-identifier)
#include <sys/platform/x86.h>
#undef _Bool

namespace warren {

inline bool processor_has_avx() {
    return CPU_FEATURE_ACTIVE(AVX);
}
inline bool processor_has_avx2() {
    return CPU_FEATURE_ACTIVE(AVX2);
}
inline bool processor_has_avx512f() {
    return CPU_FEATURE_ACTIVE(AVX512F);
}
// Copies by string instructions are as fast as any.
inline bool processor_has_fast_strings() {
    return CPU_FEATURE_PRESENT(ERMS);
}

} // namespace warren
#endif
