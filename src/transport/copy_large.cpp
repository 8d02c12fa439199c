#include "transport/copy_large.hpp"

#if defined(__x86_64__)
#include <cpuid.h>

namespace warren::transport {

bool has_fast_string_move() {
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    constexpr unsigned erms_bit = 1U << 9; // leaf 7, EBX
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & erms_bit) != 0;
}

} // namespace warren::transport
#endif
