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

// A file of any length, line by line; what of a line exceeds 1023 bytes is a line of its own.
class SystemFile {
  public:
    explicit SystemFile(const char* path);
    ~SystemFile();
    SystemFile(const SystemFile&) = delete;
    SystemFile& operator=(const SystemFile&) = delete;

    // Without its end, until the next call; null at the end of the file, and when it is not there.
    const char* next_line();

  private:
    long file_;
    std::size_t begin_ = 0; // of what has been read and not been returned
    std::size_t end_ = 0;
    char text_[1024];
};

// The first and last number of a list's next part ("0-3,8" has the parts 0-3 and 8); moves `at`
// behind it. False at the end of the list.
bool next_of_list(const char*& at, std::uint64_t& first, std::uint64_t& last);

// The number behind the first line that begins with a label; false: there is no such line.
bool number_behind(const char* text, const char* label, std::uint64_t& number);

} // namespace warren::memory
