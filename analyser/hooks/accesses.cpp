// The functions that the compiler calls before each access, by the names of its interface.

#include "analyser/hooks/calls.hpp"
#include "analyser/hooks/hooks.hpp"

namespace warren::locality::hooks {

namespace {

using counts::Direction;
using counts::reading;
using counts::writing;

// Wider accesses (a structure, memcpy) count as several of this size, that of the widest
// instruction.
constexpr std::uint64_t widest_bytes = 64;

[[gnu::noinline, gnu::cold]] void after_borrow(std::uint64_t address, std::uint32_t* word,
                                               std::uint32_t constant, Direction direction,
                                               std::uint64_t instruction) {
    const Inside inside;
    if (!inside) {
        *word += constant; // of a signal handler: the next one borrows again
        note_missed(1);
        return;
    }
    counts::borrowed(mine.thread->counters, address, constant, direction, instruction);
    recorder().look_at_time();
}

} // namespace

void count_elsewhere(std::uint64_t address, std::uint64_t bytes, Direction direction,
                     std::uint64_t instruction) {
    if (!is_recording()) {
        start_process(); // or somebody else is at it
        if (!is_recording()) {
            return;
        }
    }
    const Inside inside;
    if (!inside) {
        note_missed(1);
        return;
    }
    counts::Thread* const thread = this_thread();
    if (thread == nullptr) {
        note_missed(1);
        return;
    }
    if (bytes <= widest_bytes) {
        counts::count_access(thread->counters, address, bytes, direction, instruction);
    } else {
        const std::uint64_t whole = bytes / widest_bytes;
        counts::count_row(thread->counters, address, whole, widest_bytes, direction, instruction);
        counts::count_access(thread->counters, address + whole * widest_bytes, bytes % widest_bytes,
                             direction, instruction);
    }
    recorder().look_at_time();
}

void count_block(std::uint64_t address, std::uint64_t bytes, Direction direction,
                 std::uint64_t instruction) {
    if (bytes != 0 && (mine.words != nullptr || is_recording())) {
        count_elsewhere(address, bytes, direction, instruction);
    }
}

namespace {

// Counts an access whose address has its type's alignment, so that it lies in one unit.
template <std::uint32_t Bytes, Direction Way>
[[gnu::always_inline]] inline void count(const volatile void* at, std::uint64_t instruction) {
    char* const words = mine.words;
    const auto address = reinterpret_cast<std::uint64_t>(at);
    if (words == nullptr) [[unlikely]] {
        if (__atomic_load_n(&stage, __ATOMIC_RELAXED) != off) {
            count_elsewhere(address, Bytes, Way, instruction);
        }
        return;
    }
    constexpr std::uint32_t constant = counts::constant_of(1, Bytes);
    auto* const word =
        reinterpret_cast<std::uint32_t*>(words + ((address >> place.shift) & place.mask)) + Way;
    bool borrow = false;
    // One instruction, so that a signal handler runs before or after it.
    asm("subl %[constant], %[word]"
        : [word] "+m"(*word), "=@ccc"(borrow)
        : [constant] "i"(constant));
    if (borrow) [[unlikely]] {
        after_borrow(address, word, constant, Way, instruction);
    }
}

// Counts an access of any alignment.
template <std::uint32_t Bytes, Direction Way>
[[gnu::always_inline]] inline void count_unaligned(const volatile void* at,
                                                   std::uint64_t instruction) {
    constexpr std::uint64_t line = counts::least_granularity;
    const auto address = reinterpret_cast<std::uint64_t>(at);
    if ((address & (line - 1)) + Bytes <= line) [[likely]] {
        count<Bytes, Way>(at, instruction);
    } else if (mine.words != nullptr || __atomic_load_n(&stage, __ATOMIC_RELAXED) != off) {
        count_elsewhere(address, Bytes, Way, instruction);
    }
}

template <Direction Way>
[[gnu::always_inline]] inline void count_range(const void* at, std::uint64_t bytes,
                                               std::uint64_t instruction) {
    switch (bytes) { // vectors
    case 32:
        count_unaligned<32, Way>(at, instruction);
        break;
    case 64:
        count_unaligned<64, Way>(at, instruction);
        break;
    default:
        mine.ranges[Way] = {reinterpret_cast<std::uint64_t>(at), bytes, instruction};
        count_block(reinterpret_cast<std::uint64_t>(at), bytes, Way, instruction);
    }
}

} // namespace

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)

// Types and names can't stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define WARREN_ACCESS(name, bytes, how, way)                                                       \
    void __tsan_##name##bytes(void* address) {                                                     \
        how<bytes, way>(address, WARREN_INSTRUCTION);                                              \
    }
#define WARREN_ACCESSES(bytes, aligned)                                                            \
    WARREN_ACCESS(read, bytes, aligned, reading)                                                   \
    WARREN_ACCESS(write, bytes, aligned, writing)                                                  \
    WARREN_ACCESS(volatile_read, bytes, aligned, reading)                                          \
    WARREN_ACCESS(volatile_write, bytes, aligned, writing)                                         \
    WARREN_ACCESS(unaligned_read, bytes, count_unaligned, reading)                                 \
    WARREN_ACCESS(unaligned_write, bytes, count_unaligned, writing)                                \
    WARREN_ACCESS(unaligned_volatile_read, bytes, count_unaligned, reading)                        \
    WARREN_ACCESS(unaligned_volatile_write, bytes, count_unaligned, writing)                       \
    void __tsan_read_write##bytes(void* address) {                                                 \
        aligned<bytes, reading>(address, WARREN_INSTRUCTION);                                      \
        aligned<bytes, writing>(address, WARREN_INSTRUCTION);                                      \
    }                                                                                              \
    void __tsan_unaligned_read_write##bytes(void* address) {                                       \
        count_unaligned<bytes, reading>(address, WARREN_INSTRUCTION);                              \
        count_unaligned<bytes, writing>(address, WARREN_INSTRUCTION);                              \
    }                                                                                              \
    void __tsan_read##bytes##_pc(void* address, void* instruction) {                               \
        aligned<bytes, reading>(address, reinterpret_cast<std::uint64_t>(instruction) - 1);        \
    }                                                                                              \
    void __tsan_write##bytes##_pc(void* address, void* instruction) {                              \
        aligned<bytes, writing>(address, reinterpret_cast<std::uint64_t>(instruction) - 1);        \
    }
// NOLINTEND(bugprone-macro-parentheses)
WARREN_ACCESSES(1, count)
WARREN_ACCESSES(2, count)
WARREN_ACCESSES(4, count)
WARREN_ACCESSES(8, count)
// These functions also serve types that are aligned to 8 bytes, and vectors of those.
WARREN_ACCESSES(16, count_unaligned)

void __tsan_read_range(void* address, std::uint64_t bytes) {
    count_range<reading>(address, bytes, WARREN_INSTRUCTION);
}
void __tsan_write_range(void* address, std::uint64_t bytes) {
    count_range<writing>(address, bytes, WARREN_INSTRUCTION);
}
void __tsan_read_range_pc(void* address, std::uint64_t bytes, void* instruction) {
    count_range<reading>(address, bytes, reinterpret_cast<std::uint64_t>(instruction) - 1);
}
void __tsan_write_range_pc(void* address, std::uint64_t bytes, void* instruction) {
    count_range<writing>(address, bytes, reinterpret_cast<std::uint64_t>(instruction) - 1);
}

// An object changes its class.
void __tsan_vptr_update(void** address, void*) {
    count<sizeof(void*), writing>(address, WARREN_INSTRUCTION);
}
void __tsan_vptr_read(void** address) {
    count<sizeof(void*), reading>(address, WARREN_INSTRUCTION);
}

void __tsan_init(void) {
    start_process();
}

// Entries and exits of functions are not needed: stacks are unwound.
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void) {}
void __tsan_ignore_thread_begin(void) {}
void __tsan_ignore_thread_end(void) {}
// Programs announce their own synchronisation; nothing here needs it.
void __tsan_acquire(void*) {}
void __tsan_release(void*) {}

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

} // extern "C"

} // namespace warren::locality::hooks
