// The heaps of the process: one per kind of memory that is asked for. They never end, so a
// reference holds for good. Thread rule: any thread at any time; a fork waits until heaps are
// whole.
#pragma once

#include "memory/heap.hpp"

namespace warren::memory {

inline constexpr unsigned heap_limit = 256;

// The heap of this kind, made if there is none yet. Null and errno: ENOMEM; EAGAIN: heap_limit
// kinds are in use; EINVAL: the kind makes no sense, or the process may use none of the targets
// that must serve.
Heap* heap_of_kind(const Kind& kind);

// Gives what is idle in all heaps back to the system. Returns whether there was any.
bool trim_heaps();

} // namespace warren::memory
