#!/bin/sh
# What libwarren.so brings into each process that loads it: no library but the C library, and nothing
# of the C++ library's that has to be made ready at the start, such as locales (a job of many ranks
# pays for that once per rank); nor does it have the compiler ask the processor what it can do, which the
# C library knows and virtual machines take long to answer. Other libraries that programs load the same.
#     light.sh LIBRARY
set -eu
library=$1
if readelf -d "$library" | grep NEEDED | grep -vE '\[(libc\.so\.6|ld-linux[^]]*)\]'; then
    echo "$library needs more than the C library" >&2
    exit 1
fi
if nm -C "$library" | grep -E ' _GLOBAL__sub_I_.*(locale|ios|memory_resource)'; then
    echo "$library makes the C++ library's streams or locales ready" >&2
    exit 1
fi
if nm "$library" | grep -w __cpu_indicator_init; then
    echo "$library asks the processor at the start: use base/processor.hpp" >&2
    exit 1
fi
