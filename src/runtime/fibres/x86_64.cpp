// x86-64: what functions preserve (System V ABI, 3.2.1) is rbx, rbp, r12 to r15, and the control
// words of both floating-point units; the thread pointer is the base of the segment fs.
#include "runtime/fibres/switch.hpp"

#if defined(__x86_64__)

#include <sys/auxv.h>

namespace warren::fibre {

extern "C" void* warren_fibre_leave(Context* from, std::atomic<std::uint32_t>* left);

// (tools/gdb/fibres.py knows what is saved.)
// Control words are loaded only when they differ. wrfsbase takes half the time of a switch, and
// what comes before it hardly overlaps with what comes behind: so all that the other context wants
// is read ahead of it, and the own control words, which takes a third as long, in its shadow.
__asm__(R"(
    .macro warren_fibre_save
    .cfi_startproc
    endbr64
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    sub $8, %rsp
    .cfi_adjust_cfa_offset 56
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    mov %rsp, (%rdi)
    .endm

    .macro warren_fibre_restore
    mov (%rsp), %ecx
    mov (%rsi), %rsp
    cmp %ecx, (%rsp)
    jne 1f
    cmp %r8w, 4(%rsp)
    jne 1f
2:  mov %rdx, %rax
    add $8, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    .cfi_adjust_cfa_offset -56
    ret
    .cfi_adjust_cfa_offset 56
1:  ldmxcsr (%rsp)
    fldcw 4(%rsp)
    jmp 2b
    .cfi_endproc
    .endm

    .text
    .hidden warren_fibre_switch
    .globl warren_fibre_switch
    .type warren_fibre_switch, @function
    .p2align 6
warren_fibre_switch:
    .cfi_startproc
    endbr64
    mov 8(%rsi), %rax
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    sub $8, %rsp
    .cfi_adjust_cfa_offset 56
    # From here on debuggers find them on the stack: first this fibre's, then the other's.
    .cfi_rel_offset %r15, 8
    .cfi_rel_offset %r14, 16
    .cfi_rel_offset %r13, 24
    .cfi_rel_offset %r12, 32
    .cfi_rel_offset %rbp, 40
    .cfi_rel_offset %rbx, 48
    mov (%rsi), %r9
    mov %rsp, (%rdi)
    mov (%r9), %r10d
    movzwl 4(%r9), %r11d
    mov 8(%r9), %r15
    mov 16(%r9), %r14
    mov 24(%r9), %r13
    mov 32(%r9), %r12
    mov 40(%r9), %rbp
    mov 48(%r9), %rbx
    wrfsbase %rax
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    mov (%rsp), %ecx
    movzwl 4(%rsp), %r8d
    cmp %r10d, %ecx
    jne 1f
    cmp %r11d, %r8d
    jne 1f
2:  mov %rdx, %rax
    lea 56(%r9), %rsp
    .cfi_adjust_cfa_offset -56
    ret
    .cfi_adjust_cfa_offset 56
1:  ldmxcsr (%r9)
    fldcw 4(%r9)
    jmp 2b
    .cfi_endproc
    .size warren_fibre_switch, . - warren_fibre_switch

    .hidden warren_fibre_switch_by_kernel
    .globl warren_fibre_switch_by_kernel
    .type warren_fibre_switch_by_kernel, @function
    .p2align 4
warren_fibre_switch_by_kernel:
    warren_fibre_save
    mov %rsi, %r12
    mov %rdx, %r13
    mov 8(%rsi), %rsi
    mov $0x1002, %edi               # arch_prctl(ARCH_SET_FS, …)
    mov $158, %eax
    syscall
    mov %r12, %rsi
    mov %r13, %rdx
    movzwl 4(%rsp), %r8d
    warren_fibre_restore
    .size warren_fibre_switch_by_kernel, . - warren_fibre_switch_by_kernel

    .hidden warren_fibre_leave
    .globl warren_fibre_leave
    .type warren_fibre_leave, @function
    .p2align 4
warren_fibre_leave:
    warren_fibre_save
    xor %eax, %eax
    xchg %eax, (%rsi)               # from here on the stack is another's
    xor %edi, %edi
    mov $60, %eax                   # exit, of this kernel thread
    syscall
    ud2
    .cfi_endproc
    .size warren_fibre_leave, . - warren_fibre_leave
)");

namespace {

// Whether programs may set the base of fs themselves (Linux 5.9, on processors since 2012).
bool may_set_thread_pointer() {
    constexpr unsigned long fsgsbase = 1UL << 1; // HWCAP2_FSGSBASE
    return (getauxval(AT_HWCAP2) & fsgsbase) != 0;
}

} // namespace

const bool sets_thread_pointer = may_set_thread_pointer();

void* leave_kernel_thread(Context* from, std::atomic<std::uint32_t>* left) {
    return warren_fibre_leave(from, left);
}

std::byte* thread_pointer() {
    std::byte* pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

} // namespace warren::fibre

#elif !defined(__aarch64__)
#error "Fibres know x86-64 only: add this machine's switch."
#endif
