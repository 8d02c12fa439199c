// SymbolTable: the dynamic symbols of one file, found by name and version.
//
// The rules are those of the system's loader: GNU hash table or the older one, and a versioned
// reference takes its version only, or a definition that has none. Thread rule: immutable once
// made. Invariant: symbol names lie in the string table, which ends with a zero; all tables have
// been checked against the file when the table was made.
#pragma once

#include <cstdint>
#include <elf.h>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace warren::image {

class ElfFile;

// A name that is looked up, in one file after the other.
struct SymbolName {
    const char* text;
    const char* version; // null: whichever is the default
    std::uint32_t gnu_hash;
    std::uint32_t system_v_hash;

    SymbolName(const char* name, const char* wanted_version);
};

// Purpose of a reference: the system's loader skips some definitions for some uses.
enum class SymbolUse : std::uint8_t {
    address, // a program's canonical entry of a foreign function counts as a definition
    call,    // only real definitions
};

// Where the tables are, as the dynamic section says; 0: none.
struct SymbolTableAddresses {
    std::uint64_t symbols = 0;
    std::uint64_t strings = 0;
    std::uint64_t string_bytes = 0;
    std::uint64_t gnu_hash = 0;
    std::uint64_t system_v_hash = 0;
    std::uint64_t version_indices = 0;
    std::uint64_t needed_versions = 0;
    std::uint64_t needed_version_count = 0;
    std::uint64_t defined_versions = 0;
    std::uint64_t defined_version_count = 0;
};

class SymbolTable {
  public:
    // Checks all tables. `file` must outlive the table.
    static Error read(const ElfFile& file, const SymbolTableAddresses& addresses,
                      SymbolTable& table);

    std::uint32_t count() const { return count_; }
    const Elf64_Sym& symbol(std::uint32_t index) const { return symbols_[index]; }
    const char* name(const Elf64_Sym& symbol) const { return strings_ + symbol.st_name; }
    const char* name(std::uint32_t index) const { return name(symbols_[index]); }
    // A string by its offset, or null when it isn't in the table.
    const char* string(std::uint64_t offset) const {
        return offset < string_bytes_ ? strings_ + offset : nullptr;
    }

    // The definition of a name, or null.
    const Elf64_Sym* find(const SymbolName& name, SymbolUse use) const;
    // The version that symbol `index` has or wants; null: none.
    const char* version(std::uint32_t index) const;
    // For messages: name, or name@version.
    std::string text(std::uint32_t index) const;
    // The function or variable that an address of the file lies in, or null.
    const Elf64_Sym* covering(std::uint64_t address) const;

  private:
    Error read_gnu_hash(const ElfFile& file, std::uint64_t address);
    Error read_system_v_hash(const ElfFile& file, std::uint64_t address);
    Error read_needed_versions(const ElfFile& file, std::uint64_t address, std::uint64_t count);
    Error read_defined_versions(const ElfFile& file, std::uint64_t address, std::uint64_t count);
    Error set_version(const ElfFile& file, std::uint32_t index, std::uint64_t name_offset);
    bool matches(std::uint32_t index, const SymbolName& name, SymbolUse use) const;

    const Elf64_Sym* symbols_ = nullptr;
    std::uint32_t count_ = 0;
    const char* strings_ = nullptr;
    std::uint64_t string_bytes_ = 0;
    const Elf64_Half* version_indices_ = nullptr;
    std::vector<const char*> versions_; // by index

    // GNU hash table
    std::uint32_t bucket_count_ = 0; // 0: there is none
    std::uint32_t first_hashed_ = 0;
    std::uint32_t bloom_mask_ = 0;
    std::uint32_t bloom_shift_ = 0;
    const std::uint64_t* bloom_ = nullptr;
    const std::uint32_t* buckets_ = nullptr;
    const std::uint32_t* hashes_ = nullptr; // of symbol first_hashed_ + i

    // System V hash table
    std::uint32_t old_bucket_count_ = 0; // 0: there is none
    const std::uint32_t* old_buckets_ = nullptr;
    const std::uint32_t* old_chain_ = nullptr;
};

} // namespace warren::image
