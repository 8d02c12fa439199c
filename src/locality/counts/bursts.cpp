#include "locality/counts/bursts.hpp"

namespace warren::locality::counts {
namespace {

// The first burst of a thread takes at most this part of what there is.
constexpr std::int64_t part_of_pool = 4;
constexpr std::int64_t shortest_first_burst = 100'000;
// What all threads' other instructions add to it: a 64th.
constexpr std::uint64_t share_of_pool = 64;
constexpr std::uint64_t bursts_to_adapt = 8;

} // namespace

void Bursts::set_budget(std::int64_t budget) {
    const std::uint64_t all = instructions();
    // In this order: who reads meanwhile may see too many, but not less and less.
    __atomic_store_n(&instructions_, all, __ATOMIC_RELAXED);
    __atomic_store_n(&last_budget_, budget, __ATOMIC_RELAXED);
    __atomic_store_n(budget_, budget, __ATOMIC_RELAXED);
}

std::uint64_t Bursts::instructions() const {
    const std::uint64_t before = __atomic_load_n(&instructions_, __ATOMIC_RELAXED);
    if (budget_ == nullptr) {
        return before;
    }
    const std::int64_t done = __atomic_load_n(&last_budget_, __ATOMIC_RELAXED) -
                              __atomic_load_n(budget_, __ATOMIC_RELAXED);
    // Another thread may see the two of different times.
    return before +
           (done > 0 && done < (std::int64_t{1} << 48) ? static_cast<std::uint64_t>(done) : 0);
}

std::uint64_t Bursts::random_below(std::uint64_t limit) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return limit == 0 ? 0 : random_ % limit;
}

void Bursts::start(std::int64_t* budget, Pool& pool, std::uint64_t seed, std::uint64_t cpu_ns) {
    *this = Bursts{};
    budget_ = budget;
    pool_ = &pool;
    random_ = (seed * 0x9E37'79B9'7F4A'7C15U) | 1;
    for (int turn = 0; turn < 8; ++turn) {
        random_below(1);
    }
    since_ns_ = cpu_ns;
    const std::int64_t there = __atomic_load_n(&pool.instructions, __ATOMIC_RELAXED);
    const std::int64_t wish = there / part_of_pool;
    constexpr auto most = static_cast<std::int64_t>(first_burst_instructions);
    const std::int64_t length = wish < most ? wish : most;
    *budget_ = last_budget_ = 0;
    if (length >= shortest_first_burst) {
        __atomic_fetch_sub(&pool.instructions, length, __ATOMIC_RELAXED);
        first_ = true;
        begin(static_cast<std::uint64_t>(length));
        return;
    }
    const std::uint64_t stratum = next_weight_ * burst_instructions;
    const std::uint64_t before = random_below(stratum - burst_instructions);
    rest_ = stratum - burst_instructions - before;
    set_budget(static_cast<std::int64_t>(before));
}

void Bursts::stop() {
    if (budget_ == nullptr) {
        return;
    }
    const std::int64_t left = *budget_ - in_burst;
    if (first_ && left > 0) {
        __atomic_fetch_add(&pool_->instructions, left, __ATOMIC_RELAXED);
    }
    instructions_ = instructions();
    budget_ = nullptr;
    counting_ = false;
}

void Bursts::begin(std::uint64_t instructions) {
    counting_ = true;
    __atomic_store_n(&bursts_, bursts_ + 1, __ATOMIC_RELAXED);
    set_budget(in_burst + static_cast<std::int64_t>(instructions));
}

bool Bursts::turn(std::uint64_t cpu_ns) {
    const std::uint64_t took_ns = cpu_ns > since_ns_ ? cpu_ns - since_ns_ : 0;
    since_ns_ = cpu_ns;
    const std::uint64_t before = instructions_;
    const std::uint64_t done = instructions() - before;
    if (!counting_) {
        outside_ns_ += took_ns;
        outside_ += done;
        if (__atomic_load_n(&pool_->instructions, __ATOMIC_RELAXED) < pool_->most) {
            __atomic_fetch_add(&pool_->instructions,
                               static_cast<std::int64_t>(done / share_of_pool), __ATOMIC_RELAXED);
        }
        const bool changes = weight_ != next_weight_;
        weight_ = next_weight_;
        begin(burst_instructions);
        return changes;
    }
    if (first_) {
        first_ = false; // its cost is once
        outside_ns_ = outside_ = within_ns_ = within_ = 0;
        rest_ = 0;
    } else {
        within_ns_ += took_ns;
        within_ += done;
    }
    counting_ = false;
    const std::uint64_t rest = rest_;
    adapt();
    const std::uint64_t stratum = next_weight_ * burst_instructions;
    const std::uint64_t before_next = random_below(stratum - burst_instructions);
    rest_ = stratum - burst_instructions - before_next;
    set_budget(static_cast<std::int64_t>(rest + before_next));
    return false;
}

void Bursts::adapt() {
    if (bursts_ < adapted_from_ + bursts_to_adapt || outside_ == 0 || within_ == 0) {
        return;
    }
    // What bursts took longer than their instructions would have taken outside.
    const std::uint64_t usual_ns = outside_ns_ / 1024 * within_ / (outside_ / 1024 + 1);
    const std::uint64_t extra_ns = within_ns_ > usual_ns ? within_ns_ - usual_ns : 0;
    const std::uint64_t all_ns = outside_ns_ + usual_ns;
    if (extra_ns * 1000 > most_cost * all_ns && next_weight_ < largest_weight) {
        next_weight_ *= 2;
    } else if (extra_ns * 1000 < least_cost * all_ns && next_weight_ > least_weight) {
        next_weight_ /= 2;
    }
    adapted_from_ = bursts_;
    outside_ns_ = outside_ = within_ns_ = within_ = 0;
}

} // namespace warren::locality::counts
