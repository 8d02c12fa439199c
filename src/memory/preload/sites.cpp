#include "memory/preload/sites.hpp"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory/heap/region.hpp"
#include "memory/preload/source_files.hpp"
#include "memory/preload/symbol_name.hpp"

namespace warren::memory {

namespace {

// Addresses of a module, from its load address, and the rules that they fit.
struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t rules;
};

// As many as programs load; in those beyond, no rule by site fits.
constexpr unsigned module_limit = 512;
// Functions and compilations of one module that patterns fit; the rest is not seen.
constexpr std::size_t range_limit = 65536;

class Ranges {
  public:
    void add(const Range& range) {
        if (range.rules == 0 || count_ == range_limit) {
            return;
        }
        if (at_ == nullptr) { // address space, of which what is used becomes memory
            at_ = static_cast<Range*>(take_metadata(range_limit * sizeof(Range)));
        }
        if (at_ != nullptr) {
            at_[count_++] = range;
        }
    }
    std::uint64_t rules_at(std::uint64_t address) const {
        std::uint64_t rules = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            rules |= address >= at_[i].begin && address < at_[i].end ? at_[i].rules : 0;
        }
        return rules;
    }

  private:
    Range* at_ = nullptr;
    std::size_t count_ = 0;
};

struct Module {
    const link_map* map = nullptr;
    std::uintptr_t base = 0;
    std::uint64_t rules = 0; // that fit all of it
    // A rule with several conditions fits where all of them do, so they are kept apart.
    Ranges functions;
    Ranges files;
};

constinit std::mutex modules_mutex;
constinit Module modules[module_limit];
constinit unsigned module_count = 0;
constinit const Plan* plan = nullptr;
constinit std::uint64_t function_rules = 0; // that ask for one
constinit std::uint64_t file_rules = 0;

// Addresses that were found, by hash. The address is stored last, with release.
struct Entry {
    std::atomic<std::uintptr_t> address;
    std::atomic<std::uint64_t> rules;
};
constexpr std::size_t entry_count = 16384;
constexpr std::size_t probes = 16;
constinit Entry entries[entry_count];
constexpr std::uintptr_t being_written = 1;

// A file, mapped while it is read.
class MappedFile {
  public:
    explicit MappedFile(const char* path) {
        // The functions open and close are where a thread may be cancelled, with our lock.
        const int file =
            static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
        struct stat status {};
        if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
            status.st_size > 0) {
            void* mapped = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ,
                                MAP_PRIVATE, file, 0);
            if (mapped != MAP_FAILED) {
                begin_ = static_cast<const char*>(mapped);
                bytes_ = static_cast<std::size_t>(status.st_size);
            }
        }
        if (file >= 0) {
            syscall(SYS_close, file);
        }
    }
    ~MappedFile() {
        if (begin_ != nullptr) {
            munmap(const_cast<char*>(begin_), bytes_);
        }
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    // `count` things at an offset, null: it doesn't have them.
    template <typename Thing>
    const Thing* at(std::uint64_t offset, std::uint64_t count) const {
        return offset <= bytes_ && count <= (bytes_ - offset) / sizeof(Thing) &&
                       offset % alignof(Thing) == 0
                   ? reinterpret_cast<const Thing*>(begin_ + offset)
                   : nullptr;
    }

  private:
    const char* begin_ = nullptr;
    std::size_t bytes_ = 0;
};

const char* name_of_path(const char* path) {
    const char* slash = std::strrchr(path, '/');
    return slash != nullptr ? slash + 1 : path;
}

// The module's file as an ELF file.
class ElfSections {
  public:
    explicit ElfSections(const MappedFile& file) : file_(file) {
        header_ = file.at<ElfW(Ehdr)>(0, 1);
        if (header_ == nullptr || std::memcmp(header_->e_ident, ELFMAG, SELFMAG) != 0 ||
            header_->e_ident[EI_CLASS] != ELFCLASS64) {
            return;
        }
        sections_ = file.at<ElfW(Shdr)>(header_->e_shoff, header_->e_shnum);
        count_ = sections_ != nullptr ? header_->e_shnum : 0;
        if (header_->e_shstrndx < count_) {
            names_ = text(sections_[header_->e_shstrndx]);
        }
    }

    const ElfW(Shdr) * by_type(std::uint32_t type) const {
        for (std::size_t i = 0; i < count_; ++i) {
            if (sections_[i].sh_type == type) {
                return &sections_[i];
            }
        }
        return nullptr;
    }

    Bytes by_name(const char* name) const {
        for (std::size_t i = 0; i < count_; ++i) {
            const ElfW(Shdr)& section = sections_[i];
            if (names_.bytes > section.sh_name &&
                std::strcmp(names_.begin + section.sh_name, name) == 0 &&
                (section.sh_flags & SHF_COMPRESSED) == 0 && section.sh_type != SHT_NOBITS) {
                const char* begin = file_.at<char>(section.sh_offset, section.sh_size);
                return {begin, begin != nullptr ? section.sh_size : 0};
            }
        }
        return {};
    }

    // A table of strings; empty unless it ends with a null.
    Bytes text(const ElfW(Shdr) & section) const {
        const char* begin = file_.at<char>(section.sh_offset, section.sh_size);
        return begin != nullptr && section.sh_size != 0 && begin[section.sh_size - 1] == '\0'
                   ? Bytes{begin, section.sh_size}
                   : Bytes{};
    }
    const ElfW(Shdr) * at(std::uint32_t index) const {
        return index < count_ ? &sections_[index] : nullptr;
    }

  private:
    const MappedFile& file_;
    const ElfW(Ehdr) * header_ = nullptr;
    const ElfW(Shdr) * sections_ = nullptr;
    std::size_t count_ = 0;
    Bytes names_;
};

// Rules whose function pattern fits a symbol, of those in `wanted`.
std::uint64_t rules_of_symbol(const char* symbol, std::uint64_t wanted) {
    char qualified[512];
    const bool has_name = qualified_name(symbol, qualified, sizeof qualified);
    std::uint64_t fitting = 0;
    for (unsigned rule = 0; rule < plan->rule_count; ++rule) {
        const char* pattern = plan->rules[rule].site.function;
        if ((wanted >> rule & 1) != 0 &&
            (matches(pattern, symbol) || (has_name && matches(pattern, qualified)))) {
            fitting |= std::uint64_t{1} << rule;
        }
    }
    return fitting;
}

void read_symbols(const MappedFile& file, const ElfSections& elf, std::uint64_t wanted,
                  Ranges& functions) {
    const ElfW(Shdr)* table = elf.by_type(SHT_SYMTAB);
    table = table != nullptr ? table : elf.by_type(SHT_DYNSYM);
    const ElfW(Shdr)* strings = table != nullptr ? elf.at(table->sh_link) : nullptr;
    if (strings == nullptr) {
        return;
    }
    const Bytes names = elf.text(*strings);
    const std::size_t count = table->sh_size / sizeof(ElfW(Sym));
    const auto* symbols = file.at<ElfW(Sym)>(table->sh_offset, count);
    for (std::size_t i = 0; symbols != nullptr && i < count; ++i) {
        const ElfW(Sym)& symbol = symbols[i];
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_size != 0 &&
            symbol.st_name < names.bytes) {
            functions.add({symbol.st_value, symbol.st_value + symbol.st_size,
                           rules_of_symbol(names.begin + symbol.st_name, wanted)});
        }
    }
}

struct FileSearch {
    Ranges& files;
    std::uint64_t wanted;

    // Rules whose file pattern fits a compilation's source, as the compiler was given it: the
    // pattern names the last folders of the path, or all.
    std::uint64_t rules_of(const char* path) const {
        std::uint64_t fitting = 0;
        for (unsigned rule = 0; rule < plan->rule_count; ++rule) {
            if ((wanted >> rule & 1) == 0) {
                continue;
            }
            for (const char* part = path; part != nullptr;) {
                if (matches(plan->rules[rule].site.file, part)) {
                    fitting |= std::uint64_t{1} << rule;
                    break;
                }
                const char* slash = std::strchr(part, '/');
                part = slash != nullptr ? slash + 1 : nullptr;
            }
        }
        return fitting;
    }
};

std::uint64_t name_fits(void* search, const char* path) {
    return static_cast<FileSearch*>(search)->rules_of(path);
}

void add_file_range(void* search, std::uint64_t rules, std::uint64_t begin, std::uint64_t end) {
    static_cast<FileSearch*>(search)->files.add({begin, end, rules});
}

void read_module(const link_map& map, const char* path, Module& module) {
    const char* name = name_of_path(path);
    module.map = &map;
    module.base = map.l_addr;
    for (unsigned rule = 0; rule < plan->rule_count; ++rule) {
        const char* pattern = plan->rules[rule].site.library;
        if (pattern == nullptr || matches(pattern, name)) {
            module.rules |= std::uint64_t{1} << rule;
        }
    }
    const std::uint64_t by_function = module.rules & function_rules;
    const std::uint64_t by_file = module.rules & file_rules;
    if ((by_function | by_file) == 0) {
        return;
    }
    const MappedFile file(path);
    const ElfSections elf(file);
    if (by_function != 0) {
        read_symbols(file, elf, by_function, module.functions);
    }
    if (by_file != 0) {
        FileSearch search{module.files, by_file};
        const DebugSections debug{elf.by_name(".debug_info"), elf.by_name(".debug_abbrev"),
                                  elf.by_name(".debug_str"), elf.by_name(".debug_line_str"),
                                  elf.by_name(".debug_aranges")};
        find_source_files(debug, {&search, name_fits, add_file_range});
    }
}

std::uint64_t find_out(const void* address) {
    dl_find_object found{};
    // The address behind the call may be the next function's.
    const auto call = reinterpret_cast<std::uintptr_t>(address) - 1;
    if (_dl_find_object(reinterpret_cast<void*>(call), &found) != 0) {
        return 0; // code that the program makes itself
    }
    const link_map& map = *found.dlfo_link_map;
    char own_path[4096];
    const char* path = map.l_name;
    if (path == nullptr || *path == '\0') {
        const ssize_t length = readlink("/proc/self/exe", own_path, sizeof own_path - 1);
        own_path[length > 0 ? length : 0] = '\0';
        path = own_path;
    }
    const std::lock_guard hold(modules_mutex);
    Module* module = nullptr;
    for (unsigned i = 0; i < module_count && module == nullptr; ++i) {
        if (modules[i].map == &map && modules[i].base == map.l_addr) {
            module = &modules[i];
        }
    }
    if (module == nullptr) {
        if (module_count == module_limit) {
            return 0;
        }
        module = &modules[module_count++];
        read_module(map, path, *module);
    }
    const std::uint64_t offset = call - map.l_addr;
    return module->rules & (~function_rules | module->functions.rules_at(offset)) &
           (~file_rules | module->files.rules_at(offset));
}

} // namespace

void start_sites(const Plan& its_plan) {
    plan = &its_plan;
    for (unsigned rule = 0; rule < its_plan.rule_count; ++rule) {
        const Site& site = its_plan.rules[rule].site;
        function_rules |= std::uint64_t{site.function != nullptr} << rule;
        file_rules |= std::uint64_t{site.file != nullptr} << rule;
    }
}

std::uint64_t rules_of_site(const void* address) {
    const auto key = reinterpret_cast<std::uintptr_t>(address);
    const std::size_t hash = key * 0x9e3779b97f4a7c15 >> 40;
    for (std::size_t probe = 0; probe < probes; ++probe) {
        Entry& entry = entries[(hash + probe) % entry_count];
        std::uintptr_t there = entry.address.load(std::memory_order_acquire); // with its rules
        if (there == key) {
            return entry.rules.load(std::memory_order_relaxed);
        }
        if (there == 0) {
            const std::uint64_t rules = find_out(address);
            if (entry.address.compare_exchange_strong(there, being_written,
                                                      std::memory_order_relaxed)) {
                entry.rules.store(rules, std::memory_order_relaxed);
                entry.address.store(key, std::memory_order_release);
            }
            return rules;
        }
    }
    return find_out(address); // a crowded place of the table
}

void lock_sites() {
    modules_mutex.lock();
}

void unlock_sites() {
    modules_mutex.unlock();
}

} // namespace warren::memory
