// The malloc family as programs call it; the standard library's operator new calls it, too. A
// block's end is recorded before it is freed, and its beginning has the time before it was made. So
// malloc's own writes belong to the block, and no other block begins at the same place before its
// end.

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "analyser/tracker/real.hpp"
#include "analyser/tracker/tracker.hpp"

namespace warren::locality::tracker {

namespace {

constexpr std::size_t natural_alignment = 16;

// Calls `make` with the real functions. The block is recorded if `bytes` reaches the threshold.
template <typename Make>
void* made(std::size_t bytes, const Caller& caller, Make make, bool filled = false) {
    const Real* functions = real();
    if (functions == nullptr) {
        return early_allocation(bytes, natural_alignment);
    }
    if (bytes < threshold()) [[likely]] {
        return make(*functions);
    }
    const Inside inside;
    if (!inside) {
        return make(*functions);
    }
    const std::uint64_t before_ns = now_ns();
    void* block = make(*functions);
    if (block != nullptr) {
        const int kept_errno = errno;
        record_begin(AllocationRecord::heap, block, bytes, before_ns, caller, nullptr, filled);
        errno = kept_errno;
    }
    return block;
}

// Whether a block was recorded, or is nearly large enough.
bool is_large(const Real& functions, void* block) {
    return functions.malloc_usable_size(block) >= threshold();
}

void end_of(const Real& functions, void* block) {
    if (!is_large(functions, block)) {
        return;
    }
    const Inside inside;
    if (inside) {
        const int kept_errno = errno;
        record_end(AllocationRecord::heap, block, 0);
        errno = kept_errno;
    }
}

void* resized(void* block, std::size_t bytes, const Caller& caller) {
    const Real* functions = real();
    if (functions == nullptr || is_early(block)) { // its size is not known; it is small
        void* copy = functions == nullptr ? early_allocation(bytes, natural_alignment)
                                          : functions->malloc(bytes);
        if (copy != nullptr && block != nullptr) {
            const std::size_t most = is_early(block) ? early_bytes_from(block) : bytes;
            std::memcpy(copy, block, bytes < most ? bytes : most);
        }
        return copy;
    }
    const bool was_large = block != nullptr && is_large(*functions, block);
    if (!was_large && bytes < threshold()) [[likely]] {
        return functions->realloc(block, bytes);
    }
    const Inside inside;
    if (!inside) {
        return functions->realloc(block, bytes);
    }
    const std::uint64_t before_ns = now_ns();
    const std::size_t before_bytes = was_large ? functions->malloc_usable_size(block) : 0;
    if (was_large) {
        record_end(AllocationRecord::heap, block, 0);
    }
    void* moved = functions->realloc(block, bytes);
    const int kept_errno = errno;
    if (moved != nullptr && bytes >= threshold()) {
        record_begin(AllocationRecord::heap, moved, bytes, before_ns, caller,
                     was_large ? block : nullptr);
    } else if (moved == nullptr && was_large && bytes != 0) { // it failed, and the old one lives on
        record_begin(AllocationRecord::heap, block, before_bytes, before_ns, caller, block);
    }
    errno = kept_errno;
    return moved;
}

bool product(std::size_t one, std::size_t other, std::size_t& bytes) {
    return !__builtin_mul_overflow(one, other, &bytes);
}

} // namespace

extern "C" {

void* malloc(std::size_t bytes) {
    return made(bytes, WARREN_CALLER, [=](const Real& of) { return of.malloc(bytes); });
}

void* calloc(std::size_t count, std::size_t size) {
    std::size_t bytes = 0;
    if (!product(count, size, bytes)) {
        errno = ENOMEM;
        return nullptr;
    }
    return made(
        bytes, WARREN_CALLER, [=](const Real& of) { return of.calloc(count, size); }, true);
}

void* realloc(void* block, std::size_t bytes) {
    return resized(block, bytes, WARREN_CALLER);
}

void* reallocarray(void* block, std::size_t count, std::size_t size) {
    std::size_t bytes = 0;
    if (!product(count, size, bytes)) {
        errno = ENOMEM;
        return nullptr;
    }
    return resized(block, bytes, WARREN_CALLER);
}

void free(void* block) {
    if (block == nullptr || is_early(block)) {
        return;
    }
    const Real* functions = real();
    if (functions == nullptr) {
        return;
    }
    end_of(*functions, block);
    functions->free(block);
}

int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) {
    int error = 0;
    void* block = made(bytes, WARREN_CALLER, [&](const Real& of) -> void* {
        void* found = nullptr;
        error = of.posix_memalign(&found, alignment, bytes);
        return error == 0 ? found : nullptr;
    });
    if (error == 0) {
        *result = block;
    }
    return error;
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    return made(bytes, WARREN_CALLER,
                [=](const Real& of) { return of.aligned_alloc(alignment, bytes); });
}

void* memalign(std::size_t alignment, std::size_t bytes) {
    return made(bytes, WARREN_CALLER,
                [=](const Real& of) { return of.memalign(alignment, bytes); });
}

void* valloc(std::size_t bytes) {
    return made(bytes, WARREN_CALLER, [=](const Real& of) { return of.valloc(bytes); });
}

void* pvalloc(std::size_t bytes) {
    return made(bytes, WARREN_CALLER, [=](const Real& of) { return of.pvalloc(bytes); });
}

} // extern "C"

} // namespace warren::locality::tracker
