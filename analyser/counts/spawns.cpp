#include "analyser/counts/spawns.hpp"

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

// Far longer than a child takes between vfork and exec.
constexpr std::uint64_t longest_child_ms = 5000;

// Changes the kernel's mask. DynamoRIO manages the program's.
std::uint64_t change_mask(int how, std::uint64_t signals) {
    std::uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, how, &signals, &before, sizeof signals);
    return before;
}

// Calls is_done() until it is true, and lets others stop all threads meanwhile. False: the time is
// over.
template <typename IsDone>
bool wait_until(void* context, std::uint64_t longest_ms, const IsDone& is_done) {
    constexpr int quick_looks = 100;
    std::uint64_t begin = 0;
    for (int look = 0; !is_done(); ++look) {
        if (look == quick_looks) {
            begin = dr_get_milliseconds();
        } else if (look > quick_looks && dr_get_milliseconds() - begin >= longest_ms) {
            return false;
        }
        dr_mark_safe_to_suspend(context, true);
        if (look < quick_looks) {
            dr_thread_yield();
        } else {
            dr_sleep(1);
        }
        dr_mark_safe_to_suspend(context, false);
    }
    return true;
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
    children_.store(0, std::memory_order_relaxed);
    waiting_.store(0, std::memory_order_relaxed);
}

void Spawns::hold(void* context, const Spawner& spawner) {
    hold_as(context, spawner.id, spawner.is_child);
}

void Spawns::hold_for_new(void* context, Spawner& spawner, New what) {
    switch (what) {
    case New::thread:
        hold_as(context, spawner.id | for_new, spawner.is_child);
        break;
    case New::process:
        wait_for_children(context, for_ever);
        hold_as(context, spawner.id | for_new, spawner.is_child);
        --waiting_; // whoever holds keeps them out
        break;
    case New::child_of_vfork:
        hold_for_vfork(context, spawner);
        break;
    }
    const std::uint64_t before = change_mask(SIG_BLOCK, ~never_kept_out);
    kept_out_.store(~never_kept_out & ~before, std::memory_order_relaxed);
}

void Spawns::hold_for_vfork(void* context, Spawner& spawner) {
    const std::uint32_t holder = spawner.id | for_new | for_vfork;
    hold_as(context, holder, spawner.is_child);
    if (spawner.is_child) {
        return;
    }
    // Pairs with wait_for_children(): each writes first and then reads, so that at least one sees
    // the other.
    while (++children_, waiting_ != 0) {
        --children_;
        holder_.store(0, std::memory_order_release);
        wait_until(context, for_ever, [this] { return waiting_ == 0; });
        hold_as(context, holder, false);
    }
    spawner.in_vfork = true;
}

bool Spawns::hold_for_end(void* context, const Spawner& spawner) {
    if (!wait_for_children(context, longest_child_ms)) {
        return false;
    }
    hold(context, spawner);
    return true;
}

bool Spawns::wait_for_children(void* context, std::uint64_t longest_ms) {
    ++waiting_;
    return wait_until(context, longest_ms, [this] { return children_ == 0; });
}

void Spawns::hold_as(void* context, std::uint32_t holder, bool is_child) {
    const auto is_taken = [this, holder] {
        std::uint32_t nobody = 0;
        return holder_.compare_exchange_strong(nobody, holder, std::memory_order_acquire,
                                               std::memory_order_relaxed);
    };
    // A child goes on if its parent's process was killed or became another program, whose threads
    // held the lock only briefly.
    if (!wait_until(context, is_child ? longest_child_ms : for_ever, is_taken)) {
        holder_.store(holder, std::memory_order_relaxed);
    }
}

void Spawns::made(Spawner& spawner) {
    let_signals_in(); // a child of vfork may have given the rest back long ago
    give_back(spawner);
}

void Spawns::give_back(Spawner& spawner) {
    if (spawner.in_vfork) {
        spawner.in_vfork = false;
        --children_;
    }
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
