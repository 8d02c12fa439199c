// Values that replace arguments without a meaning in the foreign ABI. They have no meaning in the
// standard ABI either, so the core refuses them. Thread rule: constants.
#pragma once

#include <climits>
#include <cstdint>

namespace warren::foreign {

inline constexpr int invalid_number = INT_MIN + 1;
inline constexpr int invalid_sum = 1 << 30; // of constants: a bit that none has
inline constexpr std::uintptr_t invalid_handle =
    0xfff; // the last of the standard's predefined ones

} // namespace warren::foreign
