/* CHECK: says what does not hold, and counts. */
#ifndef WARREN_FOREIGN_CHECK_H
#define WARREN_FOREIGN_CHECK_H

#include <stdio.h>

static int failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                 \
            ++failures;                                                                            \
        }                                                                                          \
    } while (0)

#endif
