#include "launch/host/jumps.hpp"

#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "launch/host/fibre_signals.hpp"
#include "launch/host/rank_signals.hpp"
#include "launch/host/thread_signals.hpp"

namespace warren::launch {

namespace {

// A fibre's mask in the part of a jump buffer's mask that the kernel has no signals for.
struct SavedMask {
    std::uint64_t mark;
    Mask mask;
};
constexpr std::size_t place_of_mask = 64; // bytes
static_assert(place_of_mask + sizeof(SavedMask) <= sizeof(sigset_t));

std::uint64_t mark_of(const void* buffer) {
    constexpr std::uint64_t random = 0x5b1d'93f2'0c64'ae87;
    return reinterpret_cast<std::uintptr_t>(buffer) ^ random;
}

std::byte* place_in(__jmp_buf_tag* buffer) {
    return reinterpret_cast<std::byte*>(&buffer->__saved_mask) + place_of_mask;
}

using Jump = void (*)(__jmp_buf_tag*, int);
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" [[noreturn]] void __longjmp_chk(__jmp_buf_tag* buffer, int value);

void restore_mask(__jmp_buf_tag* buffer) {
    if (signals_of_caller() == nullptr) {
        leave_waits();
        // The mask of a thread is noted (thread_signals.hpp).
        const sigset_t none = set_of(0);
        const bool restores = buffer->__mask_was_saved != 0;
        set_mask_of_thread(restores ? SIG_SETMASK : SIG_BLOCK,
                           restores ? &buffer->__saved_mask : &none, nullptr);
        return;
    }
    leave_handler_with_mask();
    SavedMask saved{};
    std::memcpy(&saved, place_in(buffer), sizeof saved);
    if (buffer->__mask_was_saved != 0 && saved.mark == mark_of(buffer)) {
        const sigset_t mask = set_of(saved.mask);
        set_signal_mask(SIG_SETMASK, &mask, nullptr);
    }
}

[[noreturn]] void jump(__jmp_buf_tag* buffer, int value) {
    restore_mask(buffer);
    siglongjmp(buffer, value);
}

[[noreturn]] void jump_checked(__jmp_buf_tag* buffer, int value) {
    restore_mask(buffer);
    __longjmp_chk(buffer, value);
}

} // namespace

extern "C" {
// Before the C library's function saves the kernel's mask.
void warren_launch_save_mask(__jmp_buf_tag* buffer, int saves) {
    SavedMask saved{};
    if (saves != 0 && signals_of_caller() != nullptr) {
        const sigset_t blocked = signals_blocked_by_caller();
        saved = {mark_of(buffer), mask_of(blocked)};
    }
    if (saves != 0) {
        std::memcpy(place_in(buffer), &saved, sizeof saved);
    }
}

int warren_launch_sigsetjmp(__jmp_buf_tag* buffer, int saves);
int warren_launch_setjmp(__jmp_buf_tag* buffer);
}

// They return twice, so nothing of them may be on the stack then.
asm(R"(
    .text
    .globl warren_launch_setjmp
    .type warren_launch_setjmp, @function
warren_launch_setjmp:
    movl $1, %esi
    .globl warren_launch_sigsetjmp
    .type warren_launch_sigsetjmp, @function
warren_launch_sigsetjmp:
    pushq %rdi
    pushq %rsi
    subq $8, %rsp
    call warren_launch_save_mask
    addq $8, %rsp
    popq %rsi
    popq %rdi
    jmp *__sigsetjmp@GOTPCREL(%rip)
    .size warren_launch_sigsetjmp, .-warren_launch_sigsetjmp
)");

std::span<const warren_image_binding> set_jump_bindings() {
    static const warren_image_binding bindings[] = {
        {"__sigsetjmp", reinterpret_cast<void*>(&warren_launch_sigsetjmp)},
        {"setjmp", reinterpret_cast<void*>(&warren_launch_setjmp)},
    };
    return bindings;
}

std::span<const warren_image_binding> jump_bindings() {
    static const warren_image_binding bindings[] = {
        {"longjmp", reinterpret_cast<void*>(&jump)},
        {"_longjmp", reinterpret_cast<void*>(&jump)},
        {"siglongjmp", reinterpret_cast<void*>(&jump)},
        {"__longjmp_chk", reinterpret_cast<void*>(&jump_checked)},
    };
    return bindings;
}

} // namespace warren::launch
