// WARREN_INVARIANT: checks an invariant that a header states, where it can be checked without a
// further lock or fence. Builds with the CMake option WARREN_INVARIANTS check; it is on by default
// in debug and sanitizer builds. Other builds don't evaluate the condition and contain no code of
// it.
//
// A violation is a mistake of Warren's, after which no data can be trusted: it is printed with its
// place, and the process aborts. Mistakes of programs are errors (base/error.hpp), never this.
// Thread rule: any thread.
#pragma once

#if WARREN_INVARIANTS
#include <cstdio>
#include <cstdlib>

namespace warren {

[[noreturn, gnu::cold, gnu::noinline]] inline void fail_invariant(const char* file, int line,
                                                                  const char* invariant) {
    std::fprintf(stderr, "%s:%d: Warren's invariant does not hold: %s\n", file, line, invariant);
    std::abort();
}

} // namespace warren

#define WARREN_INVARIANT(condition, invariant)                                                     \
    do {                                                                                           \
        if (!(condition)) [[unlikely]] {                                                           \
            ::warren::fail_invariant(__FILE__, __LINE__, (invariant));                             \
        }                                                                                          \
    } while (false)
#else
#define WARREN_INVARIANT(condition, invariant) static_cast<void>(sizeof((condition) ? 1 : 0))
#endif
