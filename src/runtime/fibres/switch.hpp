// Contexts: what a processor must be given to go on where a fibre, or a worker, has left off: the
// stack pointer, with the registers that functions preserve on the stack, and the thread pointer,
// which thread-local variables hang from (errno, the C++ library's exceptions, the locale, an
// image's own). Signal masks and what else the kernel keeps per thread stay with the kernel thread.
//
// Code that depends on the processor is in x86_64.cpp and aarch64.cpp. Thread rule: a context is
// resumed once for each time that it has been left, by one kernel thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace warren::fibre {

// Whether this processor has a switch (aarch64.cpp).
#if defined(__x86_64__)
inline constexpr bool has_switch = true;
#else
inline constexpr bool has_switch = false;
#endif

struct Context {
    void* stack = nullptr;
    std::byte* thread_pointer = nullptr;
};

extern "C" {
void* warren_fibre_switch(Context* from, const Context* to, void* message);
void* warren_fibre_switch_by_kernel(Context* from, const Context* to, void* message);
}
// Whether programs may set the thread pointer themselves on this machine.
extern const bool sets_thread_pointer;

// Leaves the calling context in `from` and goes on in `to`. Returns when somebody comes back: with
// the `message` that they gave.
inline void* switch_context(Context* from, const Context* to, void* message) {
    return __builtin_expect(sets_thread_pointer, 1)
               ? warren_fibre_switch(from, to, message)
               : warren_fibre_switch_by_kernel(from, to, message);
}

// Leaves the calling context in `from`, sets `left` to 0, and ends the kernel thread, which touches
// the context no more from then on. Returns, in another kernel thread, as switch_context does.
void* leave_kernel_thread(Context* from, std::atomic<std::uint32_t>* left);

// The context of the calling kernel thread.
std::byte* thread_pointer();

// A clock of the processor's, for comparison with itself: cheap, and the same on all processors.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    std::uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
#else
#error "which clock does this processor have?"
#endif
}

// Has the processor fetch what resuming a context reads first.
inline void fetch_soon(const Context& context) {
    const auto* top =
        static_cast<const std::byte*>(__atomic_load_n(&context.stack, __ATOMIC_RELAXED));
    __builtin_prefetch(top);
    __builtin_prefetch(top + 64);
    __builtin_prefetch(top + 128);
}

} // namespace warren::fibre
