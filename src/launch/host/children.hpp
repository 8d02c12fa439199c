// Children of ranks: who waits for any child gets one of its own, not one of another rank. A child
// belongs to the thread that made it: another thread of the rank must name it to wait for it.
// Thread rule: any thread.
#pragma once

#include <span>

#include "warren/image.h"

namespace warren::launch {

// What programs call instead of the C library's functions that wait for children.
std::span<const warren_image_binding> child_bindings();

} // namespace warren::launch
