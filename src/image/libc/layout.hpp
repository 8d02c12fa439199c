// Layout: what this room and the fibres know of the C library's insides, compared with the C
// library that is there, before the first image.
//
// Thread rule: register_host, once.
#pragma once

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

} // namespace warren::image
