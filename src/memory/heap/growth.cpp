#include "memory/heap/growth.hpp"

#include <cerrno>

#include "base/futex.hpp"

namespace warren::memory {

Growth::Turn::Turn(Growth& growth) : growth_(growth) {
    std::uint32_t turns = growth.turns_.load(std::memory_order_relaxed);
    for (;;) {
        // Before it is in: who comes later counts behind this.
        begun_ = growth.begun_.load(std::memory_order_acquire);
        if ((turns & alone) != 0) {
            const std::lock_guard hold(growth.alone_mutex_); // until they are done
            turns = growth.turns_.load(std::memory_order_relaxed);
        } else if (growth.turns_.compare_exchange_weak(
                       turns, turns + one, std::memory_order_acq_rel, std::memory_order_relaxed)) {
            break;
        }
    }
    others_ = turns != 0;
    growth.begun_.fetch_add(1, std::memory_order_release);
}

bool Growth::Turn::end() {
    // The heap's locks order this after what others did before our request was refused.
    const std::uint32_t before = growth_.turns_.fetch_sub(one, std::memory_order_acq_rel);
    const bool others = others_ || (before & ~alone) != one ||
                        growth_.begun_.load(std::memory_order_relaxed) != begun_ + 1;
    if (before == one + alone) {
        const int saved = errno;
        kernel_wake(growth_.turns_, 1);
        errno = saved;
    }
    return others;
}

void Growth::lock() {
    alone_mutex_.lock();
    const int saved = errno;
    std::uint32_t turns = turns_.fetch_or(alone, std::memory_order_acquire) | alone;
    while (turns != alone) {
        kernel_wait(turns_, turns, nullptr);
        turns = turns_.load(std::memory_order_acquire);
    }
    errno = saved;
}

void Growth::unlock() {
    turns_.store(0, std::memory_order_release);
    alone_mutex_.unlock();
}

} // namespace warren::memory
