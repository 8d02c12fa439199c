// System calls in the middle of the program's own code, where no library function may be called and
// errno must not change. Thread rule: any thread.
#pragma once

#include <cstdint>

namespace warren::locality::counts {

// Returns negative errors, as the kernel does.
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
