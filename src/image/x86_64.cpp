// x86-64, as its System V ABI says (relocations: chapter 4; thread-local storage: Drepper, "ELF
// Handling For Thread-Local Storage", variant II, and "TLS descriptors").
#if defined(__x86_64__)

#include "image/architecture.hpp"

#include <cstdio>

namespace warren::image::architecture {

namespace {

constexpr std::uint32_t type_limit = 43;

constexpr const char* names[type_limit] = {"R_X86_64_NONE",
                                           "R_X86_64_64",
                                           "R_X86_64_PC32",
                                           "R_X86_64_GOT32",
                                           "R_X86_64_PLT32",
                                           "R_X86_64_COPY",
                                           "R_X86_64_GLOB_DAT",
                                           "R_X86_64_JUMP_SLOT",
                                           "R_X86_64_RELATIVE",
                                           "R_X86_64_GOTPCREL",
                                           "R_X86_64_32",
                                           "R_X86_64_32S",
                                           "R_X86_64_16",
                                           "R_X86_64_PC16",
                                           "R_X86_64_8",
                                           "R_X86_64_PC8",
                                           "R_X86_64_DTPMOD64",
                                           "R_X86_64_DTPOFF64",
                                           "R_X86_64_TPOFF64",
                                           "R_X86_64_TLSGD",
                                           "R_X86_64_TLSLD",
                                           "R_X86_64_DTPOFF32",
                                           "R_X86_64_GOTTPOFF",
                                           "R_X86_64_TPOFF32",
                                           "R_X86_64_PC64",
                                           "R_X86_64_GOTOFF64",
                                           "R_X86_64_GOTPC32",
                                           "R_X86_64_GOT64",
                                           "R_X86_64_GOTPCREL64",
                                           "R_X86_64_GOTPC64",
                                           "R_X86_64_GOTPLT64",
                                           "R_X86_64_PLTOFF64",
                                           "R_X86_64_SIZE32",
                                           "R_X86_64_SIZE64",
                                           "R_X86_64_GOTPC32_TLSDESC",
                                           "R_X86_64_TLSDESC_CALL",
                                           "R_X86_64_TLSDESC",
                                           "R_X86_64_IRELATIVE",
                                           "R_X86_64_RELATIVE64",
                                           "R_X86_64_39",
                                           "R_X86_64_40",
                                           "R_X86_64_GOTPCRELX",
                                           "R_X86_64_REX_GOTPCRELX"};

} // namespace

RelocationKind relocation_kind(std::uint32_t type) {
    switch (type) {
    case R_X86_64_NONE:
        return RelocationKind::nothing;
    case R_X86_64_RELATIVE:
        return RelocationKind::relative;
    case R_X86_64_64:
    case R_X86_64_GLOB_DAT: // its addend is 0
        return RelocationKind::word;
    case R_X86_64_JUMP_SLOT:
        return RelocationKind::slot;
    case R_X86_64_COPY:
        return RelocationKind::copy;
    case R_X86_64_IRELATIVE:
        return RelocationKind::function;
    case R_X86_64_DTPMOD64:
        return RelocationKind::tls_module;
    case R_X86_64_DTPOFF64:
        return RelocationKind::tls_offset;
    case R_X86_64_TPOFF64:
        return RelocationKind::thread_offset;
    case R_X86_64_TLSDESC:
        return RelocationKind::tls_descriptor;
    default:
        return RelocationKind::unsupported;
    }
}

const char* relocation_name(std::uint32_t type, char (&text)[32]) {
    if (type < type_limit) {
        return names[type];
    }
    std::snprintf(text, sizeof text, "relocation type %u", type);
    return text;
}

std::byte* thread_pointer() {
    std::byte* pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

extern "C" {
void warren_image_get_thread_variable();
void warren_image_tls_descriptor();
}

// get_thread_variable: the first of the two words at %rdi has bit 62 when the block is ours; the
// rest of it is how far below the thread pointer the block begins.
// The descriptor's function may change no register but %rax, which points to the descriptor.
// enter_program keeps what a function must preserve, and leaves through the entry point with %rdx
// zero: there is no function of the system's loader to be called at exit.
__asm__(R"(
    .text
    .hidden warren_image_get_thread_variable
    .globl warren_image_get_thread_variable
    .type warren_image_get_thread_variable, @function
    .p2align 4
warren_image_get_thread_variable:
    .cfi_startproc
    endbr64
    mov (%rdi), %rcx
    btr $62, %rcx
    jnc 1f
    mov %fs:0, %rax
    sub %rcx, %rax
    add 8(%rdi), %rax
    ret
1:  push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    and $-16, %rsp
    call *__tls_get_addr@GOTPCREL(%rip)
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size warren_image_get_thread_variable, . - warren_image_get_thread_variable

    .hidden warren_image_tls_descriptor
    .globl warren_image_tls_descriptor
    .type warren_image_tls_descriptor, @function
    .p2align 4
warren_image_tls_descriptor:
    .cfi_startproc
    endbr64
    mov 8(%rax), %rax
    ret
    .cfi_endproc
    .size warren_image_tls_descriptor, . - warren_image_tls_descriptor

    .hidden warren_image_enter_program
    .globl warren_image_enter_program
    .type warren_image_enter_program, @function
    .p2align 4
warren_image_enter_program:
    .cfi_startproc
    endbr64
    mov %rbx, 0(%rdi)
    mov %rbp, 8(%rdi)
    mov %r12, 16(%rdi)
    mov %r13, 24(%rdi)
    mov %r14, 32(%rdi)
    mov %r15, 40(%rdi)
    mov (%rsp), %rax
    mov %rax, 48(%rdi)
    lea 8(%rsp), %rax
    mov %rax, 56(%rdi)
    mov %rsi, %rsp
    .cfi_undefined %rip
    xor %ebp, %ebp
    mov %rdx, %rax
    xor %edx, %edx
    jmp *%rax
    .cfi_endproc
    .size warren_image_enter_program, . - warren_image_enter_program

    .hidden warren_image_leave_program
    .globl warren_image_leave_program
    .type warren_image_leave_program, @function
    .p2align 4
warren_image_leave_program:
    .cfi_startproc
    endbr64
    mov 0(%rdi), %rbx
    mov 8(%rdi), %rbp
    mov 16(%rdi), %r12
    mov 24(%rdi), %r13
    mov 32(%rdi), %r14
    mov 40(%rdi), %r15
    mov 56(%rdi), %rsp
    jmp *48(%rdi)
    .cfi_endproc
    .size warren_image_leave_program, . - warren_image_leave_program
)");

void* get_thread_variable() {
    return reinterpret_cast<void*>(&warren_image_get_thread_variable);
}

void* tls_descriptor_function() {
    return reinterpret_cast<void*>(&warren_image_tls_descriptor);
}

} // namespace warren::image::architecture

#endif
