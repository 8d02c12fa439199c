// Relocations of a file, as its tables have them.
//
// Thread rule: pure functions of an immutable file.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "image/elf_file.hpp"

namespace warren::image {

struct Module;

// Calls `visit(const Elf64_Rela&)` for each relocation with a symbol or an addend.
template <typename Visit>
void for_each_relocation(const ElfFile& file, Visit&& visit) {
    for (const Elf64_Rela& relocation : file.dynamic().relocations) {
        visit(relocation);
    }
    for (const Elf64_Rela& relocation : file.dynamic().plt_relocations) {
        visit(relocation);
    }
}

// Calls `visit(address)` for each word to which where the copy is mapped is added (DT_RELR: an even
// word is the address of one, an odd one a map of the 63 words that follow).
template <typename Visit>
void for_each_relative_word(const ElfFile& file, Visit&& visit) {
    std::uint64_t next = 0;
    for (const std::uint64_t word : file.dynamic().relative_relocations) {
        if ((word & 1) == 0) {
            visit(word);
            next = word + sizeof(word);
            continue;
        }
        for (std::uint64_t bits = word >> 1, address = next; bits != 0;
             bits >>= 1, address += sizeof(word)) {
            if ((bits & 1) != 0) {
                visit(address);
            }
        }
        next += 63 * sizeof(word);
    }
}

// Whether each relocation writes within a segment, names a symbol that exists, and copies or calls
// only what is there.
Error check_relocation_places(const ElfFile& file);

// Whether one writes to memory that isn't writable.
bool has_text_relocations(const ElfFile& file);

// A module uses what another (null: none of the image's) defines, which stays as long as it does.
void note_use(Module& user, Module* used);

} // namespace warren::image
