// The allocator: blocks of heaps, as malloc's family has them. Blocks are aligned to 16 bytes at
// least and found by their address alone. Thread rule: any thread at any time; a block may be freed
// by another thread than the one that it was made for. Errors are null (or as said) and errno. What
// the program may not do (free what is free, or what is not ours) ends it with a message, where it
// is seen.
#pragma once

#include <cstddef>

#include "memory/heap/heap.hpp"

namespace warren::memory {

// A block of `bytes`, 0 counts as 1. ENOMEM: the kind's targets have no room; EPERM: the kind
// demands places and the system forbids to place memory.
void* allocate(Heap& heap, std::size_t bytes);

// A block whose address is a multiple of `alignment`. EINVAL: `alignment` is no power of two. Other
// errors are those of allocate().
void* allocate_aligned(Heap& heap, std::size_t alignment, std::size_t bytes);

// Null is nothing to free.
void deallocate(void* block);
// Frees a block that keep_usual (thread_cache.hpp) has refused.
void deallocate_unusual(void* block);
// Frees a block of a heap. False: the block is no heap's, or null, and nothing has been done.
bool deallocate_ours(void* block);

// The block with a new size, in the same heap; the old one is gone, unless null is returned.
// EINVAL: it is none of ours.
void* reallocate(void* block, std::size_t bytes);

// Bytes that the block has, at least as many as asked for; 0 for null and for what is not ours.
std::size_t usable_bytes(const void* block);

// The heap that a block is of, null: none of ours.
Heap* heap_of(const void* block);

// The block's contents in memory of another heap. One of more than class_size_limit bytes keeps its
// address, and its pages are moved; smaller ones share pages with others and are copied, and so is
// what has or gets pages of the system's reserve. On failure
// (ENOMEM, EPERM, EINVAL) null, and the block is as it was.
void* move(void* block, Heap& to);

// Gives what the calling thread and the heaps keep in reserve back to the system.
void trim();

} // namespace warren::memory
