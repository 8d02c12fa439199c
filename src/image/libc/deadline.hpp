// Deadline: until when a fibre waits for an object of the program. The clock of the time of day may
// be set meanwhile: a wait until a time of it looks at it again every tenth of a second.
// Interruptions: whether handlers of signals end such a wait.
//
// Thread rule: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "base/futex.hpp"
#include "runtime/fibres/scheduler.hpp"

namespace warren::image::libc {

class Deadline {
  public:
    static Deadline never() { return {}; }

    // That time of a clock. False: it isn't one that can be waited for.
    static bool of(clockid_t clock, const timespec& time, Deadline& deadline) {
        if (time.tv_nsec < 0 || time.tv_nsec >= static_cast<long>(second_ns) ||
            (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)) {
            return false;
        }
        deadline.clock_ = clock;
        deadline.time_ = time;
        deadline.is_set_ = true;
        return true;
    }

    // When to look at it again, by the monotonic clock. UINT64_MAX: never.
    std::uint64_t until_ns() const {
        if (!is_set_) {
            return UINT64_MAX;
        }
        const std::uint64_t left_ns = this->left_ns();
        return monotonic_ns() +
               (clock_ == CLOCK_REALTIME ? std::min(left_ns, longest_ns) : left_ns);
    }

    bool is_set() const { return is_set_; }
    bool is_over() const { return is_set_ && left_ns() == 0; }

  private:
    static constexpr std::uint64_t second_ns = 1'000'000'000;
    static constexpr std::uint64_t longest_ns = 100'000'000;

    std::uint64_t left_ns() const {
        timespec now{};
        ::clock_gettime(clock_, &now);
        if (time_.tv_sec < now.tv_sec ||
            (time_.tv_sec == now.tv_sec && time_.tv_nsec <= now.tv_nsec)) {
            return 0;
        }
        constexpr std::uint64_t century_s = 3'155'760'000;
        const auto seconds = static_cast<std::uint64_t>(time_.tv_sec - now.tv_sec);
        return std::min(seconds, century_s) * second_ns +
               static_cast<std::uint64_t>(time_.tv_nsec) - static_cast<std::uint64_t>(now.tv_nsec);
    }

    clockid_t clock_ = CLOCK_MONOTONIC;
    timespec time_{};
    bool is_set_ = false;
};

// A wait of the system for a futex: a handler ends it always if it has a time limit, else only a
// handler without SA_RESTART. To be made when the wait begins.
class Interruptions {
  public:
    explicit Interruptions(const Deadline& deadline) : has_limit_(deadline.is_set()) {}
    bool have_come() const {
        const Handlers now = fibre::Inside::handlers();
        return has_limit_ ? now.all != before_.all : now.interrupting != before_.interrupting;
    }
    // Whether a handler of any kind has run.
    bool has_handled() const { return fibre::Inside::handlers().all != before_.all; }

  private:
    using Handlers = fibre::Inside::Handlers;

    const bool has_limit_;
    const Handlers before_ = fibre::Inside::handlers();
};

} // namespace warren::image::libc
