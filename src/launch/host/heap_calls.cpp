#include "launch/host/heap_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <iterator>
#include <malloc.h>
#include <unistd.h>

#include "launch/mpiexec/heap_arenas.hpp"
#include "runtime/process_ranks/page_moves.hpp"

namespace warren::launch {

namespace {

// Blocks from here on may be given back to the system when they are freed, so that their pages
// become somebody else's (M_MMAP_THRESHOLD).
constexpr std::size_t large_bytes = std::size_t{128} << 10;

void* noted(void* block, std::size_t bytes) {
    if (block != nullptr) {
        warren_page_moves_claim(reinterpret_cast<std::uintptr_t>(block), bytes);
    }
    return block;
}

void let_go(void* block) {
    if (block != nullptr) {
        const std::size_t bytes = malloc_usable_size(block);
        if (bytes >= large_bytes) {
            warren_page_moves_release(block, bytes);
        }
    }
}

void* allocate(std::size_t bytes) {
    return noted(std::malloc(bytes), bytes);
}

void* allocate_zeros(std::size_t count, std::size_t bytes) {
    void* block = std::calloc(count, bytes);
    return noted(block, count * bytes); // it has not overflown, or there is no block
}

void* reallocate(void* block, std::size_t bytes) {
    const std::size_t before = block != nullptr ? malloc_usable_size(block) : 0;
    const auto place = reinterpret_cast<std::uintptr_t>(block);
    let_go(block);
    void* made = std::realloc(block, bytes);
    if (made == nullptr && bytes != 0 && place != 0) {
        warren_page_moves_claim(place, before); // it is as it was
    }
    return noted(made, bytes);
}

void* reallocate_array(void* block, std::size_t count, std::size_t bytes) {
    std::size_t all = 0;
    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return nullptr;
    }
    return reallocate(block, all);
}

void* allocate_aligned(std::size_t alignment, std::size_t bytes) {
    return noted(std::aligned_alloc(alignment, bytes), bytes);
}

void* allocate_at_multiple(std::size_t alignment, std::size_t bytes) {
    return noted(memalign(alignment, bytes), bytes);
}

int allocate_by_posix(void** block, std::size_t alignment, std::size_t bytes) {
    const int error = posix_memalign(block, alignment, bytes);
    if (error == 0) {
        static_cast<void>(noted(*block, bytes));
    }
    return error;
}

void* allocate_at_page(std::size_t bytes) {
    return allocate_at_multiple(static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), bytes);
}

void* allocate_pages(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    if (bytes > SIZE_MAX - page) {
        errno = ENOMEM;
        return nullptr;
    }
    return allocate_at_multiple(page, std::max<std::size_t>((bytes + page - 1) / page, 1) * page);
}

void release(void* block) {
    let_go(block);
    std::free(block);
}

// The process's limit of mappings, or the kernel's default when it can't be read.
std::uint64_t mappings_limit() {
    constexpr std::uint64_t usual = 65530;
    char text[32] = "";
    const int file = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    return got > 0 ? std::strtoull(text, nullptr, 10) : usual;
}

template <typename Function>
void* erase(Function* function) {
    return reinterpret_cast<void*>(function);
}

} // namespace

void prepare_heaps(std::uint32_t ranks) {
    mallopt(M_ARENA_MAX, heap_arenas(ranks, mappings_limit()));
}

std::span<const warren_image_binding> heap_bindings() {
    static const warren_image_binding bindings[] = {
        {"aligned_alloc", erase(allocate_aligned)},
        {"calloc", erase(allocate_zeros)},
        {"free", erase(release)},
        {"malloc", erase(allocate)},
        {"memalign", erase(allocate_at_multiple)},
        {"posix_memalign", erase(allocate_by_posix)},
        {"pvalloc", erase(allocate_pages)},
        {"realloc", erase(reallocate)},
        {"reallocarray", erase(reallocate_array)},
        {"valloc", erase(allocate_at_page)},
    };
    return bindings;
}

} // namespace warren::launch
