#include "memory/heap/region.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/mman.h>

namespace warren::memory {

constinit std::atomic<RegionLeaf*> region_root[root_entries];

namespace {

std::size_t slot_of(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) / region_bytes;
}

void* map(std::size_t bytes) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped != MAP_FAILED ? mapped : nullptr;
}

RegionLeaf* leaf_at(std::size_t slot) {
    std::atomic<RegionLeaf*>& entry = region_root[slot / leaf_entries];
    RegionLeaf* leaf = entry.load(std::memory_order_acquire);
    if (leaf == nullptr) {
        auto* made = static_cast<RegionLeaf*>(map(sizeof(RegionLeaf)));
        if (made == nullptr) {
            return nullptr;
        }
        if (entry.compare_exchange_strong(leaf, made, std::memory_order_acq_rel)) {
            leaf = made;
        } else {
            munmap(made, sizeof(RegionLeaf)); // another thread was first
        }
    }
    return leaf;
}

} // namespace

char* map_region(std::size_t bytes, std::size_t alignment) {
    alignment = std::max(alignment, region_bytes);
    if (bytes > SIZE_MAX - alignment) {
        errno = ENOMEM;
        return nullptr;
    }
    const std::size_t whole = bytes + alignment;
    auto* mapped = static_cast<char*>(map(whole));
    if (mapped == nullptr) {
        errno = ENOMEM;
        return nullptr;
    }
    const std::size_t lead = -reinterpret_cast<std::uintptr_t>(mapped) & (alignment - 1);
    if (lead != 0) {
        munmap(mapped, lead);
    }
    munmap(mapped + lead + bytes, whole - lead - bytes);
    return mapped + lead;
}

void unmap_region(char* begin, std::size_t bytes) {
    const int saved = errno;
    munmap(begin, bytes);
    errno = saved;
}

bool enter_region(Region& region) {
    const std::size_t first = slot_of(region.start());
    const std::size_t last = slot_of(region.start() + region.mapped - 1);
    for (std::size_t slot = first; slot <= last; ++slot) {
        if (slot >= root_entries * leaf_entries || leaf_at(slot) == nullptr) {
            errno = ENOMEM;
            return false;
        }
    }
    for (std::size_t slot = first; slot <= last; ++slot) {
        leaf_at(slot)->regions[slot % leaf_entries].store(&region, std::memory_order_release);
    }
    return true;
}

void remove_region(const Region& region) {
    const std::size_t first = slot_of(region.start());
    const std::size_t last = slot_of(region.start() + region.mapped - 1);
    for (std::size_t slot = first; slot <= last; ++slot) {
        leaf_at(slot)->regions[slot % leaf_entries].store(nullptr, std::memory_order_release);
    }
}

void* take_metadata(std::size_t bytes) {
    // Large pieces only (regions, heaps, caches of threads): a mapping each is no waste, as pages
    // of it that nobody touches take no memory.
    void* taken = map((bytes + page_bytes - 1) / page_bytes * page_bytes);
    if (taken == nullptr) {
        errno = ENOMEM;
    }
    return taken;
}

} // namespace warren::memory
