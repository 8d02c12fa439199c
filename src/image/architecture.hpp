// Parts that depend on the processor and its calling conventions: relocation types, where
// thread-local variables lie, how a program is entered. Another processor needs another x86_64.cpp,
// and nothing else; until it has one, aarch64.cpp says that images are not known there.
//
// Thread rule: everything here concerns the calling thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <elf.h>

namespace warren::image::architecture {

#if defined(__x86_64__)
inline constexpr unsigned elf_machine = EM_X86_64;
inline constexpr bool has_images = true;
#elif defined(__aarch64__)
inline constexpr unsigned elf_machine = EM_AARCH64;
inline constexpr bool has_images = false;
#else
#error "Private images know x86-64 only: add this machine's relocations, thread pointer and entry."
#endif

// Values that relocations write. S: the symbol's value; A: the addend; B: where the copy is mapped.
enum class RelocationKind : std::uint8_t {
    nothing,
    relative,       // B + A
    word,           // S + A
    slot,           // S, of a function that is called
    copy,           // the symbol's initial contents, from the library that defines it
    function,       // what the function at B + A returns (IFUNC)
    tls_module,     // which block the symbol's variable is in, for get_thread_variable
    tls_offset,     // S + A: where in that block
    thread_offset,  // S + A from the thread pointer
    tls_descriptor, // two words: a function and its argument, S + A from the thread pointer
    unsupported,
};
RelocationKind relocation_kind(std::uint32_t type);
// The ABI's name of a relocation type ("R_X86_64_64"), or "relocation 77" in `text`.
const char* relocation_name(std::uint32_t type, char (&text)[32]);

// Thread-local variables. The block of a module begins `offset` bytes from the thread pointer, the
// same in all threads; on x86-64 it is negative.
std::byte* thread_pointer();
// The largest alignment of blocks that the thread pointer itself guarantees.
inline constexpr std::uint64_t tls_alignment_limit = 64;
// The two words of a variable that is reached by a call, in a module of this loader's.
inline constexpr std::uint64_t own_tls_module = std::uint64_t{1} << 62;
inline std::uint64_t tls_module_word(std::int64_t offset) {
    return own_tls_module | static_cast<std::uint64_t>(-offset);
}
// Takes the place of __tls_get_addr in images: other modules' words go on to the system's.
void* get_thread_variable();
// The function of a descriptor: adds nothing to its argument, as all blocks have fixed places.
void* tls_descriptor_function();

// Where a thread left its own code to run a program, and comes back to when the program ends.
struct ReturnPoint {
    void* words[8];
};
// Goes to a program's entry point with the stack pointer at `stack` (argc, argv, the environment
// and the auxiliary vector, aligned to 16 bytes). Comes back, once, when leave_program is called.
// The caller's frame must be above `stack`, and that of no other function between them.
void enter_program(ReturnPoint* here, void* stack,
                   void* entry) __asm__("warren_image_enter_program");
[[noreturn]] void leave_program(const ReturnPoint* there) __asm__("warren_image_leave_program");

} // namespace warren::image::architecture
