// A heap: all memory of one kind in the process, shared by its threads.
//
// Blocks up to class_size_limit come from spans of regions; threads keep some (thread_cache.hpp)
// and exchange them with the heap in batches. Larger ones have a region each. Memory is placed when
// a block first needs it, in units of 256 KiB (2 MiB for huge pages), and given back when a unit is
// free and the heap has a reserve beside.
//
// Why not an existing allocator: jemalloc's arenas with hooks do this, but its thread-local data
// (2.6 kB) must be there when the process starts, so that a library with it can't be loaded later
// (by Python, or a plug-in), and placing must be able to fail per piece.
//
// Thread rule: any thread at any time. A thread that adds a span to a class has a turn of growth
// (growth.hpp) from before it searches pages until the span is listed. Locks are taken in the order
// growth, class, pages. While memory is placed, none is held but growth by a thread that tries
// alone. Around fork the forking thread holds all locks. A child of fork loses the blocks that
// other threads had taken or kept. Functions report errors by null and errno.
//
// In three files: heap.cpp has blocks and spans, heap_pages.cpp their pages, heap_large.cpp blocks
// with a region of their own.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "memory/heap/growth.hpp"
#include "memory/heap/kind.hpp"
#include "memory/heap/region.hpp"

namespace warren::memory {

class Heap {
  public:
    Heap(const Kind& kind, unsigned index) : kind_(kind), index_(index) {}

    const Kind& kind() const { return kind_; }
    // Whether blocks have pages of their own whatever their size: pages that are larger than a
    // region are not shared.
    bool each_alone() const { return page_size() > region_bytes; }
    unsigned index() const { return index_; }

    // Takes up to `count` blocks of the class, linked through their first words; *taken says how
    // many. Null and ENOMEM if there is none. Prefers spans from which the same `taker` (a thread's
    // cache, or null) took blocks last.
    void* take_blocks(unsigned size_class, unsigned count, unsigned* taken, const void* taker);

    // Takes back the first `count` blocks of a list, all of the class and of this heap. Returns the
    // rest of the list.
    void* give_blocks(unsigned size_class, void* list, unsigned count);

    // Whether the block is in its span's list of free blocks. For finding double frees.
    bool is_free(unsigned size_class, const void* block);

    // A block with a region of its own, filled with zeros; bytes > 0, alignment a power of two.
    void* take_large(std::size_t bytes, std::size_t alignment);
    static void give_large(Region& region);

    // Whether the system's reserve had no pages for a block of so many bytes a moment ago; and the
    // note that it had none, after all attempts. `returned`: reserved_pages_returned() before the
    // last attempt.
    bool was_refused(std::size_t bytes) const { return refuses(placed_at_once(bytes)); }
    void remember_refusal(std::size_t bytes, std::uint64_t returned);

    // `bytes` in whole pages.
    std::size_t whole_pages(std::size_t bytes) const {
        return (bytes + page_size() - 1) / page_size() * page_size();
    }

    // For threads that keep large blocks beyond what every thread may keep: takes `bytes` of the
    // heap's loan. False if other threads have taken all of it.
    bool lend(std::size_t bytes);
    void take_loan_back(std::size_t bytes) { lent_.fetch_sub(bytes, std::memory_order_relaxed); }
    // In a child of fork: the calling thread's loan is the only one that is left.
    void keep_loan(std::size_t bytes) { lent_.store(bytes, std::memory_order_relaxed); }
    std::size_t lent_bytes() const { return lent_.load(std::memory_order_relaxed); }

    // Gives all units that are free back to the system. Returns whether there was any.
    bool trim();

    // For the handlers around fork: keeps all of the heap as it is.
    void lock();
    void unlock();
    static void lock_large(); // the lock of the large blocks of all heaps
    static void unlock_large();

    // Bytes that are placed in regions of pages (not large blocks).
    std::size_t placed_bytes();

  private:
    struct Class {
        std::mutex mutex;
        Span* spans = nullptr;      // with free blocks
        std::uint64_t refusals = 0; // how often a thread that tried alone got no memory
    };
    struct Batch {
        unsigned size_class;
        unsigned wanted;
        const void* taker;
        void* list = nullptr;
        unsigned taken = 0;
    };

    Span* find_span(unsigned size_class, const void* taker, Span** other);
    void take_listed(Batch& batch, bool any);
    void take_new(Batch& batch);
    void take_alone(Batch& batch, std::uint64_t refusals);
    Span* new_span(unsigned size_class);
    bool place_span(PageRegion& region, std::size_t first, std::size_t pages, unsigned missing);
    void end_span(PageRegion& region, Span& span);
    PageRegion* find_pages(std::size_t pages, std::size_t* first);
    PageRegion* new_region();
    void take_pages(PageRegion& region, std::size_t first, std::size_t pages);
    void free_pages(PageRegion& region, std::size_t first, std::size_t pages);
    unsigned unplaced_units(const PageRegion& region, std::size_t first, std::size_t pages) const;
    unsigned place_units(const PageRegion& region, unsigned missing);
    void displace_free_units(PageRegion& region, std::size_t first_unit, std::size_t last_unit,
                             std::size_t keep);
    bool refuses(std::size_t placed) const;
    std::size_t placed_at_once(std::size_t bytes) const; // for a block of so many bytes
    std::size_t units_together() const {                 // that are placed at once
        return kind_.page_size == PageSize::huge
                   ? region_units
                   : std::max(page_size() / unit_bytes, std::size_t{1});
    }
    std::size_t page_size() const {
        return kind_.reserved_shift != 0 ? std::size_t{1} << kind_.reserved_shift : page_bytes;
    }

    const Kind kind_;
    const unsigned index_;
    Growth growth_;
    Class classes_[class_count];
    std::mutex pages_mutex_;
    PageRegion* open_ = nullptr; // regions with free pages
    std::size_t used_pages_ = 0;
    std::size_t idle_pages_ = 0;      // placed and free
    std::size_t more_idle_pages_ = 0; // that may be kept beyond the usual
    std::uint64_t more_idle_since_ns_ = 0;
    std::uint64_t displaced_ns_ = 0; // when pages were last given back as too many

    std::atomic<std::size_t> lent_ = 0; // bytes: relaxed, a sum

    // A hint: relaxed.
    std::atomic<std::uint64_t> refused_until_ns_ = 0; // monotonic clock
    std::atomic<std::size_t> refused_bytes_ = 0;
    std::atomic<std::uint64_t> returned_then_ = 0;
};

// The link between blocks in lists.
inline void*& link_of(void* block) {
    return *static_cast<void**>(block);
}

// Ends the process with a message: the program has given us what it may not, or has written where
// it may not.
[[noreturn, gnu::cold]] void abort_misuse(const char* what, const void* block);

} // namespace warren::memory
