// The children that a rank has made: its waits are for those, and not for other ranks' children.
//
// Of a thread the kernel knows its children; those of fibres are noted when they are made, as
// fibres move among kernel threads, and who waits for them lets others run. Thread rule: any
// thread.
#pragma once

#include <cstdint>
#include <span>

#include "warren/image.h"

namespace warren::launch {

// What programs of threads call instead of the C library's wait and its kin.
std::span<const warren_image_binding> child_bindings();

// The same for fibres, with what makes children; prepare_children once, before there are ranks.
void prepare_children(std::uint32_t ranks);
std::span<const warren_image_binding> fibre_child_bindings();

} // namespace warren::launch
