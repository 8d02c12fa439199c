#include "memory/heap/allocator.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "memory/heap/placement.hpp"
#include "memory/heap/reserve.hpp"
#include "memory/heap/thread_cache.hpp"

namespace warren::memory {

namespace {

// Looks a pointer of the program up. The class, or -1 for a large block.
struct Found {
    Region* region;
    int size_class;
};

inline Found find_block(const void* block) {
    Region* region = find_region(block);
    if (region == nullptr) [[unlikely]] {
        return {nullptr, 0};
    }
    const auto offset = static_cast<std::size_t>(static_cast<const char*>(block) - region->start());
    if (region->large) {
        return {offset == 0 ? region : nullptr, -1};
    }
    const unsigned mark = static_cast<PageRegion*>(region)->page_class[offset / page_bytes].load(
        std::memory_order_relaxed);
    if (mark == no_block || mark == middle_of_block || offset % smallest_block_bytes != 0)
        [[unlikely]] {
        return {nullptr, 0};
    }
    return {region, static_cast<int>(mark) - 1};
}

[[gnu::cold, gnu::noinline]] void look_for_second_free(const ThreadCache& cache,
                                                       unsigned size_class, void* block) {
    bool found = cache.heap->is_free(size_class, block);
    for (void* free = cache.lists[size_class].head; free != nullptr && !found;
         free = link_of(free)) {
        found = free == block;
    }
    if (found) {
        abort_misuse("a block was freed twice", block);
    }
}

void* take_class(Heap& heap, unsigned size_class) {
    ThreadCache* cache = cache_of(heap);
    if (cache == nullptr) [[unlikely]] {
        unsigned taken = 0;
        return heap.take_blocks(size_class, 1, &taken, nullptr);
    }
    void* block = take_kept(*cache, size_class);
    if (block == nullptr) {
        block = refill(*cache, size_class);
        if (block != nullptr) {
            mark_of(block) = 0;
        }
    }
    return block;
}

// The largest power of two that divides the block's address, up to the largest alignment that
// anybody asks for.
std::size_t alignment_of(const void* block) {
    constexpr std::uintptr_t most = 1U << 30;
    const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(block) | most;
    return bits & -bits;
}

// Tries to take `bytes`; if the targets are full, once more when what the process keeps is given
// back.
template <typename Take>
inline void* take_or_trim(Heap& heap, std::size_t bytes, const Take& take) {
    void* block = take();
    if (block == nullptr && errno == ENOMEM && !heap.was_refused(bytes)) [[unlikely]] {
        flush_caches();
        trim_heaps();
        const std::uint64_t returned = reserved_pages_returned();
        block = take(); // also where neither gave whole units back: freed parts of them may serve
        if (block == nullptr) {
            heap.remember_refusal(bytes, returned);
            errno = ENOMEM;
        }
    }
    return block;
}

bool too_large(std::size_t bytes) {
    return bytes > static_cast<std::size_t>(PTRDIFF_MAX) / 2; // room for what is rounded up
}

void* grow_large(Region& region, std::size_t bytes) {
    Heap& heap = *region.heap.load(std::memory_order_relaxed);
    // A block that grows once will grow again: a quarter more keeps many small steps from copying
    // it each time.
    const std::size_t ample = region.bytes + region.bytes / 4;
    void* grown = ample > bytes && !too_large(ample) ? heap.take_large(ample, 1) : nullptr;
    if (grown == nullptr) {
        grown = take_or_trim(heap, bytes, [&] { return heap.take_large(bytes, 1); });
    }
    if (grown == nullptr) {
        return nullptr;
    }
    std::memcpy(grown, region.start(), region.bytes);
    Heap::give_large(region);
    return grown;
}

} // namespace

void* allocate(Heap& heap, std::size_t bytes) {
    if (bytes <= class_size_limit && !heap.each_alone()) [[likely]] {
        const unsigned size_class = class_of(bytes);
        return take_or_trim(heap, bytes, [&] { return take_class(heap, size_class); });
    }
    bytes = std::max<std::size_t>(bytes, 1);
    if (too_large(bytes)) {
        errno = ENOMEM;
        return nullptr;
    }
    return take_or_trim(heap, bytes, [&] { return heap.take_large(bytes, 1); });
}

void* allocate_aligned(Heap& heap, std::size_t alignment, std::size_t bytes) {
    if (!std::has_single_bit(alignment)) {
        errno = EINVAL;
        return nullptr;
    }
    if (too_large(bytes) || too_large(alignment)) {
        errno = ENOMEM;
        return nullptr;
    }
    bytes = std::max<std::size_t>(bytes, 1);
    // Blocks of a class begin at multiples of its size, counted from a page.
    if (bytes <= class_size_limit && alignment <= page_bytes && !heap.each_alone()) {
        unsigned size_class = class_of(bytes);
        while (size_class < class_count && size_classes[size_class].bytes % alignment != 0) {
            ++size_class;
        }
        if (size_class < class_count) {
            return take_or_trim(heap, bytes, [&] { return take_class(heap, size_class); });
        }
    }
    return take_or_trim(heap, bytes, [&] { return heap.take_large(bytes, alignment); });
}

namespace {

// Frees a block that keep_usual has refused.
[[gnu::noinline]] bool free_unusual(void* block) {
    // Mostly it is in another leaf than the last one, and as usual apart from that.
    ThreadCaches* own = own_caches;
    const RegionLeaf* leaf = find_leaf(block);
    if (own != nullptr && leaf != nullptr && leaf != own->leaf) {
        own->leaf_number = reinterpret_cast<std::uintptr_t>(block) / region_bytes / leaf_entries;
        own->leaf = leaf;
        if (keep_in(*own, *leaf, block)) {
            return true;
        }
    }
    const Found found = find_block(block);
    if (found.region == nullptr) {
        return false;
    }
    if (found.size_class < 0) {
        Heap::give_large(*found.region);
        return true;
    }
    auto size_class = static_cast<unsigned>(found.size_class);
    ThreadCache* cache = cache_of(*found.region);
    if (cache == nullptr) {
        found.region->heap.load(std::memory_order_relaxed)->give_blocks(size_class, block, 1);
        return true;
    }
    if (mark_of(block) == mark_for(block)) {
        look_for_second_free(*cache, size_class, block);
        mark_of(block) = 0; // the program's own word looks so
    }
    return leaf != nullptr && keep_in(*own_caches, *leaf, block);
}

} // namespace

void deallocate_unusual(void* block) {
    if (!free_unusual(block) && block != nullptr) [[unlikely]] {
        abort_misuse("what was freed is no block, or was freed before", block);
    }
}

void deallocate(void* block) {
    if (!keep_usual(block)) [[unlikely]] {
        deallocate_unusual(block);
    }
}

bool deallocate_ours(void* block) {
    return keep_usual(block) || free_unusual(block);
}

void* reallocate(void* block, std::size_t bytes) {
    const Found found = find_block(block);
    if (found.region == nullptr) {
        errno = EINVAL;
        return nullptr;
    }
    if (too_large(bytes)) {
        errno = ENOMEM;
        return nullptr;
    }
    const std::size_t usable = found.size_class < 0
                                   ? found.region->bytes
                                   : size_classes[static_cast<unsigned>(found.size_class)].bytes;
    // A block that shrinks by less than half stays where it is.
    if (bytes <= usable && (bytes > usable / 2 || usable == smallest_block_bytes)) {
        return block;
    }
    Heap& heap = *found.region->heap.load(std::memory_order_relaxed);
    // So does what has pages of its own in any case, and would get as many.
    if (heap.each_alone() && heap.whole_pages(std::max<std::size_t>(bytes, 1)) == usable) {
        return block;
    }
    if (found.size_class < 0 && bytes > usable) {
        return grow_large(*found.region, bytes);
    }
    void* moved = allocate(heap, bytes);
    if (moved == nullptr) {
        return bytes <= usable ? block : nullptr;
    }
    std::memcpy(moved, block, std::min(bytes, usable));
    deallocate(block);
    return moved;
}

std::size_t usable_bytes(const void* block) {
    const Found found = find_block(block);
    if (found.region == nullptr) {
        return 0;
    }
    return found.size_class < 0 ? found.region->bytes
                                : size_classes[static_cast<unsigned>(found.size_class)].bytes;
}

Heap* heap_of(const void* block) {
    const Found found = find_block(block);
    return found.region != nullptr ? found.region->heap.load(std::memory_order_relaxed) : nullptr;
}

void* move(void* block, Heap& to) {
    const Found found = find_block(block);
    if (found.region == nullptr) {
        errno = EINVAL;
        return nullptr;
    }
    Heap& from = *found.region->heap.load(std::memory_order_relaxed);
    if (&from == &to) {
        return block;
    }
    const bool ordinary = from.kind().reserved_shift == 0 && to.kind().reserved_shift == 0;
    if (found.size_class < 0 && ordinary) {
        if (!migrate(from.kind(), to.kind(), found.region->start(), found.region->bytes)) {
            return nullptr;
        }
        found.region->heap.store(&to, std::memory_order_relaxed);
        return block;
    }
    const std::size_t bytes = usable_bytes(block);
    // Blocks may be aligned as their address is; the class of the same size has it. Large ones are
    // aligned to a region at least.
    void* moved = found.size_class >= 0 ? allocate(to, bytes) : take_or_trim(to, bytes, [&] {
        return to.take_large(bytes, alignment_of(block));
    });
    if (moved == nullptr) {
        return nullptr;
    }
    std::memcpy(moved, block, bytes);
    deallocate(block);
    return moved;
}

void trim() {
    flush_caches();
    trim_heaps();
}

} // namespace warren::memory
