#include "analyser/hooks/heap.hpp"

#include <cstdint>
#include <new>
#include <sched.h>

#include "analyser/counts/counters.hpp"
#include "analyser/hooks/hooks.hpp"

namespace warren::locality::hooks {

namespace {

constexpr unsigned least_bits = 4; // 16 B
constexpr unsigned most_bits = 18; // 256 KiB; larger ones are the kernel's
constexpr std::size_t stretch_bytes = std::size_t{4} << 20;

struct Free {
    Free* next;
};
Free* free_pieces[most_bits + 1];
char* stretch = nullptr;
std::size_t stretch_left = 0;
std::uint32_t heap_lock = 0;

unsigned bits_for(std::size_t bytes) {
    unsigned bits = least_bits;
    while ((std::size_t{1} << bits) < bytes) {
        ++bits;
    }
    return bits;
}

} // namespace

void lock_heap() {
    ++mine.locks;
    for (unsigned turn = 1; __atomic_exchange_n(&heap_lock, 1, __ATOMIC_ACQUIRE) != 0; ++turn) {
        if (turn % 64 == 0) {
            sched_yield();
        }
        __builtin_ia32_pause();
    }
}

void unlock_heap() {
    __atomic_store_n(&heap_lock, 0, __ATOMIC_RELEASE);
    --mine.locks;
}

void* allocate(std::size_t bytes) {
    if (bytes > std::size_t{1} << most_bits) {
        return counts::reserve(bytes);
    }
    const unsigned bits = bits_for(bytes);
    const std::size_t size = std::size_t{1} << bits;
    lock_heap();
    void* piece = free_pieces[bits];
    if (piece != nullptr) {
        free_pieces[bits] = free_pieces[bits]->next;
    } else {
        if (stretch_left < size) { // what is left of it is lost
            stretch = static_cast<char*>(counts::reserve(stretch_bytes));
            stretch_left = stretch != nullptr ? stretch_bytes : 0;
        }
        if (stretch_left >= size) {
            piece = stretch;
            stretch += size;
            stretch_left -= size;
        }
    }
    unlock_heap();
    return piece;
}

void release(void* memory, std::size_t bytes) {
    if (memory == nullptr) {
        return;
    }
    if (bytes > std::size_t{1} << most_bits) {
        counts::release(memory, bytes);
        return;
    }
    const unsigned bits = bits_for(bytes);
    auto* const piece = static_cast<Free*>(memory);
    lock_heap();
    piece->next = free_pieces[bits];
    free_pieces[bits] = piece;
    unlock_heap();
}

} // namespace warren::locality::hooks

// The size is stored before the block, as delete does not always get it.
namespace {
constexpr std::size_t head_bytes = 16;
}

void* operator new(std::size_t bytes) {
    auto* const memory = static_cast<char*>(warren::locality::hooks::allocate(bytes + head_bytes));
    if (memory == nullptr) {
        __builtin_trap(); // there is nobody who could go on without
    }
    *reinterpret_cast<std::size_t*>(memory) = bytes + head_bytes;
    return memory + head_bytes;
}

void* operator new[](std::size_t bytes) {
    return operator new(bytes);
}

void operator delete(void* memory) noexcept {
    if (memory != nullptr) {
        char* const begin = static_cast<char*>(memory) - head_bytes;
        warren::locality::hooks::release(begin, *reinterpret_cast<std::size_t*>(begin));
    }
}

void operator delete(void* memory, std::size_t) noexcept {
    operator delete(memory);
}
void operator delete[](void* memory) noexcept {
    operator delete(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    operator delete(memory);
}
