// SteadyLoad: what a rank is expected to run until the next point, from what it ran up to the last
// ones: the middle one of three.
//
// A rank's time between two points sometimes contains what the system, or the machine's other
// guests, did meanwhile: tens of microseconds, where the steps of a program may take some hundred.
// Ranks that are moved for that are moved in vain, and back. What has changed counts from the
// second time on. Thread rule: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace warren::balance {

class SteadyLoad {
  public:
    // It has run so long: says what is expected.
    std::uint64_t after(std::uint64_t ran) {
        const std::uint64_t last = std::exchange(last_, ran);
        const std::uint64_t one_before = std::exchange(one_before_, last);
        if (seen_ < 2) {
            return seen_++ == 0 ? ran : std::min(ran, last); // disturbances make them longer
        }
        return std::clamp(one_before, std::min(ran, last), std::max(ran, last));
    }

  private:
    std::uint64_t last_ = 0;
    std::uint64_t one_before_ = 0;
    std::uint32_t seen_ = 0;
};

} // namespace warren::balance
