// What a thread keeps of the heaps: free blocks, per heap and size class, that it hands out and
// takes back without a lock. It exchanges them with the heap in batches, and gives all back when it
// ends. Thread rule: everything is the calling thread's own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/heaps.hpp"

namespace warren::memory {

struct ThreadCache {
    struct List {
        void* head;
        std::uint32_t count;
    };
    Heap* heap;
    List lists[class_count];
};

struct ThreadCaches {
    ThreadCache* of[heap_limit]; // by the heap's index
    ThreadCaches* next;          // while nobody has it
};

// Null until the thread's first allocation or release. One pointer, in the form that is there from
// the thread's start: few bytes, so the library can be loaded late.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit ThreadCaches* own_caches;

// The caller's cache of this heap. Null when there is no memory for it.
ThreadCache* make_cache(Heap& heap);

inline ThreadCache* cache_of(Heap& heap) {
    ThreadCaches* own = own_caches;
    ThreadCache* cache = own != nullptr ? own->of[heap.index()] : nullptr;
    return cache != nullptr ? cache : make_cache(heap);
}

// Fills an empty list and takes a block of it; null and ENOMEM.
void* refill(ThreadCache& cache, unsigned size_class);

// Gives half of a list that has grown beyond what is kept back to the heap.
void shorten(ThreadCache& cache, unsigned size_class);

// Gives everything that the caller keeps back to the heaps.
void flush_caches();

} // namespace warren::memory
