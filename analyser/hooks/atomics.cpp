// Atomic operations, which the compiler leaves to this library. They use sequential consistency,
// except loads and stores, which are frequent and use the order that is asked for. A change counts
// as a read and a write, as in counts mode, whether or not a comparison succeeds.

#include <cstdint>

#include "analyser/hooks/calls.hpp"
#include "analyser/hooks/hooks.hpp"
#include "base/processor.hpp"

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)

#define WARREN_COUNTED(name, bytes)                                                                \
    void __tsan_##name##bytes##_pc(void* address, void* instruction);
WARREN_COUNTED(read, 1)
WARREN_COUNTED(read, 2)
WARREN_COUNTED(read, 4)
WARREN_COUNTED(read, 8)
WARREN_COUNTED(read, 16)
WARREN_COUNTED(write, 1)
WARREN_COUNTED(write, 2)
WARREN_COUNTED(write, 4)
WARREN_COUNTED(write, 8)
WARREN_COUNTED(write, 16)

#define WARREN_READS(bytes, address)                                                               \
    __tsan_read##bytes##_pc(const_cast<void*>(static_cast<const volatile void*>(address)),         \
                            __builtin_return_address(0))
#define WARREN_WRITES(bytes, address)                                                              \
    __tsan_write##bytes##_pc(const_cast<void*>(static_cast<const volatile void*>(address)),        \
                             __builtin_return_address(0))

// Types and names can't stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define WARREN_CHANGE(bits, bytes, type, name, operation)                                          \
    type __tsan_atomic##bits##_##name(volatile type* address, type value, int) {                   \
        WARREN_READS(bytes, address);                                                              \
        WARREN_WRITES(bytes, address);                                                             \
        return operation(address, value, __ATOMIC_SEQ_CST);                                        \
    }

#define WARREN_ATOMICS(bits, bytes, type)                                                          \
    type __tsan_atomic##bits##_load(const volatile type* address, int) {                           \
        WARREN_READS(bytes, address);                                                              \
        return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                         \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type* address, type value, int order) {              \
        WARREN_WRITES(bytes, address);                                                             \
        if (order == __ATOMIC_SEQ_CST) {                                                           \
            __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                    \
        } else {                                                                                   \
            __atomic_store_n(address, value, __ATOMIC_RELEASE);                                    \
        }                                                                                          \
    }                                                                                              \
    WARREN_CHANGE(bits, bytes, type, exchange, __atomic_exchange_n)                                \
    WARREN_CHANGE(bits, bytes, type, fetch_add, __atomic_fetch_add)                                \
    WARREN_CHANGE(bits, bytes, type, fetch_sub, __atomic_fetch_sub)                                \
    WARREN_CHANGE(bits, bytes, type, fetch_and, __atomic_fetch_and)                                \
    WARREN_CHANGE(bits, bytes, type, fetch_or, __atomic_fetch_or)                                  \
    WARREN_CHANGE(bits, bytes, type, fetch_xor, __atomic_fetch_xor)                                \
    WARREN_CHANGE(bits, bytes, type, fetch_nand, __atomic_fetch_nand)                              \
    static inline int compare##bits(volatile type* address, type* expected, type value,            \
                                    void* instruction) {                                           \
        void* const at = const_cast<type*>(address);                                               \
        __tsan_read##bytes##_pc(at, instruction);                                                  \
        __tsan_write##bytes##_pc(at, instruction);                                                 \
        return __atomic_compare_exchange_n(address, expected, value, false, __ATOMIC_SEQ_CST,      \
                                           __ATOMIC_SEQ_CST)                                       \
                   ? 1                                                                             \
                   : 0;                                                                            \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type* address, type* expected,      \
                                                      type value, int, int) {                      \
        return compare##bits(address, expected, value, __builtin_return_address(0));               \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type* address, type* expected,        \
                                                    type value, int, int) {                        \
        return compare##bits(address, expected, value, __builtin_return_address(0));               \
    }                                                                                              \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type* address, type expected,         \
                                                    type value, int, int) {                        \
        compare##bits(address, &expected, value, __builtin_return_address(0));                     \
        return expected;                                                                           \
    }

// NOLINTEND(bugprone-macro-parentheses)
WARREN_ATOMICS(8, 1, std::uint8_t)
WARREN_ATOMICS(16, 2, std::uint16_t)
WARREN_ATOMICS(32, 4, std::uint32_t)
WARREN_ATOMICS(64, 8, std::uint64_t)

// The only atomic instruction for 16 bytes is a compare-and-swap.
__extension__ typedef unsigned __int128 WarrenWide;

// (clang would inline it into functions without that instruction and call a function of no library
// there.)
[[gnu::target("cx16"), gnu::noinline]] static WarrenWide
compare_wide(volatile WarrenWide* address, WarrenWide expected, WarrenWide value) {
    return __sync_val_compare_and_swap(address, expected, value);
}

} // extern "C"

// Replaces the value by change(value) and returns the former one.
template <typename Change>
static inline WarrenWide change_wide(volatile WarrenWide* address, const Change& change) {
    WarrenWide before = compare_wide(address, 0, 0);
    while (true) {
        const WarrenWide found = compare_wide(address, before, change(before));
        if (found == before) {
            return before;
        }
        before = found;
    }
}

extern "C" {

// Read-only memory can be loaded, too. A compare-and-swap would write.
WarrenWide __tsan_atomic128_load(const volatile WarrenWide* address, int) {
    WARREN_READS(16, address);
    if (warren::processor_has_avx()) { // those processors load aligned vectors in one piece
        typedef long long Vector __attribute__((vector_size(16)));
        Vector loaded;
        asm volatile("vmovdqa %1, %0" : "=x"(loaded) : "m"(*address) : "memory");
        WarrenWide value;
        __builtin_memcpy(&value, &loaded, sizeof value);
        return value;
    }
    return compare_wide(const_cast<volatile WarrenWide*>(address), 0, 0);
}
void __tsan_atomic128_store(volatile WarrenWide* address, WarrenWide value, int) {
    WARREN_WRITES(16, address);
    change_wide(address, [=](WarrenWide) { return value; });
}

#define WARREN_WIDE_CHANGE(name, expression)                                                       \
    WarrenWide __tsan_atomic128_##name(volatile WarrenWide* address, WarrenWide value, int) {      \
        WARREN_READS(16, address);                                                                 \
        WARREN_WRITES(16, address);                                                                \
        return change_wide(address, [=]([[maybe_unused]] WarrenWide before) -> WarrenWide {        \
            return expression;                                                                     \
        });                                                                                        \
    }
WARREN_WIDE_CHANGE(exchange, value)
WARREN_WIDE_CHANGE(fetch_add, before + value)
WARREN_WIDE_CHANGE(fetch_sub, before - value)
WARREN_WIDE_CHANGE(fetch_and, before& value)
WARREN_WIDE_CHANGE(fetch_or, before | value)
WARREN_WIDE_CHANGE(fetch_xor, before ^ value)
WARREN_WIDE_CHANGE(fetch_nand, ~(before& value))

WarrenWide __tsan_atomic128_compare_exchange_val(volatile WarrenWide* address, WarrenWide expected,
                                                 WarrenWide value, int, int) {
    WARREN_READS(16, address);
    WARREN_WRITES(16, address);
    return compare_wide(address, expected, value);
}
int __tsan_atomic128_compare_exchange_strong(volatile WarrenWide* address, WarrenWide* expected,
                                             WarrenWide value, int, int) {
    WARREN_READS(16, address);
    WARREN_WRITES(16, address);
    const WarrenWide before = compare_wide(address, *expected, value);
    const bool done = before == *expected;
    *expected = before;
    return done ? 1 : 0;
}
int __tsan_atomic128_compare_exchange_weak(volatile WarrenWide* address, WarrenWide* expected,
                                           WarrenWide value, int success, int failure) {
    return __tsan_atomic128_compare_exchange_strong(address, expected, value, success, failure);
}

void __tsan_atomic_thread_fence(int) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

} // extern "C"
