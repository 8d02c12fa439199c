// Stretches: counts how long each fibre runs between two switches of a worker, without reading the
// clock at each switch, which would take a quarter of the switch.
//
// A stretch is the time between two switches of a worker. After many short stretches in a row, the
// worker reads the clock at two of about 16 switches, one right after the other. The time between
// these two is one stretch; it gives the usual length of its fibre's stretches. At the other
// switches the fibre that leaves is taken to have run for its usual length. The difference to the
// real time goes to the fibre that leaves at the next reading, so that all time is counted once.
//
// A timed stretch is longer than others by the reading itself, a third of a switch. How much that
// is, is learnt from the differences; otherwise all stretches would seem longer than they are.
//
// If the difference exceeds two long stretches, one stretch was long, and nobody knows whose. Then
// the worker reads the clock at each switch again, twice as many times as after the last such case,
// unless such cases are seldom. A timed long stretch ends a series of short ones likewise, unless
// it is seldom: the system interrupts fibres some thousand times a second. Seldom means that they
// make up at most a thirtieth of the time, and at most some 20 µs at once. So at most that much
// time is counted for the wrong fibre. The monitor, which looks at workers every few milliseconds,
// makes the next switch read the clock, so that a stretch that the monitor has seen is counted for
// its own fibre.
//
// If stretches have become shorter than usual, fibres are counted more time than has passed. The
// next fibres are then counted nothing until that is made up. If more than about four long
// stretches have to be made up, each switch reads the clock again. Thread rule: called by the fibre
// that runs on the worker, unless said otherwise.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace warren::fibre {

class Stretches {
  public:
    void begin(std::uint64_t now) {
        since_.store(now, std::memory_order_relaxed);
        timed_ = now;
    }

    // Ends a stretch of a fibre: says how many ticks to count as run by it. `usual_ticks` is the
    // fibre's, and may change. `clock` says the time.
    template <typename Clock>
    [[gnu::always_inline]] std::uint64_t end(std::uint32_t& usual_ticks, Clock clock) {
        const std::uint32_t untimed = untimed_.load(std::memory_order_relaxed);
        if (untimed == 0) [[unlikely]] {
            return end_at(clock(), &usual_ticks);
        }
        untimed_.store(untimed - 1, std::memory_order_relaxed);
        since_.store(since_.load(std::memory_order_relaxed) + usual_ticks,
                     std::memory_order_relaxed);
        return usual_ticks;
    }

    // As above, at a given time; also for a worker without a fibre, or of a fibre that has waited
    // (null).
    [[gnu::noinline]] std::uint64_t end_at(std::uint64_t now, std::uint32_t* usual_ticks) {
        const std::uint64_t since = since_.load(std::memory_order_relaxed);
        const std::uint64_t more = now > since ? now - since : 0;
        since_.store(since + more, std::memory_order_relaxed);
        const std::uint64_t passed = now - timed_;
        timed_ = now;
        untimed_.store(0, std::memory_order_relaxed);
        const std::uint32_t several = std::exchange(several_, 0);
        if (since > now + most_ahead) {
            short_ones_ = 0;
        }
        const bool is_long = several != 0 ? more >= 2 * short_ticks : passed >= short_ticks;
        const bool counts = is_long && !is_seldom(several != 0 ? more : passed);
        if (!is_long) {
            seldom_ = std::min(seldom_ + passed / one_of_seldom, most_seldom);
        }
        if (several != 0) {
            if (counts) {
                short_ones_ = 0;
                wanted_ = std::min(2 * wanted_, most_wanted);
            } else {
                wanted_ = std::max(wanted_ - 1 - wanted_ / 1024, fewest_wanted);
                learn_reading(more, passed / several);
            }
            return more;
        }
        if (is_long) { // it says nothing of the fibre's short ones
            short_ones_ = counts ? 0 : short_ones_;
            return more;
        }
        if (usual_ticks != nullptr) {
            *usual_ticks = static_cast<std::uint32_t>(passed - std::min(reading_, passed / 2));
        }
        if (++short_ones_ >= wanted_) {
            // Not always so many, or the same fibres would be timed again and again. (The clock's
            // low bits won't do: where it is a multiplied one, they hardly change.)
            random_ = random_ * 1'664'525 + 1'013'904'223;
            const std::uint32_t untimed = fewest_untimed + (random_ >> 29);
            untimed_.store(untimed, std::memory_order_relaxed);
            several_ = untimed + 1;
        }
        return more;
    }

    // The next switch reads the clock. By any thread (seldom it has no effect: the worker switches
    // just now).
    void time_next() {
        if (untimed_.load(std::memory_order_relaxed) != 0) {
            untimed_.store(0, std::memory_order_relaxed);
        }
    }
    // So does each one from now on for a while. Right after end_at().
    void time_all() {
        untimed_.store(0, std::memory_order_relaxed);
        several_ = 0;
        short_ones_ = 0;
    }

    // Ticks up to `now` that are nobody's yet. By any thread. (Fibres may have been taken
    // to have run a little longer than there was time: then there is none.)
    std::uint64_t unaccounted(std::uint64_t now) const {
        const std::uint64_t since = since_.load(std::memory_order_acquire);
        return now > since ? now - since : 0;
    }

  private:
    // The rest of several stretches, when usual ones have been counted for all but the last, is
    // one. Less: fibres are taken to run for too long.
    void learn_reading(std::uint64_t more, std::uint64_t one) {
        if (more < one / 2) {
            reading_ = std::min(reading_ + 1, most_reading);
        } else if (more > one + one / 2 && reading_ != 0) {
            --reading_;
        }
    }

    // Whether so many ticks may be a long stretch's without consequences.
    bool is_seldom(std::uint64_t its_ticks) {
        if (its_ticks > seldom_) {
            return false;
        }
        seldom_ -= its_ticks;
        return true;
    }

    // Some 0.4 µs: what the clock takes then doesn't matter.
    static constexpr std::uint64_t short_ticks = 1'000;
    static constexpr std::uint64_t most_ahead = 4'000;
    static constexpr std::uint32_t fewest_untimed = 11;
    static constexpr std::uint64_t most_reading = 150;
    static constexpr std::uint64_t one_of_seldom = 32;
    static constexpr std::uint64_t most_seldom = 50'000;
    // Short stretches in a row before the clock is left alone.
    static constexpr std::uint32_t fewest_wanted = 256;
    static constexpr std::uint32_t most_wanted = 1 << 16;

    std::atomic<std::uint64_t> since_{0};   // up to then all time is accounted for
    std::atomic<std::uint32_t> untimed_{0}; // so many switches more don't read the clock
    std::uint32_t several_ = 0; // stretches end at most with the next reading; 0: one does
    std::uint64_t timed_ = 0;   // when the clock was read last
    std::uint64_t reading_ = 0; // by how much a stretch that is timed takes longer than others
    std::uint64_t seldom_ = 0;  // what long ones may come to
    std::uint32_t short_ones_ = 0;
    std::uint32_t wanted_ = fewest_wanted;
    std::uint32_t random_ = 1;
};

} // namespace warren::fibre
