// Whether the program has functions of its own for those that we take the place of. Thread rule:
// any thread, when libraries are loaded; may allocate.
#pragma once

namespace warren::memory {

// malloc or free.
bool has_own_malloc();

// Any form of operator new or delete.
bool has_own_operators();

} // namespace warren::memory
