#include "locality/counts/spawns.hpp"

#include <csignal>
#include <sys/syscall.h>
#include <unistd.h>

#include "dr_api.h"

namespace warren::locality::counts {
namespace {

constexpr std::uint64_t bit_of(int signal) {
    return std::uint64_t{1} << (signal - 1);
}
constexpr std::uint64_t never_kept_out = bit_of(SIGSEGV) | bit_of(SIGBUS) | bit_of(SIGFPE) |
                                         bit_of(SIGILL) | bit_of(SIGTRAP) | bit_of(SIGSYS) |
                                         bit_of(SIGABRT) | bit_of(SIGUSR2);

// The kernel's own mask: the program's is DynamoRIO's matter.
std::uint64_t change_mask(int how, std::uint64_t signals) {
    std::uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, how, &signals, &before, sizeof signals);
    return before;
}

} // namespace

Spawner Spawns::thread_began(std::uint32_t tid, bool is_own_process) {
    let_signals_in();
    const std::uint32_t holder = holder_.load(std::memory_order_relaxed);
    if (is_own_process || (holder & for_vfork) == 0) {
        return {tid, false};
    }
    holder_.store(0, std::memory_order_release); // the parent's, which sleeps
    return {holder & ~(for_vfork | for_new), true};
}

void Spawns::forked() {
    let_signals_in();
    holder_.store(0, std::memory_order_relaxed);
}

void Spawns::hold(void* context, const Spawner& spawner) {
    hold_as(context, spawner.id);
}

void Spawns::hold_for_new(void* context, const Spawner& spawner, bool is_vfork) {
    hold_as(context, spawner.id | for_new | (is_vfork ? for_vfork : 0));
    const std::uint64_t before = change_mask(SIG_BLOCK, ~never_kept_out);
    kept_out_.store(~never_kept_out & ~before, std::memory_order_relaxed);
}

void Spawns::hold_as(void* context, std::uint32_t holder) {
    constexpr int quick_looks = 100;
    std::uint32_t nobody = 0;
    for (int look = 0; !holder_.compare_exchange_strong(nobody, holder, std::memory_order_acquire,
                                                        std::memory_order_relaxed);
         ++look) {
        nobody = 0;
        // Others may want all threads to stand still meanwhile.
        dr_mark_safe_to_suspend(context, true);
        if (look < quick_looks) {
            dr_thread_yield();
        } else {
            dr_sleep(1);
        }
        dr_mark_safe_to_suspend(context, false);
    }
}

void Spawns::made(const Spawner& spawner) {
    let_signals_in(); // a child of vfork may have given the rest back long ago
    give_back(spawner);
}

void Spawns::give_back(const Spawner& spawner) {
    std::uint32_t holder = holder_.load(std::memory_order_relaxed);
    if ((holder & ~(for_vfork | for_new)) != spawner.id) {
        return;
    }
    if ((holder & for_new) != 0) {
        let_signals_in();
    }
    holder_.store(0, std::memory_order_release);
}

void Spawns::let_signals_in() const {
    if (const std::uint64_t signals = kept_out_.load(std::memory_order_relaxed)) {
        change_mask(SIG_UNBLOCK, signals);
    }
}

} // namespace warren::locality::counts
