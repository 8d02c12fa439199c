// Thread caches: free blocks, per heap and size class, that a thread hands out and takes back
// without a lock. A thread exchanges them with the heap in batches and returns all when it ends.
// Thread rule: everything is the calling thread's own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/heap/heaps.hpp"
#include "memory/heap/tuning.hpp"

namespace warren::memory {

struct ThreadCache {
    struct List {
        void* head;
        std::int32_t room;   // for so many more blocks; -1 for a moment
        std::uint32_t limit; // blocks that are kept at most: the class's number, or more on loan

        std::uint32_t count() const {
            return static_cast<std::uint32_t>(static_cast<std::int32_t>(limit) - room);
        }
    };
    Heap* heap;
    std::size_t on_loan;         // bytes of blocks that limits are raised by
    List lists[class_count + 1]; // the last, of what has no class, is always empty
};

// The heap that criteria were found to mean, see targets.hpp.
struct alignas(64) KnownHeap { // found by a shift
    Heap* heap;
    ThreadCache* cache;     // the thread's of this heap
    std::uint64_t criteria; // revisions; no_criteria: nothing is known
    std::uint64_t anywhere; // the same if they mean it wherever the caller runs, else no_criteria
    std::uint64_t machine;
    int processor; // on which the caller ran; -1: on any
};
inline constexpr std::size_t known_heaps = 16;
inline constexpr std::uint64_t no_criteria = UINT64_MAX;

struct ThreadCaches {
    ThreadCache* of[heap_limit + 1]; // by the heap's index; the last, of large regions: null
    KnownHeap known[known_heaps];    // by the criteria's revision, modulo
    // The leaf of the region table that a freed block was found in last: leaves stay.
    std::uintptr_t leaf_number;
    const RegionLeaf* leaf;
    ThreadCaches* next; // while nobody has it
};

// Null until the thread's first allocation. One pointer, in the form that is there from
// the thread's start: few bytes, so the library can be loaded late.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit ThreadCaches* own_caches;

// The caller's caches, made if there are none yet. Null when there is no memory for them, and when
// the thread is at its end.
ThreadCaches* make_caches();

// The caller's cache of this heap. Null as above.
ThreadCache* make_cache(Heap& heap);

inline ThreadCache* cache_of(Heap& heap) {
    ThreadCaches* own = own_caches;
    ThreadCache* cache = own != nullptr ? own->of[heap.index()] : nullptr;
    return cache != nullptr ? cache : make_cache(heap);
}

// The caller's cache of the heap that a region of pages is of, for what it frees. Null as well
// while it has none of any heap: a thread's end, when nobody could take them over any more, frees
// too.
inline ThreadCache* cache_of(const Region& region) {
    ThreadCaches* own = own_caches;
    if (own == nullptr) [[unlikely]] {
        return nullptr;
    }
    ThreadCache* cache = own->of[region.heap_index];
    return cache != nullptr ? cache : make_cache(*region.heap.load(std::memory_order_relaxed));
}

// The word of a free block that marks it as such: who finds mark_for(block) in a block that is
// freed looks whether it is free already.
inline std::uintptr_t& mark_of(void* block) {
    return static_cast<std::uintptr_t*>(block)[1];
}
// Not 0 for any block.
inline std::uintptr_t mark_for(const void* block) {
    return ~reinterpret_cast<std::uintptr_t>(block);
}

// A block that the thread has kept; null: it has none of this class, as of class_count always.
inline void* take_kept(ThreadCache& cache, unsigned size_class) {
    ThreadCache::List& list = cache.lists[size_class];
    void* block = list.head;
    if (block != nullptr) [[likely]] {
        list.head = link_of(block);
        ++list.room;
        mark_of(block) = 0;
    }
    return block;
}

// Fills an empty list and takes a block of it; null and ENOMEM.
void* refill(ThreadCache& cache, unsigned size_class);

// Raises the limit of a list that has grown beyond it, or gives half of it back to the heap.
void shorten(ThreadCache& cache, unsigned size_class);

// Puts a block that lies in the leaf into the thread's cache. False, and nothing has happened: it
// is no block of a class, marked as free, or the caller has no cache of its heap yet.
[[gnu::always_inline]] inline bool keep_in(const ThreadCaches& own, const RegionLeaf& leaf,
                                           void* block) {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const Region* region =
        leaf.regions[address / region_bytes % leaf_entries].load(std::memory_order_acquire);
    if (region == nullptr) [[unlikely]] {
        return false;
    }
    ThreadCache* cache = own.of[region->heap_index];
    if (cache == nullptr) [[unlikely]] { // all large regions as well
        return false;
    }
    const unsigned page_class = static_cast<const PageRegion*>(region)
                                    ->page_class[address / page_bytes % region_pages]
                                    .load(std::memory_order_relaxed);
    const std::uintptr_t mark = mark_for(block);
    if (page_class == no_block || page_class == middle_of_block ||
        address % smallest_block_bytes != 0 || mark_of(block) == mark) [[unlikely]] {
        return false;
    }
    mark_of(block) = mark;
    ThreadCache::List& list = cache->lists[page_class - 1];
    link_of(block) = list.head;
    list.head = block;
    if (--list.room < 0) [[unlikely]] {
        shorten(*cache, page_class - 1);
    }
    return true;
}

// The usual way to free a block: the thread's cache takes it. It is inline, so that it saves no
// registers. False: nothing has happened, for the reasons above or because the block is in another
// leaf of the table than the last one.
[[gnu::always_inline]] inline bool keep_usual(void* block) {
    const ThreadCaches* own = own_caches;
    const std::uintptr_t leaf_number =
        reinterpret_cast<std::uintptr_t>(block) / region_bytes / leaf_entries;
    if (own == nullptr || leaf_number != own->leaf_number) [[unlikely]] {
        return false;
    }
    return keep_in(*own, *own->leaf, block);
}

// Gives everything that the caller keeps back to the heaps.
void flush_caches();

// Bytes that the caller has on loan from a heap, by its index.
std::size_t own_loan(unsigned heap);

// Around fork: nobody is taking or leaving the caches of a thread that has ended.
void lock_spares();
void unlock_spares();

} // namespace warren::memory
