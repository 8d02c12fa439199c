#include "analyser/counts/aside.hpp"

#include <cpuid.h>

#include "analyser/counts/counters.hpp"

namespace warren::locality::counts {
namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10; // touched when it is needed

// Size of the xsave area for all register sets that the kernel has enabled. 0: xsave is not
// enabled.
std::size_t area_bytes() {
    constexpr unsigned os_saves = 1U << 27;
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & os_saves) == 0) {
        return 0;
    }
    __cpuid_count(0xd, 0, eax, ebx, ecx, edx);
    return ebx;
}

} // namespace

// The ABI wants a clear direction flag and masked floating-point exceptions at the call. xrstor
// wants zeros in the area where xsave writes nothing.
extern "C" void warren_counts_aside(void (*function)(void*), void* argument, void* area,
                                    void* stack_end);
asm(R"(
    .text
    .type warren_counts_aside, @function
    .hidden warren_counts_aside
warren_counts_aside:
    push %rbp
    mov %rsp, %rbp
    push %rbx
    pushfq
    cld
    mov %rdx, %rbx
    mov %rdi, %r8
    mov %rsi, %rdi
    mov $-1, %eax
    mov $-1, %edx
    xsave64 (%rbx)
    lea -16(%rcx), %rsp
    fninit
    movl $0x1f80, (%rsp)
    ldmxcsr (%rsp)
    call *%r8
    mov $-1, %eax
    mov $-1, %edx
    xrstor64 (%rbx)
    lea -16(%rbp), %rsp
    popfq
    pop %rbx
    pop %rbp
    ret
    .size warren_counts_aside, . - warren_counts_aside
)");

bool Aside::make() {
    const std::size_t area = area_bytes();
    memory_ = area == 0 ? nullptr : static_cast<char*>(reserve(stack_bytes + area));
    return memory_ != nullptr;
}

bool Aside::run(void (*function)(void*), void* argument) {
    if (memory_ == nullptr || __atomic_exchange_n(&busy_, true, __ATOMIC_ACQUIRE)) {
        return false;
    }
    char* const stack_end = memory_ + stack_bytes; // the area has its alignment, a page's
    warren_counts_aside(function, argument, stack_end, stack_end);
    __atomic_store_n(&busy_, false, __ATOMIC_RELEASE); // pairs with the next one's exchange
    return true;
}

} // namespace warren::locality::counts
