// ElfFile: a program or library as it is in its file. Read and checked once, then shared by all
// private copies of it, which take their symbols and relocations from here and not from memory that
// a program may have written to.
//
// Everything that a header or table says is compared with what the file has before anybody relies
// on it: a damaged or hostile file is refused with the reason. What is sound but can't be private
// (fixed addresses, text relocations, …) is refused by check_private (suitability.hpp).
//
// Thread rule: immutable once made; any thread reads it.
// Invariants, of every ElfFile that open() or read() has made:
//  1. Segments rise, don't share pages, and lie within the file and within `span()`.
//  2. Names end within the string table. Indices of symbols in relocations are below the number of
//     symbols.
//  3. Tables that are handed out as spans lie within one segment's part of the file, aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <elf.h>
#include <memory>
#include <span>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "base/error.hpp"
#include "base/page.hpp"
#include "image/symbol_table.hpp"

namespace warren::image {

constexpr std::uint64_t page_down(std::uint64_t address) {
    return address & ~(page_bytes - 1);
}
constexpr std::uint64_t page_up(std::uint64_t address) {
    return (address + page_bytes - 1) & ~(page_bytes - 1);
}

// A loadable segment. Addresses are the file's own; a copy adds where it was mapped.
struct Segment {
    std::uint64_t offset;
    std::uint64_t address;
    std::uint64_t file_bytes;
    std::uint64_t memory_bytes; // what is more than file_bytes is zero
    bool readable;
    bool writable;
    bool executable;
};

// An address and a length; nothing when bytes is 0.
struct Range {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

// The initial contents of a thread's copy of the thread-local variables.
struct TlsSegment {
    std::uint64_t address = 0;
    std::uint64_t file_bytes = 0;
    std::uint64_t memory_bytes = 0; // 0: the file has no thread-local variables
    std::uint64_t alignment = 1;
};

// Contents of the dynamic section, names resolved.
struct DynamicSection {
    std::uint64_t address = 0;
    std::vector<const char*> needed;
    const char* soname = nullptr;
    const char* rpath = nullptr;
    const char* runpath = nullptr;
    bool symbolic = false;         // looks its own symbols up first
    bool text_relocations = false; // the linker says so
    bool program = false;          // DF_1_PIE
    bool bind_now = false;         // functions are looked up when it is loaded
    bool kept = false;             // DF_1_NODELETE
    std::uint64_t init = 0;        // addresses of functions; 0: none
    std::uint64_t fini = 0;
    Range preinit_array; // of addresses of functions
    Range init_array;
    Range fini_array;
    std::span<const Elf64_Rela> relocations;
    std::span<const Elf64_Rela> plt_relocations;
    std::span<const std::uint64_t> relative_relocations; // DT_RELR's words
};

// Tells files, and their versions, apart, whatever their names.
struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;
    off_t bytes = 0;
    std::int64_t modified_ns = 0;

    bool operator==(const FileIdentity&) const = default;
};
FileIdentity identity_of(const struct stat& status);

class OpenFile;

class ElfFile {
  public:
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;
    ~ElfFile();

    static Error open(const std::string& path, std::shared_ptr<const ElfFile>& file);
    // Reads it from memory, which must outlive the file and be aligned to 16 bytes.
    static Error read(const std::string& path, std::span<const std::byte> bytes,
                      std::shared_ptr<const ElfFile>& file);

    const std::string& path() const { return path_; }
    // The absolute path; empty when read from memory.
    const std::string& location() const { return location_; }
    // The file's name in messages and among dependencies: its soname, else its path's last part.
    std::string name() const;
    FileIdentity identity() const { return identity_; }
    // A descriptor of it, for mapping: it opens the file again, not what is in its place by now,
    // and keeps no descriptor for that, as threads may have tables of descriptors of their own.
    // Only of files that were opened.
    Error open_again(OpenFile& opened, int& descriptor) const;
    // From now on files do keep one each: keep(descriptor, true) makes a copy of one, or gives -1,
    // and keep(copy, false) closes that. For hosts whose ranks share a table and may close whatever
    // is in it but those copies.
    using Keep = int (*)(int descriptor, bool kept);
    static void keep_descriptors(Keep keep);
    // Moves a descriptor to a number that programs don't close, if there is one; the number. What
    // was moved so is closed by drop_descriptor.
    static int keep_descriptor(int opened);
    static void drop_descriptor(int kept);

    const Elf64_Ehdr& header() const { return header_; }
    std::span<const Elf64_Phdr> program_headers() const { return program_headers_; }
    const std::vector<Segment>& segments() const { return segments_; }
    std::uint64_t lowest() const { return lowest_; }       // address of the first page
    std::uint64_t span() const { return span_; }           // bytes from there, whole pages
    std::uint64_t alignment() const { return alignment_; } // of the mapping
    const TlsSegment& tls() const { return tls_; }
    Range relro() const { return relro_; }
    std::uint64_t unwind_table() const { return unwind_table_; } // PT_GNU_EH_FRAME; 0: none
    bool has_interpreter() const { return has_interpreter_; }
    bool executable_stack() const { return executable_stack_; }
    // A program, to be entered through its entry point, or a library.
    bool is_program() const;

    const DynamicSection& dynamic() const { return dynamic_; }
    const SymbolTable& symbols() const { return symbols_; }

    // The segment that has all of [address, address + bytes) in memory, or null.
    const Segment* segment_of(std::uint64_t address, std::uint64_t bytes) const;
    // The file's bytes of [address, address + bytes), or null when that isn't all within one
    // segment's part of the file.
    const std::byte* at(std::uint64_t address, std::uint64_t bytes) const;
    // As at(), for an array of T; null also when it isn't aligned.
    template <typename T>
    const T* table(std::uint64_t address, std::uint64_t count) const {
        const std::byte* bytes = count > bytes_.size() ? nullptr : at(address, count * sizeof(T));
        return reinterpret_cast<std::uintptr_t>(bytes) % alignof(T) == 0
                   ? reinterpret_cast<const T*>(bytes)
                   : nullptr;
    }
    // Bytes of the file from there to the end of its segment.
    std::uint64_t bytes_from(std::uint64_t address) const;

  private:
    ElfFile() = default;

    Error parse();
    Error open_and_keep(OpenFile& opened, int& descriptor);
    bool is_open_as(int descriptor) const;
    Error parse_header();
    Error parse_program_headers();
    Error add_segment(const Elf64_Phdr& header);
    Error parse_special(const Elf64_Phdr& header);
    Error parse_dynamic(); // elf_dynamic.cpp
    Error check_function(const char* what, std::uint64_t address) const;
    Error check_array(const char* what, Range array) const;

    std::string path_;
    FileIdentity identity_;
    std::string location_;
    int kept_ = -1; // descriptor
    bool owns_bytes_ = false;
    std::span<const std::byte> bytes_;

    Elf64_Ehdr header_{};
    std::vector<Elf64_Phdr> program_headers_;
    std::vector<Segment> segments_;
    std::uint64_t lowest_ = 0;
    std::uint64_t span_ = 0;
    std::uint64_t alignment_ = page_bytes;
    TlsSegment tls_;
    Range relro_;
    Range dynamic_range_;
    std::uint64_t unwind_table_ = 0;
    bool has_interpreter_ = false;
    bool executable_stack_ = false;
    DynamicSection dynamic_;
    SymbolTable symbols_;
};

} // namespace warren::image
