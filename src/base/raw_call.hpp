// raw_call: a system call that touches neither errno nor anything else of the C library: for code
// that runs in somebody else's memory, or before the C library is ready. Returns the result, or
// minus the error's number.
#pragma once

#include <cerrno>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace warren {

#if defined(__x86_64__)
inline constexpr bool raw_calls_keep_errno = true;
inline long raw_call(long number, long first = 0, long second = 0, long third = 0, long fourth = 0,
                     long fifth = 0) {
    long result;
    register long r10 asm("r10") = fourth;
    register long r8 asm("r8") = fifth;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8)
                 : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
inline constexpr bool raw_calls_keep_errno = true;
inline long raw_call(long number, long first = 0, long second = 0, long third = 0, long fourth = 0,
                     long fifth = 0) {
    register long x8 asm("x8") = number;
    register long x0 asm("x0") = first;
    register long x1 asm("x1") = second;
    register long x2 asm("x2") = third;
    register long x3 asm("x3") = fourth;
    register long x4 asm("x4") = fifth;
    asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
}
#else
inline constexpr bool raw_calls_keep_errno = false;
inline long raw_call(long number, long first = 0, long second = 0, long third = 0, long fourth = 0,
                     long fifth = 0) {
    const long result = syscall(number, first, second, third, fourth, fifth);
    return result < 0 ? -errno : result;
}
#endif

inline long raw_address(const void* pointer) {
    return reinterpret_cast<long>(pointer);
}

// Puts descriptor `from` at number `to`, inherited by programs.
inline long raw_place(int from, int to) {
    return from == to ? raw_call(SYS_fcntl, to, F_SETFD, 0) : raw_call(SYS_dup3, from, to, 0);
}

} // namespace warren
