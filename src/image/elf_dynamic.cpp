// The dynamic section of an ElfFile: which tables there are, and whether they are where it says.
#include <cstring>

#include "image/elf_file.hpp"
#include "warren/image.h"

namespace warren::image {

namespace {

constexpr std::size_t needed_limit = 1024;

// Entries of the section that are needed before the tables can be looked at.
struct RawDynamic {
    SymbolTableAddresses symbols;
    std::vector<std::uint64_t> needed;
    std::uint64_t soname = 0;
    std::uint64_t rpath = 0;
    std::uint64_t runpath = 0;
    Range relocations;
    Range plt_relocations;
    Range relative_relocations;
    std::uint64_t relocation_bytes = sizeof(Elf64_Rela); // of one
    std::uint64_t plt_relocation_kind = DT_RELA;
    std::uint64_t relative_relocation_bytes = sizeof(std::uint64_t);
    bool without_addends = false; // DT_REL
};

void take_flags(DynamicSection& dynamic, const Elf64_Dyn& entry) {
    const std::uint64_t value = entry.d_un.d_val;
    switch (entry.d_tag) {
    case DT_SYMBOLIC:
        dynamic.symbolic = true;
        break;
    case DT_TEXTREL:
        dynamic.text_relocations = true;
        break;
    case DT_BIND_NOW:
        dynamic.bind_now = true;
        break;
    case DT_FLAGS:
        dynamic.symbolic |= (value & DF_SYMBOLIC) != 0;
        dynamic.text_relocations |= (value & DF_TEXTREL) != 0;
        dynamic.bind_now |= (value & DF_BIND_NOW) != 0;
        break;
    case DT_FLAGS_1:
        dynamic.program = (value & DF_1_PIE) != 0;
        dynamic.bind_now |= (value & DF_1_NOW) != 0;
        dynamic.kept = (value & DF_1_NODELETE) != 0;
        break;
    default:
        break;
    }
}

void take_functions(DynamicSection& dynamic, const Elf64_Dyn& entry) {
    const std::uint64_t value = entry.d_un.d_val;
    switch (entry.d_tag) {
    case DT_INIT:
        dynamic.init = value;
        break;
    case DT_FINI:
        dynamic.fini = value;
        break;
    case DT_PREINIT_ARRAY:
        dynamic.preinit_array.address = value;
        break;
    case DT_PREINIT_ARRAYSZ:
        dynamic.preinit_array.bytes = value;
        break;
    case DT_INIT_ARRAY:
        dynamic.init_array.address = value;
        break;
    case DT_INIT_ARRAYSZ:
        dynamic.init_array.bytes = value;
        break;
    case DT_FINI_ARRAY:
        dynamic.fini_array.address = value;
        break;
    case DT_FINI_ARRAYSZ:
        dynamic.fini_array.bytes = value;
        break;
    default:
        break;
    }
}

void take_symbols(RawDynamic& raw, const Elf64_Dyn& entry) {
    const std::uint64_t value = entry.d_un.d_val;
    switch (entry.d_tag) {
    case DT_SYMTAB:
        raw.symbols.symbols = value;
        break;
    case DT_STRTAB:
        raw.symbols.strings = value;
        break;
    case DT_STRSZ:
        raw.symbols.string_bytes = value;
        break;
    case DT_GNU_HASH:
        raw.symbols.gnu_hash = value;
        break;
    case DT_HASH:
        raw.symbols.system_v_hash = value;
        break;
    case DT_VERSYM:
        raw.symbols.version_indices = value;
        break;
    case DT_VERNEED:
        raw.symbols.needed_versions = value;
        break;
    case DT_VERNEEDNUM:
        raw.symbols.needed_version_count = value;
        break;
    case DT_VERDEF:
        raw.symbols.defined_versions = value;
        break;
    case DT_VERDEFNUM:
        raw.symbols.defined_version_count = value;
        break;
    case DT_NEEDED:
        raw.needed.push_back(value);
        break;
    case DT_SONAME:
        raw.soname = value;
        break;
    case DT_RPATH:
        raw.rpath = value;
        break;
    case DT_RUNPATH:
        raw.runpath = value;
        break;
    default:
        break;
    }
}

void take_relocations(RawDynamic& raw, const Elf64_Dyn& entry) {
    constexpr Elf64_Sxword dt_relrsz = 35; // newer than some systems' elf.h
    constexpr Elf64_Sxword dt_relr = 36;
    constexpr Elf64_Sxword dt_relrent = 37;
    const std::uint64_t value = entry.d_un.d_val;
    switch (entry.d_tag) {
    case DT_RELA:
        raw.relocations.address = value;
        break;
    case DT_RELASZ:
        raw.relocations.bytes = value;
        break;
    case DT_RELAENT:
        raw.relocation_bytes = value;
        break;
    case DT_JMPREL:
        raw.plt_relocations.address = value;
        break;
    case DT_PLTRELSZ:
        raw.plt_relocations.bytes = value;
        break;
    case DT_PLTREL:
        raw.plt_relocation_kind = value;
        break;
    case dt_relr:
        raw.relative_relocations.address = value;
        break;
    case dt_relrsz:
        raw.relative_relocations.bytes = value;
        break;
    case dt_relrent:
        raw.relative_relocation_bytes = value;
        break;
    case DT_REL:
    case DT_RELSZ:
        raw.without_addends |= value != 0;
        break;
    default:
        break;
    }
}

} // namespace

Error ElfFile::parse_dynamic() {
    const auto damaged = [&](const char* what) {
        return fail(WARREN_IMAGE_ERR_DAMAGED, "%s is damaged: %s", path_.c_str(), what);
    };
    if (dynamic_range_.bytes == 0) {
        return {}; // linked statically; check_private says what to do about it
    }
    const std::uint64_t entries = dynamic_range_.bytes / sizeof(Elf64_Dyn);
    const auto* entry = table<Elf64_Dyn>(dynamic_range_.address, entries);
    if (entry == nullptr) {
        return damaged("its dynamic section is cut off");
    }
    dynamic_.address = dynamic_range_.address;
    RawDynamic raw;
    std::uint64_t index = 0;
    for (; index < entries && entry[index].d_tag != DT_NULL; ++index) {
        take_flags(dynamic_, entry[index]);
        take_functions(dynamic_, entry[index]);
        take_symbols(raw, entry[index]);
        take_relocations(raw, entry[index]);
    }
    if (index == entries) {
        return damaged("its dynamic section has no end");
    }
    if (raw.symbols.strings != 0 || raw.symbols.symbols != 0) {
        if (Error error = SymbolTable::read(*this, raw.symbols, symbols_)) {
            return error;
        }
    }

    const auto name_at = [&](std::uint64_t offset) {
        return offset == 0 ? nullptr : symbols_.string(offset);
    };
    dynamic_.soname = name_at(raw.soname);
    dynamic_.rpath = name_at(raw.rpath);
    dynamic_.runpath = name_at(raw.runpath);
    for (const std::uint64_t offset : raw.needed) {
        const char* name = symbols_.string(offset);
        if (name == nullptr || *name == 0 || dynamic_.needed.size() == needed_limit) {
            return damaged("the name of a library that it needs is outside the string table");
        }
        dynamic_.needed.push_back(name);
    }

    if (raw.without_addends || raw.relocation_bytes != sizeof(Elf64_Rela) ||
        raw.relative_relocation_bytes != sizeof(std::uint64_t) ||
        (raw.plt_relocations.bytes != 0 && raw.plt_relocation_kind != DT_RELA)) {
        return damaged("its relocations are of a form that this machine doesn't have");
    }
    const auto take = [&]<typename T>(Range range, std::span<const T>& taken) {
        const T* first = table<T>(range.address, range.bytes / sizeof(T));
        taken = {first, first == nullptr ? 0 : range.bytes / sizeof(T)};
        return range.bytes == 0 || (first != nullptr && range.bytes % sizeof(T) == 0);
    };
    if (!take(raw.relocations, dynamic_.relocations) ||
        !take(raw.plt_relocations, dynamic_.plt_relocations) ||
        !take(raw.relative_relocations, dynamic_.relative_relocations)) {
        return damaged("its relocations are cut off");
    }

    if (Error error = check_function("initialisation function", dynamic_.init)) {
        return error;
    }
    if (Error error = check_function("termination function", dynamic_.fini)) {
        return error;
    }
    for (const Range array : {dynamic_.preinit_array, dynamic_.init_array, dynamic_.fini_array}) {
        if (Error error = check_array("list of initialisation functions", array)) {
            return error;
        }
    }
    return {};
}

Error ElfFile::check_function(const char* what, std::uint64_t address) const {
    const Segment* segment = address == 0 ? nullptr : segment_of(address, 1);
    if (address != 0 && (segment == nullptr || !segment->executable)) {
        return fail(WARREN_IMAGE_ERR_DAMAGED, "%s is damaged: its %s is in no segment of code",
                    path_.c_str(), what);
    }
    return {};
}

Error ElfFile::check_array(const char* what, Range array) const {
    if (array.bytes != 0 &&
        (array.bytes % sizeof(void*) != 0 || array.address % sizeof(void*) != 0 ||
         segment_of(array.address, array.bytes) == nullptr)) {
        return fail(WARREN_IMAGE_ERR_DAMAGED, "%s is damaged: its %s is cut off", path_.c_str(),
                    what);
    }
    return {};
}

} // namespace warren::image
