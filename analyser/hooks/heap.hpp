// Memory of the recorder in the program. It can't use the program's malloc, which may be in the
// middle of something when an access is recorded, and which is followed. This library's operators
// new and delete are here.
//
// Blocks are powers of two, cut from a few large stretches that are never returned. Thread rule:
// any thread; one lock, and its holder takes no other.
#pragma once

#include <cstddef>

namespace warren::locality::hooks {

void* allocate(std::size_t bytes); // null: the kernel gives none
void release(void* memory, std::size_t bytes);

// Called around a fork, so that the child finds a consistent heap.
void lock_heap();
void unlock_heap();

} // namespace warren::locality::hooks
