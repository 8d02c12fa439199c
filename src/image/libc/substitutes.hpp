// Substitutes: functions and variables that images get in place of the C library's, because they
// concern what an image has of its own and the C library has once: the end of a process, its
// threads and modules, its streams, its environment, the state of functions that have some.
//
// A program's own definition of such a name comes before a substitute, as it would come before the
// C library's. Substitutes find their image by the calling thread. Thread rule: the table is
// constant; Substitutions is its image's.
#pragma once

#include "image/libc/state.hpp"

namespace warren::image {

// The names of the functions, in the order of strcmp; null behind the last.
const char* substitute_name(std::size_t index);
// The function that images get by this name, or null.
void* find_substitute_function(const char* name);
// The name by which images get this function, or null.
const char* find_substitute_name(const void* function);
// Where the place of the image's variable of this name is noted, or null.
void** find_substitute_variable(LibcState& state, const char* name);

} // namespace warren::image
