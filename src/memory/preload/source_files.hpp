// Source files: which code of a module comes from which, by its debugging information (DWARF 2 to
// 5, of gcc -g, which lists the addresses of each compilation; clang does so with -gdwarf-aranges).
// Nothing is allocated, and nothing is believed: what doesn't fit ends the search of its part.
// Thread rule: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::memory {

struct Bytes {
    const char* begin = nullptr;
    std::size_t bytes = 0;
};

// Sections of the module, empty where there are none.
struct DebugSections {
    Bytes info;
    Bytes abbreviations;
    Bytes strings;
    Bytes line_strings;
    Bytes ranges; // .debug_aranges
};

struct SourceFileSearch {
    void* self;
    // Called with the source file of each compilation. Returns what the caller wants of it (bits
    // that `found` gets back), or 0 for nothing.
    std::uint64_t (*wanted)(void* self, const char* path);
    // Code of such a one, from the module's load address.
    void (*found)(void* self, std::uint64_t wanted, std::uint64_t begin, std::uint64_t end);
};

void find_source_files(const DebugSections& debug, const SourceFileSearch& search);

// For tests: the source file of the compilation at an offset of `info`; null: it doesn't say.
const char* source_file_of(const DebugSections& debug, std::uint64_t offset);

} // namespace warren::memory
