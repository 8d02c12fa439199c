#include "image/shared_scope.hpp"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <link.h>

#include "warren/image.h"

namespace warren::image {

namespace {

link_map* first_link() {
    void* program = dlopen(nullptr, RTLD_LAZY);
    link_map* link = nullptr;
    dlinfo(program, RTLD_DI_LINKMAP, &link);
    while (link != nullptr && link->l_prev != nullptr) {
        link = link->l_prev;
    }
    return link;
}

} // namespace

SharedScope& SharedScope::only() {
    static SharedScope& made = *new SharedScope;
    return made;
}

SharedScope::SharedScope() {
    // Whatever the host program has loaded itself, before the first image, is counted to its start.
    for (link_map* link = first_link(); link != nullptr; link = link->l_next) {
        add(link, true);
    }
}

bool SharedScope::has(const link_map* link) const {
    return std::any_of(libraries_.begin(), libraries_.end(),
                       [&](const auto& library) { return library->link == link; });
}

void SharedScope::add(link_map* link, bool from_start) {
    const bool is_program = link->l_prev == nullptr;
    FilePointer file;
    Error error = open_file(is_program ? "/proc/self/exe" : link->l_name, file);
    if (error) { // the kernel's own library, which is no file
        error.drop();
        return;
    }
    libraries_.push_back(std::make_unique<SharedLibrary>(
        SharedLibrary{file, link, reinterpret_cast<std::byte*>(link->l_addr), from_start}));
}

void SharedScope::add_with_needs(link_map* link) {
    std::vector<link_map*> waiting{link};
    for (std::size_t at = 0; at < waiting.size(); ++at) {
        if (has(waiting[at])) {
            continue;
        }
        add(waiting[at], false);
        if (!has(waiting[at])) {
            continue;
        }
        for (const char* needed : libraries_.back()->file->dynamic().needed) {
            for (link_map* other = first_link(); other != nullptr; other = other->l_next) {
                const char* slash = std::strrchr(other->l_name, '/');
                if (std::strcmp(slash != nullptr ? slash + 1 : other->l_name, needed) == 0) {
                    waiting.push_back(other);
                }
            }
        }
    }
}

Error SharedScope::load(const std::string& name, const ElfFile& user) {
    const std::lock_guard guard(lock_);
    if (loaded_[name]) {
        return {};
    }
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) {
        const std::string problem = dlerror();
        FilePointer file;
        Error error = find_library(name, {&user}, file);
        if (error) {
            error.drop();
            return fail(WARREN_IMAGE_ERR_FILE, "%s, which images share, can't be loaded: %s",
                        name.c_str(), problem.c_str());
        }
        handle = dlopen(file->location().c_str(), RTLD_NOW | RTLD_GLOBAL);
    }
    link_map* link = nullptr;
    if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &link) != 0) {
        return fail(WARREN_IMAGE_ERR_FILE, "%s, which images share, can't be loaded: %s",
                    name.c_str(), dlerror());
    }
    add_with_needs(link);
    loaded_[name] = true;
    return {};
}

SharedSymbol SharedScope::find(const SymbolName& name, SymbolUse use) {
    const std::lock_guard guard(lock_);
    std::string key = name.text;
    key.append("@").append(name.version != nullptr ? name.version : "");
    key.append(use == SymbolUse::call ? "()" : "");
    if (const auto known = found_.find(key); known != found_.end()) {
        return known->second;
    }
    for (const auto& library : libraries_) {
        const Elf64_Sym* symbol = library->file->symbols().find(name, use);
        if (symbol == nullptr) {
            continue;
        }
        SharedSymbol found{library.get(), symbol, nullptr};
        const unsigned type = ELF64_ST_TYPE(symbol->st_info);
        if (type != STT_TLS) {
            found.address = symbol->st_shndx == SHN_ABS ? reinterpret_cast<void*>(symbol->st_value)
                                                        : library->base + symbol->st_value;
        }
        if (type == STT_GNU_IFUNC) {
            found.address = reinterpret_cast<void* (*)()>(found.address)();
        }
        found_[key] = found;
        return found;
    }
    return {}; // not remembered: a library that is loaded later may have it
}

} // namespace warren::image
