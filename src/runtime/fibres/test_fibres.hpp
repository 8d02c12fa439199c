// Common parts of the tests of fibres. A process has one scheduler, for good: each test runs in a
// process of its own, which says by its exit code how it went.
#pragma once

#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/fibres/scheduler.hpp"

namespace warren::fibre {

inline constexpr std::size_t stack_bytes = 2 << 20; // ThreadSanitizer keeps most of one of them

struct Fibres {
    explicit Fibres(std::uint32_t count, std::vector<int> processors = {-1, -1},
                    void (*stuck)() = nullptr, BalancingOptions balancing = {}, bool steals = true,
                    const ProcessorCalls& calls = ProcessorCalls::of_kernel()) {
        made = new Scheduler({.processors = std::move(processors),
                              .fibres = count,
                              .stuck = stuck,
                              .loads = loads,
                              .steals = steals,
                              .balancing = std::move(balancing),
                              .processor_calls = calls});
        fibre_functions.store(nullptr);
    }
    void add(std::function<void()> function) {
        void* stack = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
        struct Start {
            std::function<void()> function;
            Fibres* fibres;
        };
        const int error = made->make(
            stack, stack_bytes,
            [](void* given) {
                auto* start = static_cast<Start*>(given);
                start->function();
                start->fibres->done.fetch_add(1);
                kernel_wake(start->fibres->done, 1);
            },
            new Start{std::move(function), this});
        ASSERT_EQ(error, 0);
        ++all;
    }
    // Until all have ended.
    void run() {
        EXPECT_EQ(made->start(), 0);
        finish();
    }
    void finish() {
        for (std::uint32_t seen = done; seen != all; seen = done) {
            kernel_wait(done, seen, nullptr);
        }
    }

    // As in the node segment; the monitor writes to it as long as the process lives.
    balance::LoadTable loads =
        balance::LoadTable::at(reinterpret_cast<std::byte*>(new balance::RankLoad[2048]()));
    Scheduler* made;
    std::uint32_t all = 0;
    std::atomic<std::uint32_t> done{0};
};

// In a process of its own.
inline void alone(const std::function<void()>& body) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(100);
        body();
        fflush(stdout);
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

} // namespace warren::fibre
