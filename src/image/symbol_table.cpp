#include "image/symbol_table.hpp"

#include <bit>
#include <cstring>

#include "image/elf_file.hpp"
#include "warren/image.h"

namespace warren::image {

namespace {

constexpr Elf64_Half hidden_bit = 0x8000;
constexpr Elf64_Half index_mask = 0x7fff;

std::uint32_t gnu_hash_of(const char* name) {
    std::uint32_t hash = 5381;
    for (; *name != 0; ++name) {
        hash = hash * 33 + static_cast<unsigned char>(*name);
    }
    return hash;
}

std::uint32_t system_v_hash_of(const char* name) {
    std::uint32_t hash = 0;
    for (; *name != 0; ++name) {
        hash = (hash << 4) + static_cast<unsigned char>(*name);
        hash = (hash ^ ((hash >> 24) & 0xf0)) & 0x0fffffff;
    }
    return hash;
}

Error damaged(const ElfFile& file, const char* what) {
    return fail(WARREN_IMAGE_ERR_DAMAGED, "%s is damaged: %s", file.path().c_str(), what);
}

} // namespace

SymbolName::SymbolName(const char* name, const char* wanted_version)
    : text(name),
      version(wanted_version),
      gnu_hash(gnu_hash_of(name)),
      system_v_hash(system_v_hash_of(name)) {}

Error SymbolTable::read(const ElfFile& file, const SymbolTableAddresses& addresses,
                        SymbolTable& table) {
    table.string_bytes_ = addresses.string_bytes;
    table.strings_ = file.table<char>(addresses.strings, addresses.string_bytes);
    if (table.strings_ == nullptr || table.string_bytes_ == 0 ||
        table.strings_[table.string_bytes_ - 1] != 0) {
        return damaged(file, "its string table is cut off");
    }
    // The dynamic section doesn't say how many symbols there are: the hash tables do.
    if (addresses.gnu_hash != 0) {
        if (Error error = table.read_gnu_hash(file, addresses.gnu_hash)) {
            return error;
        }
    }
    if (addresses.system_v_hash != 0) {
        if (Error error = table.read_system_v_hash(file, addresses.system_v_hash)) {
            return error;
        }
    }
    table.symbols_ = file.table<Elf64_Sym>(addresses.symbols, table.count_);
    if (table.symbols_ == nullptr && table.count_ > 0) {
        return damaged(file, "its symbol table is cut off");
    }
    for (std::uint32_t index = 0; index < table.count_; ++index) {
        const Elf64_Sym& symbol = table.symbols_[index];
        if (symbol.st_name >= table.string_bytes_) {
            return damaged(file, "a symbol's name is outside the string table");
        }
        const bool here = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS;
        const bool in_memory = ELF64_ST_TYPE(symbol.st_info) != STT_TLS;
        if (here && in_memory && symbol.st_value != 0 &&
            symbol.st_value - file.lowest() > file.span()) {
            return damaged(file, "a symbol's address is outside the file's segments");
        }
    }
    if (addresses.version_indices == 0) {
        return {};
    }
    table.version_indices_ = file.table<Elf64_Half>(addresses.version_indices, table.count_);
    if (table.version_indices_ == nullptr) {
        return damaged(file, "its table of symbol versions is cut off");
    }
    if (Error error = table.read_needed_versions(file, addresses.needed_versions,
                                                 addresses.needed_version_count)) {
        return error;
    }
    return table.read_defined_versions(file, addresses.defined_versions,
                                       addresses.defined_version_count);
}

Error SymbolTable::read_gnu_hash(const ElfFile& file, std::uint64_t address) {
    const auto* header = file.table<std::uint32_t>(address, 4);
    if (header == nullptr) {
        return damaged(file, "its hash table is cut off");
    }
    bucket_count_ = header[0];
    first_hashed_ = header[1];
    const std::uint32_t bloom_words = header[2];
    bloom_shift_ = header[3];
    if (bucket_count_ == 0 || !std::has_single_bit(bloom_words) || bloom_shift_ > 31) {
        return damaged(file, "its hash table has an impossible size");
    }
    bloom_mask_ = bloom_words - 1;
    address += 4 * sizeof *header;
    bloom_ = file.table<std::uint64_t>(address, bloom_words);
    address += std::uint64_t{bloom_words} * sizeof *bloom_;
    buckets_ = file.table<std::uint32_t>(address, bucket_count_);
    address += std::uint64_t{bucket_count_} * sizeof *buckets_;
    if (bloom_ == nullptr || buckets_ == nullptr) {
        return damaged(file, "its hash table is cut off");
    }
    const std::uint64_t room = file.bytes_from(address) / sizeof *hashes_;
    hashes_ = file.table<std::uint32_t>(address, room);
    // The last chain's end is the last symbol.
    std::uint32_t last = 0;
    for (std::uint32_t bucket = 0; bucket < bucket_count_; ++bucket) {
        if (buckets_[bucket] != 0 && buckets_[bucket] < first_hashed_) {
            return damaged(file, "its hash table names a symbol before the first");
        }
        last = buckets_[bucket] > last ? buckets_[bucket] : last;
    }
    if (last == 0) { // nothing is defined
        count_ = first_hashed_;
        return {};
    }
    for (std::uint64_t index = last; index - first_hashed_ < room; ++index) {
        if ((hashes_[index - first_hashed_] & 1) != 0) {
            count_ = static_cast<std::uint32_t>(index) + 1;
            return {};
        }
    }
    return damaged(file, "its hash table has no end");
}

Error SymbolTable::read_system_v_hash(const ElfFile& file, std::uint64_t address) {
    const auto* header = file.table<std::uint32_t>(address, 2);
    if (header == nullptr) {
        return damaged(file, "its hash table is cut off");
    }
    const std::uint32_t count = header[1];
    if (header[0] == 0 || (bucket_count_ != 0 && count < count_)) {
        return damaged(file, "its hash table has an impossible size");
    }
    old_bucket_count_ = header[0];
    old_buckets_ = file.table<std::uint32_t>(address + 8, old_bucket_count_);
    old_chain_ = file.table<std::uint32_t>(address + 8 + 4 * std::uint64_t{old_bucket_count_}, //
                                           count);
    if (old_buckets_ == nullptr || old_chain_ == nullptr) {
        return damaged(file, "its hash table is cut off");
    }
    count_ = count;
    return {};
}

Error SymbolTable::set_version(const ElfFile& file, std::uint32_t index,
                               std::uint64_t name_offset) {
    const char* name = string(name_offset);
    if (name == nullptr || index > index_mask) {
        return damaged(file, "a symbol version's name is outside the string table");
    }
    if (versions_.size() <= index) {
        versions_.resize(index + 1, nullptr);
    }
    versions_[index] = name;
    return {};
}

Error SymbolTable::read_needed_versions(const ElfFile& file, std::uint64_t address,
                                        std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto* need = file.table<Elf64_Verneed>(address, 1);
        if (need == nullptr) {
            return damaged(file, "its list of needed versions is cut off");
        }
        std::uint64_t part = address + need->vn_aux;
        for (std::uint32_t k = 0; k < need->vn_cnt; ++k) {
            const auto* version = file.table<Elf64_Vernaux>(part, 1);
            if (version == nullptr) {
                return damaged(file, "its list of needed versions is cut off");
            }
            if (Error error =
                    set_version(file, version->vna_other & index_mask, version->vna_name)) {
                return error;
            }
            part += version->vna_next;
        }
        if (need->vn_next == 0) {
            break;
        }
        address += need->vn_next;
    }
    return {};
}

Error SymbolTable::read_defined_versions(const ElfFile& file, std::uint64_t address,
                                         std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto* definition = file.table<Elf64_Verdef>(address, 1);
        const auto* name =
            definition == nullptr
                ? nullptr
                : file.table<Elf64_Verdaux>(address + definition->vd_aux, definition->vd_cnt);
        if (name == nullptr) {
            return damaged(file, "its list of defined versions is cut off");
        }
        // The base definition is the file's own name: what has it has no version.
        if ((definition->vd_flags & VER_FLG_BASE) == 0 && definition->vd_cnt > 0) {
            if (Error error = set_version(file, definition->vd_ndx & index_mask, name->vda_name)) {
                return error;
            }
        }
        if (definition->vd_next == 0) {
            break;
        }
        address += definition->vd_next;
    }
    return {};
}

const char* SymbolTable::version(std::uint32_t index) const {
    if (version_indices_ == nullptr) {
        return nullptr;
    }
    const std::uint32_t version = version_indices_[index] & index_mask;
    return version < versions_.size() ? versions_[version] : nullptr;
}

std::string SymbolTable::text(std::uint32_t index) const {
    const char* wanted = version(index);
    return std::string(name(index)) + (wanted != nullptr ? std::string("@") + wanted : "");
}

bool SymbolTable::matches(std::uint32_t index, const SymbolName& wanted, SymbolUse use) const {
    const Elf64_Sym& symbol = symbols_[index];
    if (std::strcmp(name(symbol), wanted.text) != 0 || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) {
        return false;
    }
    if (symbol.st_shndx == SHN_UNDEF && (symbol.st_value == 0 || use == SymbolUse::call)) {
        return false;
    }
    if (symbol.st_value == 0 && symbol.st_shndx != SHN_ABS &&
        ELF64_ST_TYPE(symbol.st_info) != STT_TLS) {
        return false;
    }
    if (version_indices_ == nullptr || symbol.st_shndx == SHN_UNDEF) {
        return true;
    }
    const char* own = version(index);
    const bool hidden = (version_indices_[index] & hidden_bit) != 0;
    if (wanted.version != nullptr && own != nullptr) {
        return std::strcmp(own, wanted.version) == 0;
    }
    return !hidden;
}

const Elf64_Sym* SymbolTable::find(const SymbolName& wanted, SymbolUse use) const {
    if (bucket_count_ != 0) {
        const std::uint32_t hash = wanted.gnu_hash;
        const std::uint64_t word = bloom_[(hash / 64) & bloom_mask_];
        if (((word >> (hash % 64)) & (word >> ((hash >> bloom_shift_) % 64)) & 1) == 0) {
            return nullptr;
        }
        std::uint32_t index = buckets_[hash % bucket_count_];
        if (index == 0) {
            return nullptr;
        }
        for (; index < count_; ++index) {
            const std::uint32_t found = hashes_[index - first_hashed_];
            if ((found | 1) == (hash | 1) && matches(index, wanted, use)) {
                return &symbols_[index];
            }
            if ((found & 1) != 0) {
                return nullptr;
            }
        }
        return nullptr;
    }
    if (old_bucket_count_ == 0) {
        return nullptr;
    }
    std::uint32_t index = old_buckets_[wanted.system_v_hash % old_bucket_count_];
    // A damaged chain may be a ring: nothing has more links than there are symbols.
    for (std::uint32_t links = 0; index != 0 && index < count_ && links < count_; ++links) {
        if (matches(index, wanted, use)) {
            return &symbols_[index];
        }
        index = old_chain_[index];
    }
    return nullptr;
}

const Elf64_Sym* SymbolTable::covering(std::uint64_t address) const {
    const Elf64_Sym* best = nullptr;
    for (std::uint32_t index = 0; index < count_; ++index) {
        const Elf64_Sym& symbol = symbols_[index];
        const unsigned type = ELF64_ST_TYPE(symbol.st_info);
        const bool defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS &&
                             symbol.st_value != 0 && type != STT_TLS;
        if (!defined || symbol.st_value > address) {
            continue;
        }
        const bool within = symbol.st_size == 0 ? symbol.st_value == address
                                                : address - symbol.st_value < symbol.st_size;
        if (within && (best == nullptr || symbol.st_value > best->st_value)) {
            best = &symbol;
        }
    }
    return best;
}

} // namespace warren::image
