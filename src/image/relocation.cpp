#include "image/relocation.hpp"

#include "image/architecture.hpp"
#include "warren/image.h"

namespace warren::image {

using architecture::RelocationKind;

namespace {

std::uint64_t written_bytes(const ElfFile& file, const Elf64_Rela& relocation) {
    switch (architecture::relocation_kind(
        static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info)))) {
    case RelocationKind::nothing:
        return 0;
    case RelocationKind::tls_descriptor:
        return 2 * sizeof(std::uint64_t);
    case RelocationKind::copy:
        return file.symbols()
            .symbol(static_cast<std::uint32_t>(ELF64_R_SYM(relocation.r_info)))
            .st_size;
    default:
        return sizeof(std::uint64_t);
    }
}

} // namespace

Error check_relocation_places(const ElfFile& file) {
    const char* reason = nullptr;
    std::uint64_t at = 0;
    const auto blame = [&](const char* what, std::uint64_t address) {
        reason = what;
        at = address;
    };
    for_each_relocation(file, [&](const Elf64_Rela& relocation) {
        const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info));
        const RelocationKind kind = architecture::relocation_kind(type);
        const auto index = static_cast<std::uint32_t>(ELF64_R_SYM(relocation.r_info));
        if (index != 0 && index >= file.symbols().count()) {
            blame("names a symbol that isn't there", relocation.r_offset);
        } else if (index == 0 && (kind == RelocationKind::copy || kind == RelocationKind::slot)) {
            blame("names no symbol", relocation.r_offset);
        } else if (const std::uint64_t bytes = written_bytes(file, relocation);
                   bytes != 0 && file.segment_of(relocation.r_offset, bytes) == nullptr) {
            blame("is outside its segments", relocation.r_offset);
        } else if (kind == RelocationKind::function) {
            const Segment* code =
                file.segment_of(static_cast<std::uint64_t>(relocation.r_addend), 1);
            if (code == nullptr || !code->executable) {
                blame("calls what is no code", relocation.r_offset);
            }
        }
    });
    for_each_relative_word(file, [&](std::uint64_t address) {
        if (address % sizeof(std::uint64_t) != 0 ||
            file.segment_of(address, sizeof(std::uint64_t)) == nullptr) {
            blame("is outside its segments", address);
        }
    });
    if (reason != nullptr) {
        return fail(WARREN_IMAGE_ERR_DAMAGED, "%s is damaged: the relocation at %#llx %s",
                    file.path().c_str(), static_cast<unsigned long long>(at), reason);
    }
    return {};
}

bool has_text_relocations(const ElfFile& file) {
    bool found = false;
    for_each_relocation(file, [&](const Elf64_Rela& relocation) {
        const std::uint64_t bytes = written_bytes(file, relocation);
        const Segment* segment = bytes == 0 ? nullptr : file.segment_of(relocation.r_offset, bytes);
        found |= segment != nullptr && !segment->writable;
    });
    for_each_relative_word(file, [&](std::uint64_t address) {
        const Segment* segment = file.segment_of(address, sizeof(std::uint64_t));
        found |= segment != nullptr && !segment->writable;
    });
    return found;
}

} // namespace warren::image
