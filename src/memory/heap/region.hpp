// Regions: stretches of address space that heaps manage, and the table that finds the region of an
// address.
//
// A region begins at a multiple of region_bytes. A region of pages is region_bytes long and divided
// into spans; a span is a run of pages with blocks of one size class. A large region is one block.
// The description of a region lies elsewhere, in ordinary memory, so that the user has all of the
// region and look-ups touch none of it. Thread rule: any thread may call find_region and read
// page_class at any time; other members say their rule.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "memory/heap/size_class.hpp"

namespace warren::memory {

class Heap;

inline constexpr std::size_t region_bytes = 2 * 1024 * 1024;
inline constexpr std::size_t region_pages = region_bytes / page_bytes;
inline constexpr std::size_t unit_pages = 64; // placed and given back together; a word of a bitmap
inline constexpr std::size_t unit_bytes = unit_pages * page_bytes;
inline constexpr std::size_t region_units = region_pages / unit_pages;

// Pages with blocks of one class. Under the lock of that class in its heap.
struct Span {
    char* begin;
    std::uint16_t first_page;
    std::uint16_t pages;
    std::uint16_t size_class;
    std::uint16_t used;   // blocks handed out
    std::uint16_t formed; // blocks that have been handed out once: those behind were never touched
    bool listed;          // among its class's spans with free blocks
    const void* taker;    // the thread cache that took blocks last (Heap::take_blocks)
    void* free;           // blocks that came back, linked through their first words
    Span* previous;
    Span* next;
};

// A thread that looks up an address may read the description of another thread's large block while
// that block is freed and the description is used again: then `large` keeps its value, and `begin`
// changes.
struct Region {
    std::atomic<Heap*> heap;  // changes when a large block moves
    std::uint32_t heap_index; // of a region of pages, which stays; of large ones: heap_limit
    bool large;               // for good
    std::atomic<char*> begin; // relaxed: a thread that may use it has found it in the table
    std::size_t bytes;        // usable size; read only for the user of the block
    std::size_t mapped;       // bytes from begin that are mapped

    char* start() const { return begin.load(std::memory_order_relaxed); }
};

// Values of page_class.
inline constexpr std::uint8_t no_block = 0;          // the page is free
inline constexpr std::uint8_t middle_of_block = 255; // nothing begins in it; else 1 + the class

struct PageRegion : Region {
    std::atomic<std::uint8_t> page_class[region_pages];
    std::uint16_t first_page[region_pages]; // of the span that has the page
    // Under the heap's page lock: a bit per page.
    std::uint64_t free_pages[region_units];
    std::uint8_t placed_units; // a bit per unit
    std::uint8_t
        placing_units; // the same: somebody is placing them, and nobody else takes pages there
    bool open;         // in the heap's list of regions with free pages
    PageRegion* previous;
    PageRegion* next;
    Span spans[region_pages]; // by first page
};

// The table: two levels over the 47 bits of a user's address; a leaf spans 16 GiB. Entries are
// stored with release after the region is complete, and loaded with acquire.
inline constexpr std::size_t leaf_entries = std::size_t{1} << 13;
inline constexpr std::size_t root_entries = (std::size_t{1} << 47) / region_bytes / leaf_entries;
struct RegionLeaf {
    std::atomic<Region*> regions[leaf_entries];
};
extern constinit std::atomic<RegionLeaf*> region_root[root_entries];

// The part of the table for the address's 16 GiB, null: nothing of ours has ever been there, or it
// is no user's address. It stays for good.
inline const RegionLeaf* find_leaf(const void* address) {
    const std::size_t slot = reinterpret_cast<std::uintptr_t>(address) / region_bytes;
    return slot < root_entries * leaf_entries
               ? region_root[slot / leaf_entries].load(std::memory_order_acquire)
               : nullptr;
}
// The region that has the address, null: none of ours.
inline Region* find_region(const void* address) {
    const std::size_t slot = reinterpret_cast<std::uintptr_t>(address) / region_bytes;
    const RegionLeaf* leaf = find_leaf(address);
    return leaf != nullptr ? leaf->regions[slot % leaf_entries].load(std::memory_order_acquire)
                           : nullptr;
}

// Maps address space for a region, without memory: `bytes` (a multiple of page_bytes) from a
// multiple of `alignment` (a power of two) and of region_bytes. Null and ENOMEM.
char* map_region(std::size_t bytes, std::size_t alignment);
void unmap_region(char* begin, std::size_t bytes);

// Enters a region in the table, or takes it out. False and ENOMEM when the table can't grow.
bool enter_region(Region& region);
void remove_region(const Region& region);

// Memory of ours beside: zero, never returned to the system; null and ENOMEM. For any thread.
void* take_metadata(std::size_t bytes);

// Lists of spans, and of regions of pages.
template <typename Element>
void push_front(Element*& list, Element& element) {
    element.previous = nullptr;
    element.next = list;
    if (list != nullptr) {
        list->previous = &element;
    }
    list = &element;
}

template <typename Element>
void unlink(Element*& list, Element& element) {
    (element.previous != nullptr ? element.previous->next : list) = element.next;
    if (element.next != nullptr) {
        element.next->previous = element.previous;
    }
}

} // namespace warren::memory
