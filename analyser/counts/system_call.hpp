// A system call in the middle of the program's own code, where no function of a library may be
// called, nor errno be changed. Thread rule: any thread.
#pragma once

#include <cstdint>

namespace warren::locality::counts {

// Negative errors, as the kernel returns them.
inline long system_call(long number, std::uint64_t a, std::uint64_t b, std::uint64_t c,
                        std::uint64_t d, std::uint64_t e, std::uint64_t f) {
    long result = number;
    register std::uint64_t r10 asm("r10") = d;
    register std::uint64_t r8 asm("r8") = e;
    register std::uint64_t r9 asm("r9") = f;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
}

} // namespace warren::locality::counts
