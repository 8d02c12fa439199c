// Calls by which programs of fibres use a descriptor that they name: 0, 1 and 2 are the rank's own
// (standard_streams.hpp), and fileno tells these numbers.
//
// Thread rule: any thread.
#pragma once

#include <span>

#include "warren/image.h"

namespace warren::launch {

// Replacements for the C library's functions.
std::span<const warren_image_binding> descriptor_bindings();

} // namespace warren::launch
