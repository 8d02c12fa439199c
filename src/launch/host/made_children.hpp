// The functions by which ranks that share a process make children: the host records whose they are.
// Thread rule: any thread; prepare_making_children once, before there are ranks.
#pragma once

#include <span>

#include "warren/image.h"

namespace warren::launch {

void prepare_making_children(bool are_fibres);

// Replacements for the C library's functions.
std::span<const warren_image_binding> made_child_bindings();
std::span<const warren_image_binding> vfork_bindings(bool fibres);

} // namespace warren::launch
