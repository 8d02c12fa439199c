// Functions of the C library that keep state in it. The C library is shared by all images, so
// without a private version of such a function the images of a process disturb each other.
//
// Thread rule: constant tables.
#pragma once

#include <cstddef>

namespace warren::image {

// The names of these functions, in the order of strcmp; null behind the last.
const char* stateful_call_name(std::size_t index);
// The state that all images share when a program uses the function `name` ("the generator of random
// numbers"); null when nothing is.
const char* shared_state_of(const char* name);

} // namespace warren::image
