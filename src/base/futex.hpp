// Sleeping and waking across processes, and the fence between a sleeper and its wakers.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

namespace warren {

// Sleeps while word == expected. Returns on a wake, a signal, a change or the end of timeout
// (null: no limit); the caller looks at its condition again.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                const timespec* timeout = nullptr);

// Wakes up to `count` sleepers of word.
void futex_wake(std::atomic<std::uint32_t>& word, int count);

// Lets other threads that are ready have the processor.
void give_way();

// Who sees to the three above in a process whose ranks are fibres (room fibre, in libwarren.so;
// each library has its own pointer to it). Any thread may call them, fibres and others.
struct WaitNote {
    void (*show)(void* wait) = nullptr; // says, in shared memory, what the wait is for
    void* wait = nullptr;
    bool shown = false;
};
struct FibreFunctions {
    // `note`, of a wait in a call of MPI, may be null; show() is called if the wait gets long.
    void (*wait)(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* timeout,
                 WaitNote* note);
    void (*wake)(std::atomic<std::uint32_t>& word, int count);
    void (*give_way)();
    // Gives way for a fibre that has looked again and again and found nothing, which took about
    // so many ticks of the processor's clock: if it did little else meanwhile, it has waited. True:
    // it has not given way, and should sleep for a short time, as other programs want the
    // processor.
    bool (*found_nothing)(std::uint64_t looks_ticks);
    // Waits for events that many wait for, each by the address of a cache line: who brings one
    // about has all of them go on at once, by release(). Fibres only, and where
    // may_wait_for_event() says so. A fibre that waits for an event goes on also when its `bell`,
    // the same in all its life, is woken, or says something else than expected.
    bool (*may_wait_for_event)();
    void (*wait_for_event)(const void* event, bool (*happened)(void*), void* condition,
                           std::atomic<std::uint32_t>& bell, std::uint32_t expected,
                           WaitNote* note);
    void (*release)(const void* event);
    // The calling fibre enters a collective operation of all ranks; null: nobody wants to know.
    void (*at_collective)();
};
// Null: no rank of this process is a fibre. Set once, before there are any.
inline constinit std::atomic<const FibreFunctions*> fibre_functions{nullptr};
inline const FibreFunctions* fibres() {
    return fibre_functions.load(std::memory_order_acquire);
}
// Wait and wake in the kernel, never by fibres: for the code that makes fibres.
void kernel_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* timeout);
void kernel_wake(std::atomic<std::uint32_t>& word, int count);

// Tells the kernel that this process takes part in sleeper_fence(). False when the kernel or a
// filter refuses; every process of a node segment must have succeeded before it is relied on.
bool register_sleeper_fence();

// A full memory fence on every processor that runs a registered process: what a sleeper executes
// so that wakers need none (Linux membarrier). About a microsecond.
// False when the kernel refuses it.
bool sleeper_fence();

// Nanoseconds of the monotonic clock, the same in all processes of a node.
std::uint64_t monotonic_ns();

// Rests the processor's pipeline in a spinning loop.
inline void spin_pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

} // namespace warren
