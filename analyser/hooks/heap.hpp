// The memory of the recorder in the program: none of the program's, whose malloc may be in the
// middle of something when an access is recorded, and is itself followed. The operators new and
// delete of this library are here.
//
// Pieces of powers of two from a few large stretches, which are kept. Thread rule: any thread; one
// lock, within which nothing else is asked for.
#pragma once

#include <cstddef>

namespace warren::locality::hooks {

void* allocate(std::size_t bytes); // null: the kernel gives none
void release(void* memory, std::size_t bytes);

// Around a fork, so that the child finds it whole.
void lock_heap();
void unlock_heap();

} // namespace warren::locality::hooks
