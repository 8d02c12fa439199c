// Short texts of the system (files of /proc and /sys), read without memory of the heap: allocators
// ask. Thread rule: any thread at any time; errno stays as it was.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::memory {

// The beginning of a file, as much as fits before the null at its end. False: it is not there, or
// empty.
bool read_start(const char* path, char* text, std::size_t bytes);

template <std::size_t bytes>
bool read_start(const char* path, char (&text)[bytes]) {
    return read_start(path, text, bytes);
}

// The first and last number of a list's next part ("0-3,8" has the parts 0-3 and 8); moves `at`
// behind it. False at the end of the list.
bool next_of_list(const char*& at, std::uint64_t& first, std::uint64_t& last);

// The number behind the first line that begins with a label; false: there is no such line.
bool number_behind(const char* text, const char* label, std::uint64_t& number);

} // namespace warren::memory
