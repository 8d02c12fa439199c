#include "mpi/transport/shm/bounce.hpp"

#include <bit>

#include "base/invariant.hpp"

namespace warren::transport {

BounceStock::BounceStock(Rank& rank) : rank_(rank), can_commit_(rank.segment.units(bounces) != 0) {}

bool BounceStock::commit_one() {
    if (!can_commit_ || committed_ == bounce_buffers) {
        return false;
    }
    const std::uint32_t number = rank_.index * bounce_buffers + committed_;
    if (!rank_.segment.commit_units(bounces, number, 1)) {
        can_commit_ = false; // go on with those that there are
        return false;
    }
    ++committed_;
    stack_[on_stack_++] = number;
    return true;
}

bool BounceStock::take(Bounce& bounce) {
    if (keeping_) {
        keeping_ = false;
        bounce = kept_;
        return true;
    }
    if (on_stack_ == 0) {
        collect();
        if (on_stack_ == 0 && !commit_one()) {
            return false;
        }
        // With the first come those that others may keep.
        while (committed_ <= kept_reserve && commit_one()) {
        }
    }
    bounce.number = stack_[--on_stack_];
    bounce.may_be_kept =
        std::popcount(granted_) + static_cast<int>(kept_reserve) < static_cast<int>(committed_);
    if (bounce.may_be_kept) {
        granted_ |= 1U << bounce.number % bounce_buffers;
        WARREN_INVARIANT(std::popcount(granted_) + static_cast<int>(kept_reserve) <=
                             static_cast<int>(committed_),
                         "bounce 1: kept_reserve of the committed buffers are kept by nobody");
    }
    return true;
}

void BounceStock::collect() {
    // Acquire pairs with give_back(): the receiver has read the data. The wish to be rung stays.
    const std::uint32_t returned =
        queue_ends_of(rank_.slot)
            .bounces_returned.fetch_and(wanted_bit, std::memory_order_acquire) &
        ~wanted_bit;
    for (std::uint32_t bits = returned; bits != 0; bits &= bits - 1) {
        push_own(rank_.index * bounce_buffers + static_cast<std::uint32_t>(std::countr_zero(bits)));
    }
}

void BounceStock::push_own(std::uint32_t number) {
    WARREN_INVARIANT(owner(number) == rank_.index && on_stack_ < committed_,
                     "bounce 3: a buffer on its owner's stack is committed, and there once");
    stack_[on_stack_++] = number;
    granted_ &= ~(1U << number % bounce_buffers);
}

void BounceStock::give_back(std::uint32_t number) {
    const std::uint32_t to = owner(number);
    std::atomic<std::uint32_t>& returned = queue_ends_of(rank_.segment.slot(to)).bounces_returned;
    const std::uint32_t before =
        returned.fetch_or(1U << number % bounce_buffers, std::memory_order_acq_rel);
    if ((before & wanted_bit) != 0) {
        returned.fetch_and(~wanted_bit, std::memory_order_relaxed);
        rank_.ring(to);
    }
}

void BounceStock::drop(const Bounce& bounce) {
    if (owner(bounce.number) == rank_.index) {
        push_own(bounce.number);
        return;
    }
    if (!bounce.may_be_kept) {
        give_back(bounce.number);
        return;
    }
    if (keeping_) {
        give_back(kept_.number);
    }
    keeping_ = true;
    kept_ = bounce;
}

bool BounceStock::ask_for_return() {
    const std::uint32_t before =
        queue_ends_of(rank_.slot).bounces_returned.fetch_or(wanted_bit, std::memory_order_acq_rel);
    return (before & ~wanted_bit) == 0;
}

} // namespace warren::transport
