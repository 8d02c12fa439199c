// operator new and delete of unmodified programs, in the forms of the C++ library: see malloc.cpp.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>

#include "memory/preload/malloc.hpp"

namespace {

using namespace warren::memory;

// An operator behind ours.
struct Next {
    const char* symbol;
    std::atomic<void*> function; // null: not looked for yet, or there was none
};

void* find(Next& next) {
    void* function = next.function.load(std::memory_order_relaxed);
    if (function != nullptr) {
        return function;
    }
    function = dlsym(RTLD_NEXT, next.symbol);
    if (function == nullptr) { // that of a library that was loaded for itself, as Python does
        void* library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
        function = library != nullptr ? dlsym(library, next.symbol) : nullptr;
    }
    next.function.store(function, std::memory_order_relaxed);
    return function;
}

// The program's new handler, which is called when there is no memory. It may make room, or throw.
using Handler = void (*)();
[[gnu::cold, gnu::noinline]] Handler handler_of_program() {
    static constinit Next next{"_ZSt15get_new_handlerv", nullptr};
    auto* function = reinterpret_cast<Handler (*)()>(find(next));
    return function != nullptr ? function() : nullptr;
}

// A size that no heap has, nor the system.
constexpr std::size_t impossible_bytes = PTRDIFF_MAX;

// An operator new: `take` gives the block. Where there is none the C++ library's fails as C++ wants
// it; it is asked for what nobody has, as its malloc is at another place than the program's, where
// other rules may hold.
template <typename Take, typename... Others>
inline void* new_block(Next& next, bool throws, const Take& take, std::size_t bytes,
                       Others... others) {
    using Operator = void* (*)(std::size_t, Others...);
    if (operators_are_left()) [[unlikely]] {
        auto* function = reinterpret_cast<Operator>(find(next));
        return function != nullptr ? function(bytes, others...) : take();
    }
    void* block = take();
    if (block != nullptr) [[likely]] {
        return block;
    }
    while (throws && block == nullptr) {
        const Handler handler = handler_of_program();
        if (handler == nullptr) {
            break;
        }
        handler();
        block = take();
    }
    if (block != nullptr) {
        return block;
    }
    if (auto* function = reinterpret_cast<Operator>(find(next))) {
        function(impossible_bytes, others...);
        return take(); // the handler was called, and has made room; or not
    }
    if (throws) {
        say("there is no memory for operator new, and no libstdc++.so.6 that could throw "
            "std::bad_alloc: the program ends");
        std::abort();
    }
    return nullptr;
}

template <typename... Arguments>
inline void delete_block(Next& next, void* block, Arguments... arguments) {
    using Operator = void (*)(void*, Arguments...);
    if (block == nullptr) {
        return;
    }
    if (leaves_operators.load(std::memory_order_relaxed)) [[unlikely]] {
        if (auto* function = reinterpret_cast<Operator>(find(next))) {
            function(block, arguments...);
            return;
        }
    }
    give_back(block);
}

} // namespace

// NOLINTBEGIN(readability-identifier-naming)

WARREN_TAKEN void* _Znwm(std::size_t bytes) {
    static constinit Next next{"_Znwm", nullptr};
    const void* site = __builtin_return_address(0);
    return new_block(
        next, true, [=] { return allocate_at(bytes, site); }, bytes);
}

WARREN_TAKEN void* _ZnwmRKSt9nothrow_t(std::size_t bytes, const void* tag) {
    static constinit Next next{"_ZnwmRKSt9nothrow_t", nullptr};
    const void* site = __builtin_return_address(0);
    return new_block(
        next, false, [=] { return allocate_at(bytes, site); }, bytes, tag);
}

WARREN_TAKEN void* _ZnwmSt11align_val_t(std::size_t bytes, std::size_t alignment) {
    static constinit Next next{"_ZnwmSt11align_val_t", nullptr};
    const void* site = __builtin_return_address(0);
    return new_block(
        next, true, [=] { return allocate_aligned_at(alignment, bytes, site); }, bytes, alignment);
}

WARREN_TAKEN void* _ZnwmSt11align_val_tRKSt9nothrow_t(std::size_t bytes, std::size_t alignment,
                                                      const void* tag) {
    static constinit Next next{"_ZnwmSt11align_val_tRKSt9nothrow_t", nullptr};
    const void* site = __builtin_return_address(0);
    return new_block(
        next, false, [=] { return allocate_aligned_at(alignment, bytes, site); }, bytes, alignment,
        tag);
}

WARREN_TAKEN void* _Znam(std::size_t bytes) {
    static constinit Next next{"_Znam", nullptr};
    const void* site = __builtin_return_address(0);
    return new_block(
        next, true, [=] { return allocate_at(bytes, site); }, bytes);
}

WARREN_TAKEN void* _ZnamRKSt9nothrow_t(std::size_t bytes, const void* tag) {
    static constinit Next next{"_ZnamRKSt9nothrow_t", nullptr};
    const void* site = __builtin_return_address(0);
    return new_block(
        next, false, [=] { return allocate_at(bytes, site); }, bytes, tag);
}

WARREN_TAKEN void* _ZnamSt11align_val_t(std::size_t bytes, std::size_t alignment) {
    static constinit Next next{"_ZnamSt11align_val_t", nullptr};
    const void* site = __builtin_return_address(0);
    return new_block(
        next, true, [=] { return allocate_aligned_at(alignment, bytes, site); }, bytes, alignment);
}

WARREN_TAKEN void* _ZnamSt11align_val_tRKSt9nothrow_t(std::size_t bytes, std::size_t alignment,
                                                      const void* tag) {
    static constinit Next next{"_ZnamSt11align_val_tRKSt9nothrow_t", nullptr};
    const void* site = __builtin_return_address(0);
    return new_block(
        next, false, [=] { return allocate_aligned_at(alignment, bytes, site); }, bytes, alignment,
        tag);
}

WARREN_TAKEN void _ZdlPv(void* block) {
    static constinit Next next{"_ZdlPv", nullptr};
    delete_block(next, block);
}

WARREN_TAKEN void _ZdlPvm(void* block, std::size_t bytes) {
    static constinit Next next{"_ZdlPvm", nullptr};
    delete_block(next, block, bytes);
}

WARREN_TAKEN void _ZdlPvRKSt9nothrow_t(void* block, const void* tag) {
    static constinit Next next{"_ZdlPvRKSt9nothrow_t", nullptr};
    delete_block(next, block, tag);
}

WARREN_TAKEN void _ZdlPvSt11align_val_t(void* block, std::size_t alignment) {
    static constinit Next next{"_ZdlPvSt11align_val_t", nullptr};
    delete_block(next, block, alignment);
}

WARREN_TAKEN void _ZdlPvmSt11align_val_t(void* block, std::size_t bytes, std::size_t alignment) {
    static constinit Next next{"_ZdlPvmSt11align_val_t", nullptr};
    delete_block(next, block, bytes, alignment);
}

WARREN_TAKEN void _ZdlPvSt11align_val_tRKSt9nothrow_t(void* block, std::size_t alignment,
                                                      const void* tag) {
    static constinit Next next{"_ZdlPvSt11align_val_tRKSt9nothrow_t", nullptr};
    delete_block(next, block, alignment, tag);
}

WARREN_TAKEN void _ZdaPv(void* block) {
    static constinit Next next{"_ZdaPv", nullptr};
    delete_block(next, block);
}

WARREN_TAKEN void _ZdaPvm(void* block, std::size_t bytes) {
    static constinit Next next{"_ZdaPvm", nullptr};
    delete_block(next, block, bytes);
}

WARREN_TAKEN void _ZdaPvRKSt9nothrow_t(void* block, const void* tag) {
    static constinit Next next{"_ZdaPvRKSt9nothrow_t", nullptr};
    delete_block(next, block, tag);
}

WARREN_TAKEN void _ZdaPvSt11align_val_t(void* block, std::size_t alignment) {
    static constinit Next next{"_ZdaPvSt11align_val_t", nullptr};
    delete_block(next, block, alignment);
}

WARREN_TAKEN void _ZdaPvmSt11align_val_t(void* block, std::size_t bytes, std::size_t alignment) {
    static constinit Next next{"_ZdaPvmSt11align_val_t", nullptr};
    delete_block(next, block, bytes, alignment);
}

WARREN_TAKEN void _ZdaPvSt11align_val_tRKSt9nothrow_t(void* block, std::size_t alignment,
                                                      const void* tag) {
    static constinit Next next{"_ZdaPvSt11align_val_tRKSt9nothrow_t", nullptr};
    delete_block(next, block, alignment, tag);
}
// NOLINTEND(readability-identifier-naming)
