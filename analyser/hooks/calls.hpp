// Where the program has called one of this library's functions from.
#pragma once

#include <cstdint>

// The instruction that does what is counted has the line of the call before it.
#define WARREN_INSTRUCTION (reinterpret_cast<std::uint64_t>(__builtin_return_address(0)) - 1)
