// Blocks of a heap that have a region of their own, and what it remembers of a reserve that was
// used up.
#include <algorithm>
#include <cerrno>
#include <new>

#include "base/futex.hpp"
#include "memory/heap/heaps.hpp"
#include "memory/heap/placement.hpp"
#include "memory/heap/reserve.hpp"
#include "memory/heap/tuning.hpp"

namespace warren::memory {

namespace {

// Descriptions of large blocks; those of freed blocks are kept for the next ones.
struct LargeRegions {
    std::mutex mutex;
    struct Slot {
        Region region; // first: a region's address is its slot's
        Slot* next;
    };
    Slot* free = nullptr;

    Region* take() {
        const std::lock_guard hold(mutex);
        if (free == nullptr) {
            constexpr std::size_t bytes = 16 * page_bytes;
            auto* slots = static_cast<Slot*>(take_metadata(bytes));
            if (slots == nullptr) {
                return nullptr;
            }
            for (std::size_t i = 0; i < bytes / sizeof(Slot); ++i) {
                Slot* slot = new (slots + i) Slot{};
                slot->region.large = true;
                slot->region.heap_index = heap_limit;
                slot->next = free;
                free = slot;
            }
        }
        Slot* slot = free;
        free = slot->next;
        return &slot->region;
    }

    void give(Region& region) {
        auto* slot = reinterpret_cast<Slot*>(&region);
        const std::lock_guard hold(mutex);
        slot->next = free;
        free = slot;
    }
};
constinit LargeRegions large_regions;

} // namespace

void* Heap::take_large(std::size_t bytes, std::size_t alignment) {
    const std::size_t size = whole_pages(bytes);
    if (refuses(size)) {
        errno = ENOMEM;
        return nullptr;
    }
    Region* region = large_regions.take();
    if (region == nullptr) {
        return nullptr;
    }
    char* begin = map_region(size, std::max(alignment, page_size()));
    if (begin != nullptr) {
        region->heap.store(this, std::memory_order_relaxed);
        region->begin.store(begin, std::memory_order_relaxed);
        region->bytes = size;
        region->mapped = size;
        advise_page_size(kind_, begin, size, true);
        if (place(kind_, begin, size)) {
            if (enter_region(*region)) {
                return begin;
            }
            displace(kind_, begin, size);
        }
        unmap_region(begin, size);
    }
    large_regions.give(*region);
    return nullptr;
}

void Heap::give_large(Region& region) {
    remove_region(region);
    displace(region.heap.load(std::memory_order_relaxed)->kind(), region.start(), region.mapped);
    unmap_region(region.start(), region.mapped);
    large_regions.give(region);
}

void Heap::lock_large() {
    large_regions.mutex.lock();
}

void Heap::unlock_large() {
    large_regions.mutex.unlock();
}

// A hint: what others give back to the reserve meanwhile is found a moment later.
bool Heap::refuses(std::size_t bytes) const {
    if (kind_.reserved_shift == 0) {
        return false;
    }
    const std::uint64_t until = refused_until_ns_.load(std::memory_order_relaxed);
    return until != 0 && bytes >= refused_bytes_.load(std::memory_order_relaxed) &&
           returned_then_.load(std::memory_order_relaxed) == reserved_pages_returned() &&
           monotonic_ns() < until;
}

void Heap::remember_refusal(std::size_t bytes, std::uint64_t returned) {
    if (kind_.reserved_shift == 0) {
        return;
    }
    refused_bytes_.store(placed_at_once(bytes), std::memory_order_relaxed);
    returned_then_.store(returned, std::memory_order_relaxed);
    refused_until_ns_.store(monotonic_ns() + refused_for_ns, std::memory_order_relaxed);
}

std::size_t Heap::placed_at_once(std::size_t bytes) const {
    return bytes <= class_size_limit && !each_alone() ? units_together() * unit_bytes
                                                      : whole_pages(bytes);
}

} // namespace warren::memory
