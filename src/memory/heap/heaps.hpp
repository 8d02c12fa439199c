// The heaps of the process: one per kind of memory that is asked for. They never end, so a
// reference holds for good. Thread rule: any thread at any time; a fork waits until heaps are
// whole.
#pragma once

#include "memory/heap/heap.hpp"

namespace warren::memory {

// As many as orderings of many memories from many places ask for; each costs 4 kB, and 8 bytes of
// address space per thread.
inline constexpr unsigned heap_limit = 4096;

// The heap of this kind, made if there is none yet. Null and errno: ENOMEM; EAGAIN: heap_limit
// kinds are in use; EINVAL: the kind makes no sense, or the process may use none of the targets
// that must serve.
Heap* heap_of_kind(const Kind& kind);

// Has forks wait until heaps are whole, as the first heap has them: for who must be registered
// before others (handlers of forks run in the order of that). May allocate. False: there is no
// memory.
bool guard_forks();

// How many heaps there are; their indices count from 0.
unsigned heaps_made();

// Gives what is idle in all heaps back to the system. Returns whether there was any.
bool trim_heaps();

} // namespace warren::memory
