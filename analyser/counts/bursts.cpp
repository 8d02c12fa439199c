#include "analyser/counts/bursts.hpp"

namespace warren::locality::counts {
namespace {

// The first burst of a thread takes at most this part of the pool.
constexpr std::int64_t part_of_pool = 4;
constexpr std::int64_t shortest_first_burst = 100'000;
// Instructions outside first bursts add this part of their number to the pool.
constexpr std::uint64_t share_of_pool = 64;
constexpr std::uint64_t bursts_to_adapt = 8;

} // namespace

void Bursts::set_budget(std::int64_t budget) {
    const std::uint64_t all = instructions();
    // Stored in this order, a concurrent reader may see too many instructions but never a falling
    // number.
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
    // Another thread may see the two values at different times.
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
    go_on(0);
    weight_ = next_weight_;
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

void Bursts::draw() {
    adapt();
    const std::uint64_t stratum = next_weight_ * burst_instructions;
    const std::uint64_t begin = random_below(stratum);
    const std::uint64_t end = begin + burst_instructions;
    const std::uint64_t round = end > stratum ? end - stratum : 0;
    const std::uint64_t pieces[] = {round, begin - round, burst_instructions - round,
                                    end > stratum ? 0 : stratum - end};
    for (unsigned piece = 0; piece < number_of_pieces; ++piece) {
        pieces_[piece] = static_cast<std::int64_t>(pieces[piece]);
    }
    piece_ = 0;
}

void Bursts::go_on(std::int64_t over) {
    for (;; ++piece_) {
        if (piece_ == number_of_pieces) {
            draw();
        }
        const std::int64_t length = pieces_[piece_];
        if (over > length || length == 0) {
            over -= length;
            continue;
        }
        counting_ = piece_ % 2 == 0;
        if (counting_ && (piece_ == 0 || pieces_[0] == 0)) { // else its second part
            __atomic_store_n(&bursts_, bursts_ + 1, __ATOMIC_RELAXED);
        }
        set_budget((counting_ ? in_burst : 0) + length - over);
        ++piece_;
        return;
    }
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
    } else if (first_) {
        first_ = false; // its cost is once
        outside_ns_ = outside_ = within_ns_ = within_ = 0;
    } else {
        within_ns_ += took_ns;
        within_ += done;
    }
    go_on((counting_ ? in_burst : 0) - *budget_);
    const bool changes = counting_ && weight_ != next_weight_;
    weight_ = changes ? next_weight_ : weight_;
    return changes;
}

void Bursts::adapt() {
    if (bursts_ < adapted_from_ + bursts_to_adapt || outside_ == 0 || within_ == 0) {
        return;
    }
    // Bursts cost the time that they take beyond the time of as many instructions outside.
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
