// Children of ranks: a rank's wait calls report its own children only, never another rank's.
//
// The kernel knows which thread made a child. Fibres move among kernel threads, so the host records
// their children when they are made, and a fibre that waits lets other fibres run. Thread rule: any
// thread.
#pragma once

#include <cstdint>
#include <span>

#include "warren/image.h"

namespace warren::launch {

// Replacements for the C library's wait functions, for thread ranks.
std::span<const warren_image_binding> child_bindings();

// Replacements for fibres: the wait functions and those that make children. Call prepare_children
// once, before there are ranks.
void prepare_children(std::uint32_t ranks);
std::span<const warren_image_binding> fibre_child_bindings();

} // namespace warren::launch
