// The C API of allocations (warren/memory.h).
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/page.hpp"
#include "memory/attributes/criteria.hpp"
#include "memory/attributes/report.hpp"
#include "memory/attributes/targets.hpp"
#include "memory/heap/allocator.hpp"
#include "memory/heap/numa.hpp"

#define WARREN_API extern "C" [[gnu::visibility("default")]]

using warren::Error;
using warren::fail;
using warren::page_bytes;
using warren::memory::Heap;
using warren::memory::report;

namespace {

// Ends a call without memory: keeps the sentence, sets errno.
[[gnu::cold, gnu::noinline]] void* none(Error error) {
    const int code = report(error);
    switch (code) {
    case WARREN_MEM_ERR_ARG:
    case WARREN_MEM_ERR_ATTRIBUTE:
    case WARREN_MEM_ERR_NO_VALUE:
    case WARREN_MEM_ERR_NO_TARGET:
    case WARREN_MEM_ERR_MACHINE:
        errno = EINVAL;
        break;
    case WARREN_MEM_ERR_SYSTEM:
        errno = EPERM;
        break;
    default:
        errno = ENOMEM;
    }
    return nullptr;
}

[[gnu::cold, gnu::noinline]] void* none_of(std::size_t bytes, const Heap& heap) {
    if (errno == EPERM) {
        return none(fail(WARREN_MEM_ERR_SYSTEM,
                         "the system forbids to place memory on NUMA nodes (mbind: a filter of the "
                         "container)"));
    }
    const warren::memory::Kind& kind = heap.kind();
    const bool strict = kind.policy == warren::memory::Policy::strict;
    char pages[64] = "";
    if (kind.reserved_shift != 0) {
        std::snprintf(pages, sizeof pages, "the free pages of %zu KiB in the reserve of ",
                      std::size_t{1} << (kind.reserved_shift - 10));
    }
    return none(fail(WARREN_MEM_ERR_FULL, "%zu bytes do not fit %s%s %d%s", bytes, pages,
                     strict ? "node" : "any of the nodes from", kind.targets[0],
                     strict && kind.equals == 1 ? "" : " and the others that the criteria allow"));
}

template <typename Allocate>
inline void* allocated(std::size_t bytes, const warren_mem_criteria* criteria,
                       const Allocate& allocate) {
    Heap* heap = nullptr;
    if (Error error = warren::memory::heap_for(criteria, heap)) [[unlikely]] {
        return none(error);
    }
    void* block = allocate(*heap);
    return block != nullptr ? block : none_of(bytes, *heap);
}

[[gnu::noinline]] void* allocate_anew(std::size_t bytes, const warren_mem_criteria* criteria) {
    return allocated(bytes, criteria,
                     [=](Heap& heap) { return warren::memory::allocate(heap, bytes); });
}

} // namespace

WARREN_API void* warren_mem_alloc(size_t bytes, const warren_mem_criteria* criteria) {
    // The usual case needs no call: known criteria, the same heap anywhere, and a block that the
    // thread has.
    const warren::memory::KnownHeap* known = warren::memory::known_anywhere(criteria);
    if (known != nullptr) [[likely]] {
        void* block = take_kept(*known->cache, warren::memory::class_of_any(bytes));
        if (block != nullptr) [[likely]] {
            return block;
        }
    }
    return allocate_anew(bytes, criteria);
}

WARREN_API void* warren_mem_alloc_aligned(size_t alignment, size_t bytes,
                                          const warren_mem_criteria* criteria) {
    if (!std::has_single_bit(alignment)) {
        return none(fail(WARREN_MEM_ERR_ARG,
                         "warren_mem_alloc_aligned: alignment = %zu is no power of two",
                         alignment));
    }
    return allocated(bytes, criteria, [=](Heap& heap) {
        return warren::memory::allocate_aligned(heap, alignment, bytes);
    });
}

WARREN_API void* warren_mem_realloc(void* block, size_t bytes,
                                    const warren_mem_criteria* criteria) {
    if (block == nullptr) {
        return warren_mem_alloc(bytes, criteria);
    }
    Heap* heap = warren::memory::heap_of(block);
    if (heap == nullptr) {
        return none(fail(WARREN_MEM_ERR_ARG, "warren_mem_realloc: %p is no block", block));
    }
    void* moved = warren::memory::reallocate(block, bytes);
    return moved != nullptr ? moved : none_of(bytes, *heap);
}

WARREN_API void warren_mem_free(void* block) {
    if (!warren::memory::keep_usual(block)) [[unlikely]] {
        warren::memory::deallocate_unusual(block);
    }
}

WARREN_API size_t warren_mem_usable_size(const void* block) {
    return warren::memory::usable_bytes(block);
}

WARREN_API void* warren_mem_move(void* block, const warren_mem_criteria* criteria) {
    const std::size_t bytes = warren::memory::usable_bytes(block);
    if (bytes == 0) {
        return none(fail(WARREN_MEM_ERR_ARG, "warren_mem_move: %p is no block", block));
    }
    return allocated(bytes, criteria,
                     [=](Heap& heap) { return warren::memory::move(block, heap); });
}

WARREN_API void warren_mem_trim(void) {
    warren::memory::trim();
}

WARREN_API int warren_mem_where(const void* address, size_t bytes, size_t capacity, int* nodes,
                                size_t* count) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address) / page_bytes;
    if (address == nullptr || bytes == 0 || bytes > SIZE_MAX - page_bytes ||
        reinterpret_cast<std::uintptr_t>(address) > SIZE_MAX - page_bytes - bytes) {
        return report(fail(WARREN_MEM_ERR_ARG, "warren_mem_where: %zu bytes at %p are no memory",
                           bytes, address));
    }
    if (nodes == nullptr && capacity != 0) {
        return report(fail(WARREN_MEM_ERR_ARG, "warren_mem_where: nodes is null"));
    }
    const std::size_t pages =
        (reinterpret_cast<std::uintptr_t>(address) + bytes - 1) / page_bytes - begin + 1;
    if (count != nullptr) {
        *count = pages;
    }
    if (!warren::memory::nodes_of_pages(reinterpret_cast<const void*>(begin * page_bytes),
                                        std::min(pages, capacity), nodes)) {
        return report(fail(WARREN_MEM_ERR_SYSTEM, "the system does not say where pages are: %s",
                           std::strerror(errno)));
    }
    return WARREN_MEM_SUCCESS;
}
