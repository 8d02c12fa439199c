// Functions and variables of the C library whose state all images share: what of its interface has
// no substitute, by the table beside (interface/table.tsv, made by interface/make.py).
//
// Thread rule: constant tables.
#pragma once

#include <cstddef>

namespace warren::image {

// The names in the table, in the order of strcmp; null behind the last.
const char* stateful_call_name(std::size_t index);
// The state that all images share when a program uses the function `name` ("the place in the user
// database"); null when nothing is.
const char* shared_state_of(const char* name);
// Whether the function returns an error, because what it sets is all images'.
bool is_refused_call(const char* name);
// Describes a variable of the C library that all images share; null: the variable is not the C
// library's, or is an image's own, or constant.
const char* shared_variable_state_of(const char* name);

} // namespace warren::image
