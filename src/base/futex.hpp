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
