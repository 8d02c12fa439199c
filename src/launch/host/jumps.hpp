// Masks that sigsetjmp saves and siglongjmp restores, of fibres: the C library's functions know the
// kernel's only, which is the worker's. A jump out of a handler leaves what that blocks blocked for
// its fibre, and not for the worker.
//
// Thread rule: any thread; of one that is no fibre the kernel's mask is noted.
#pragma once

#include <span>

#include "warren/image.h"

namespace warren::launch {

// Replacements for the C library's functions; the first for fibres.
std::span<const warren_image_binding> set_jump_bindings();
std::span<const warren_image_binding> jump_bindings();

} // namespace warren::launch
