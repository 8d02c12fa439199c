#!/bin/sh
# Libraries that all ranks load don't ask the processor what it can do before they are used: virtual ones
# answer in microseconds each of two dozen questions.
#     no_cpu_questions.sh LIBRARY…
set -eu
for library in "$@"; do
    symbols=$(nm "$library")
    case $symbols in
    *' t '*) ;; # a local one, as those that are looked for
    *)
        echo "$library has no symbols to look at"
        exit 1
        ;;
    esac
    if echo "$symbols" | grep __cpu_indicator_init; then
        echo "$library has the compiler's questions, of __builtin_cpu_supports; base/processor.hpp has the answers"
        exit 1
    fi
done
