// Obstacks: the C library calls the process's handler, or ends the process, when there is no
// memory. The layout is that of <obstack.h>, whose macros programs have compiled in.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <obstack.h>

#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

// The default alignment, and the default size of a chunk, which with malloc's header fits a page.
constexpr int usual_alignment = 16;
constexpr int usual_bytes = 4096 - 32;

// A function with or without an argument of its own, as `use_extra_arg` says.
template <typename Function, typename Other>
Function as(Other* function) {
    return reinterpret_cast<Function>(reinterpret_cast<void*>(function));
}

[[noreturn]] void fail() {
    const auto handler =
        LibcState::current().value<void (*)()>(Variable::obstack_alloc_failed_handler);
    handler();
    libc::abort(); // it may not return
}

_obstack_chunk* allocate(obstack& stack, long bytes) {
    using Plain = _obstack_chunk* (*)(long);
    _obstack_chunk* chunk = stack.use_extra_arg != 0 ? stack.chunkfun(stack.extra_arg, bytes)
                                                     : as<Plain>(stack.chunkfun)(bytes);
    if (chunk == nullptr) {
        fail();
    }
    return chunk;
}

void release(obstack& stack, _obstack_chunk* chunk) {
    using Plain = void (*)(_obstack_chunk*);
    if (stack.use_extra_arg != 0) {
        stack.freefun(stack.extra_arg, chunk);
    } else {
        as<Plain>(stack.freefun)(chunk);
    }
}

char* aligned(const obstack& stack, char* address) {
    const auto mask = static_cast<std::uintptr_t>(stack.alignment_mask);
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return address + (((number + mask) & ~mask) - number);
}

int begin(obstack& stack, int bytes, int alignment) {
    alignment = alignment == 0 ? usual_alignment : alignment;
    stack.chunk_size = bytes == 0 ? usual_bytes : bytes;
    stack.alignment_mask = alignment - 1;
    _obstack_chunk* chunk = stack.chunk = allocate(stack, stack.chunk_size);
    stack.next_free = stack.object_base = aligned(stack, chunk->contents);
    stack.chunk_limit = chunk->limit = reinterpret_cast<char*>(chunk) + stack.chunk_size;
    chunk->prev = nullptr;
    stack.maybe_empty_object = 0;
    stack.alloc_failed = 0;
    return 1;
}

} // namespace

int begin_obstack(obstack* stack, int bytes, int alignment, void* (*allocate)(long),
                  void (*release)(void*)) {
    stack->chunkfun = as<decltype(stack->chunkfun)>(allocate);
    stack->freefun = as<decltype(stack->freefun)>(release);
    stack->use_extra_arg = 0;
    return begin(*stack, bytes, alignment);
}

int begin_obstack_1(obstack* stack, int bytes, int alignment, void* (*allocate)(void*, long),
                    void (*release)(void*, void*), void* argument) {
    stack->chunkfun = as<decltype(stack->chunkfun)>(allocate);
    stack->freefun = as<decltype(stack->freefun)>(release);
    stack->extra_arg = argument;
    stack->use_extra_arg = 1;
    return begin(*stack, bytes, alignment);
}

// A chunk with room for the object that grows and so many bytes more.
void obstack_newchunk(obstack* stack, int bytes) {
    _obstack_chunk* former = stack->chunk;
    const long object = stack->next_free - stack->object_base;
    constexpr long beside = 100;
    const long wanted = object + bytes + (object >> 3) + stack->alignment_mask + beside;
    const long size = std::max(wanted, stack->chunk_size);
    _obstack_chunk* chunk = stack->chunk = allocate(*stack, size);
    chunk->prev = former;
    chunk->limit = stack->chunk_limit = reinterpret_cast<char*>(chunk) + size;
    char* place = aligned(*stack, chunk->contents);
    std::memcpy(place, stack->object_base, static_cast<std::size_t>(object));
    // The former chunk goes if it had nothing else.
    if (stack->maybe_empty_object == 0 && stack->object_base == aligned(*stack, former->contents)) {
        chunk->prev = former->prev;
        release(*stack, former);
    }
    stack->object_base = place;
    stack->next_free = place + object;
    stack->maybe_empty_object = 0;
}

void memory_exhausted() {
    LibcState& state = LibcState::current();
    std::fputs("memory exhausted\n", state.error());
    libc::exit(state.value<int>(Variable::obstack_exit_failure));
}

} // namespace warren::image::libc
