// What a library asks of fibres when it waits, in a process whose ranks are fibres: park instead of
// sleep. Any thread may call these, fibres and others.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include "base/futex.hpp"

namespace warren {

// What a wait in a call of MPI is for.
struct WaitNote {
    void (*show)(void* wait) = nullptr; // says it in shared memory
    void* wait = nullptr;
    bool shown = false;
};

struct FibreFunctions {
    // As futex_wait and futex_wake. `note` may be null; its show() is called if the wait gets long.
    void (*wait)(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* timeout,
                 WaitNote* note);
    void (*wake)(std::atomic<std::uint32_t>& word, int count);
    // Lets others that are ready have the worker.
    void (*give_way)();
};

// The kernel's own, for the threads that fibres run on.
inline void kernel_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                        const timespec* timeout) {
    futex_wait(word, expected, timeout);
}
inline void kernel_wake(std::atomic<std::uint32_t>& word, int count) {
    futex_wake(word, count);
}

} // namespace warren
