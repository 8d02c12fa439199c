// The place from which the program has called one of this library's functions.
#pragma once

#include <cstdint>

// The counted access has the source line of the call before it.
#define WARREN_INSTRUCTION (reinterpret_cast<std::uint64_t>(__builtin_return_address(0)) - 1)
