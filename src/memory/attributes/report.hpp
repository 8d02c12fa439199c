// How the C API of this room ends: a code, and the sentence that warren_mem_error gives.
// Thread rule: each thread has its own last sentence.
#pragma once

#include "base/error.hpp"

namespace warren::memory {

// The code of an error, WARREN_MEM_SUCCESS for none; keeps the sentence.
int report(Error error);

// Reports that `argument` of `function` is null.
int no_object(const char* function, const char* argument);

} // namespace warren::memory
