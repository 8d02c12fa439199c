#include "base/futex.hpp"

#include <climits>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace warren {

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* timeout) {
    if (const FibreFunctions* functions = fibres()) {
        functions->wait(word, expected, timeout, nullptr);
    } else {
        kernel_wait(word, expected, timeout);
    }
}

void futex_wake(std::atomic<std::uint32_t>& word, int count) {
    if (const FibreFunctions* functions = fibres()) {
        functions->wake(word, count);
    } else {
        kernel_wake(word, count);
    }
}

void give_way() {
    if (const FibreFunctions* functions = fibres()) {
        functions->give_way();
    } else {
        sched_yield();
    }
}

void kernel_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                 const timespec* timeout) {
    syscall(SYS_futex, &word, FUTEX_WAIT, expected, timeout, nullptr, 0);
}

void kernel_wake(std::atomic<std::uint32_t>& word, int count) {
    syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

bool register_sleeper_fence() {
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

bool sleeper_fence() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

std::uint64_t monotonic_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
           static_cast<std::uint64_t>(now.tv_nsec);
}

} // namespace warren
