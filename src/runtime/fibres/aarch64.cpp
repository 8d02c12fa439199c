// AArch64: no fibres yet. The switch itself is little, but the compiler keeps tpidr_el0, the thread
// pointer, in a register across the call that changes it, so whoever switches must not be inlined
// into what uses thread-local variables.
#if defined(__aarch64__)

#include "runtime/fibres/switch.hpp"

namespace warren::fibre {

const bool sets_thread_pointer = true;

// Nothing of these is reached: Scheduler::make refuses.
void* warren_fibre_switch(Context* /*from*/, const Context* /*to*/, void* /*message*/) {
    __builtin_trap();
}

void* warren_fibre_switch_by_kernel(Context* /*from*/, const Context* /*to*/, void* /*message*/) {
    __builtin_trap();
}

void* leave_kernel_thread(Context* /*from*/, std::atomic<std::uint32_t>* /*left*/) {
    __builtin_trap();
}

std::byte* thread_pointer() {
    return static_cast<std::byte*>(__builtin_thread_pointer());
}

} // namespace warren::fibre

#endif
