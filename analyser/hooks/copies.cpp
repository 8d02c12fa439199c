// Functions that copy and fill memory, for programs that are linked with --wrap for them, or whose
// compiler knows the interface's own names. They count their reads and writes, 64 bytes at a time.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "analyser/hooks/calls.hpp"
#include "analyser/hooks/hooks.hpp"

namespace warren::locality::hooks {

namespace {

void count_once(const void* at, std::size_t bytes, counts::Direction direction,
                std::uint64_t instruction) {
    constexpr std::uint64_t statement_bytes = 256; // of code
    const auto address = reinterpret_cast<std::uint64_t>(at);
    Mine::Range& range = mine.ranges[direction];
    const bool counted = range.begin == address && range.bytes == bytes &&
                         instruction - range.instruction < statement_bytes;
    range.bytes = 0;
    if (!counted) {
        count_block(address, bytes, direction, instruction);
    }
}

void count_copy(const void* to, const void* from, std::size_t bytes, std::uint64_t instruction) {
    count_once(from, bytes, counts::reading, instruction);
    count_once(to, bytes, counts::writing, instruction);
}

void count_fill(const void* to, std::size_t bytes, std::uint64_t instruction) {
    count_once(to, bytes, counts::writing, instruction);
}

} // namespace

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)

void* __memcpy_chk(void*, const void*, std::size_t, std::size_t);
void* __memmove_chk(void*, const void*, std::size_t, std::size_t);
void* __memset_chk(void*, int, std::size_t, std::size_t);

#define WARREN_COPY(name)                                                                          \
    void* __wrap_##name(void* to, const void* from, std::size_t bytes) {                           \
        count_copy(to, from, bytes, WARREN_INSTRUCTION);                                           \
        return name(to, from, bytes);                                                              \
    }                                                                                              \
    void* __wrap___##name##_chk(void* to, const void* from, std::size_t bytes, std::size_t room) { \
        count_copy(to, from, bytes < room ? bytes : room, WARREN_INSTRUCTION);                     \
        return __##name##_chk(to, from, bytes, room);                                              \
    }                                                                                              \
    void* __tsan_##name(void* to, const void* from, std::size_t bytes) {                           \
        count_copy(to, from, bytes, WARREN_INSTRUCTION);                                           \
        return name(to, from, bytes);                                                              \
    }
WARREN_COPY(memcpy)
WARREN_COPY(memmove)

void* __wrap_memset(void* to, int value, std::size_t bytes) {
    count_fill(to, bytes, WARREN_INSTRUCTION);
    return memset(to, value, bytes);
}
void* __wrap___memset_chk(void* to, int value, std::size_t bytes, std::size_t room) {
    count_fill(to, bytes < room ? bytes : room, WARREN_INSTRUCTION);
    return __memset_chk(to, value, bytes, room);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
    count_fill(to, bytes, WARREN_INSTRUCTION);
    return memset(to, value, bytes);
}

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

} // extern "C"

} // namespace warren::locality::hooks
