// The program's modules, as the dynamic loader lists them.

#include <cstring>
#include <elf.h>
#include <link.h>
#include <string>
#include <vector>

#include "analyser/counts/guard.hpp"
#include "analyser/counts/platform.hpp"
#include "analyser/hooks/hooks.hpp"

namespace warren::locality::hooks {

namespace {

constexpr const char* own_name = "libwarren-hooks.so.";

struct Module {
    std::string path;
    std::vector<ModuleRecord> parts;
    bool seen;
};

// Protected by `modules_lock`, which is taken within the loader's lock.
std::vector<Module>* modules = nullptr;
unsigned long long changes_seen = 0;
std::uint32_t modules_lock = 0;

struct Walk {
    std::vector<Module>* found;
    unsigned long long changes;
    bool changed;
};

void note_of_build(const dl_phdr_info& info, const ElfW(Phdr) & program, ModuleRecord& record) {
    const char* at = reinterpret_cast<const char*>(info.dlpi_addr + program.p_vaddr);
    const char* const end = at + program.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
        const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(at);
        const char* const name = at + sizeof note;
        const char* const description = name + ((note.n_namesz + 3U) & ~3U);
        if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= sizeof record.build_id &&
            description + note.n_descsz <= end) {
            record.build_id_bytes = note.n_descsz;
            for (unsigned index = 0; index < note.n_descsz; ++index) {
                record.build_id[index] = static_cast<std::uint8_t>(description[index]);
            }
            return;
        }
        at = description + ((note.n_descsz + 3U) & ~3U);
    }
}

int visit(dl_phdr_info* info, std::size_t, void* argument) {
    auto& walk = *static_cast<Walk*>(argument);
    const unsigned long long changes = info->dlpi_adds + info->dlpi_subs;
    if (changes == changes_seen) {
        return 1; // as it was
    }
    walk.changes = changes;
    walk.changed = true;
    Module module{info->dlpi_name, {}, false};
    if (module.path.empty() && walk.found->empty()) { // the program
        module.path = counts::platform::executable();
    }
    if (module.path.empty() || module.path[0] != '/') {
        return 0; // the kernel's
    }
    ModuleRecord record{};
    record.event = ModuleRecord::loaded;
    for (unsigned index = 0; index < info->dlpi_phnum; ++index) {
        if (info->dlpi_phdr[index].p_type == PT_NOTE && record.build_id_bytes == 0) {
            note_of_build(*info, info->dlpi_phdr[index], record);
        }
    }
    const std::uint64_t page = counts::platform::page_bytes();
    for (unsigned index = 0; index < info->dlpi_phnum; ++index) {
        const ElfW(Phdr)& program = info->dlpi_phdr[index];
        if (program.p_type == PT_LOAD) {
            record.begin = (info->dlpi_addr + program.p_vaddr) & ~(page - 1);
            record.end =
                (info->dlpi_addr + program.p_vaddr + program.p_memsz + page - 1) & ~(page - 1);
            record.file_offset = program.p_offset & ~(page - 1);
            module.parts.push_back(record);
        }
    }
    if (!module.parts.empty()) {
        walk.found->push_back(std::move(module));
    }
    return 0;
}

bool is_same(const Module& one, const Module& other) {
    return one.path == other.path && one.parts[0].begin == other.parts[0].begin;
}

} // namespace

bool is_linked() {
    for (const link_map* link = _r_debug.r_map; link != nullptr; link = link->l_next) {
        const char* strings = nullptr;
        for (const ElfW(Dyn)* entry = link->l_ld; entry->d_tag != DT_NULL; ++entry) {
            if (entry->d_tag == DT_STRTAB) {
                strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
            }
        }
        for (const ElfW(Dyn)* entry = link->l_ld; entry->d_tag != DT_NULL; ++entry) {
            if (entry->d_tag == DT_NEEDED &&
                strings > reinterpret_cast<const char*>(link->l_addr) &&
                std::strncmp(strings + entry->d_un.d_val, own_name, std::strlen(own_name)) == 0) {
                return true;
            }
        }
    }
    return false;
}

void forget_modules() {
    modules = nullptr; // somebody may have been at them who is not here
    changes_seen = 0;
    modules_lock = 0;
}

void note_modules() {
    if (__atomic_exchange_n(&modules_lock, 1, __ATOMIC_ACQUIRE) != 0) {
        return; // somebody is at it
    }
    std::vector<Module> found;
    Walk walk{&found, 0, false};
    dl_iterate_phdr(visit, &walk);
    if (walk.changed) {
        if (modules == nullptr) {
            modules = new std::vector<Module>;
        }
        changes_seen = walk.changes;
        for (Module& before : *modules) {
            for (const Module& now : found) {
                before.seen = before.seen || is_same(before, now);
            }
            if (!before.seen) {
                ModuleRecord record{};
                record.event = ModuleRecord::unloaded;
                record.begin = before.parts.front().begin;
                record.end = before.parts.back().end;
                recorder().module_loaded(record, before.path);
            }
        }
        for (const Module& now : found) {
            bool known = false;
            for (const Module& before : *modules) {
                known = known || (before.seen && is_same(before, now));
            }
            for (std::size_t part = 0; !known && part < now.parts.size(); ++part) {
                recorder().module_loaded(now.parts[part], now.path);
            }
        }
        *modules = std::move(found);
    }
    __atomic_store_n(&modules_lock, 0, __ATOMIC_RELEASE);
}

} // namespace warren::locality::hooks
