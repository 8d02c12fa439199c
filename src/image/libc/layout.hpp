// Layout: what this room and the fibres know of the C library's insides, compared with the C
// library that is there, before the first image.
//
// Thread rule: register_host, once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <pthread.h>
#include <span>

#include "base/error.hpp"

namespace warren::image {

struct LayoutCheck {
    const char* what; // "mutexes"
    bool (*is_known)();
};

// All that is known. Each makes objects by the C library and looks at them.
std::span<const LayoutCheck> layout_checks();
// Fails with the first that is not as it is known, naming it and the C library's version.
Error check_layout(std::span<const LayoutCheck> checks);

// A condition variable of the C library. Which of its words has the flags, clock and sharing among
// processes, depends on the version: glibc 2.41 has moved it.
using ConditionWords = std::array<std::uint32_t, sizeof(pthread_cond_t) / sizeof(std::uint32_t)>;
// In which word three that were made alike differ: one of this process, one with the monotonic
// clock, one with that and of processes. Without such a word it is none of their indices.
std::size_t word_of_flags(const ConditionWords& plain, const ConditionWords& monotonic,
                          const ConditionWords& shared);
// Where the check of condition variables has found it; before, where the C library's header has it.
std::uint32_t condition_flags(const pthread_cond_t& condition);

} // namespace warren::image
