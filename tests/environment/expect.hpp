// EXPECT for whole-program tests: says what does not hold, and counts.
#pragma once

#include <cstdio>

inline int failures = 0;

inline void expect(bool holds, const char* what, const char* file, int line) {
    if (!holds) {
        std::printf("%s:%d: %s\n", file, line, what);
        ++failures;
    }
}

#define EXPECT(condition) expect((condition), #condition, __FILE__, __LINE__)
