// dlopen and its kin from inside an image: its own modules, and for the rest the system's.
//
// Handles are modules, or the system's for libraries that are shared. A message waits for dlerror
// in the thread's head.
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <memory>

#include "image/address_table.hpp"
#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"

namespace warren::image::libc {

namespace {

// Says of the message whether dlerror has yet to give it.
char& has_message() {
    return thread_head().has_message;
}

void keep_message(Error error) {
    const std::unique_ptr<ErrorRecord> record(error.take());
    std::snprintf(thread_head().error, sizeof thread_head().error, "%s", record->text.c_str());
    has_message() = 1;
}

void* system_result(void* result) {
    const char* text = result == nullptr ? ::dlerror() : nullptr;
    if (text != nullptr) {
        std::snprintf(thread_head().error, sizeof thread_head().error, "%s", text);
        has_message() = 1;
    }
    return result;
}

// The handle of the whole image, as dlopen(NULL) gives it.
void* handle_of(Image& image) {
    return &image;
}

Module* module_of(Image& image, void* handle) {
    for (const auto& module : image.modules()) {
        if (module.get() == handle) {
            return module.get();
        }
    }
    return nullptr;
}

// Whether the image may find what `library` defines without naming the library. What a host shares
// beside the system's libraries (one MPI library for all ranks) is there before any image wants it:
// an image has it when one of its modules needs it.
bool sees(Image& image, const SharedLibrary& library) {
    const Sharing& sharing = image.options().sharing;
    const auto is_host_choice = [&](const std::string& name) {
        return sharing.is_shared(name) && !is_system_library(name);
    };
    if (!is_host_choice(library.file->name())) {
        return true;
    }
    for (const auto& module : image.modules()) {
        for (const char* needed : module->file->dynamic().needed) {
            if (is_host_choice(needed)) {
                return true;
            }
        }
    }
    return false;
}

void* find_symbol(void* handle, const char* name, const char* version, const void* caller) {
    Image& image = *current_image();
    const std::lock_guard guard(image.load_lock());
    const SymbolName wanted(name, version);
    Definition found;
    if (handle == RTLD_DEFAULT || handle == handle_of(image)) {
        found = image.find(wanted, SymbolUse::call);
        if (found.library != nullptr && !sees(image, *found.library)) {
            found = {};
        }
    } else if (handle == RTLD_NEXT) {
        const Module* module = address_table().find(caller);
        found = module != nullptr && module->image == &image ? image.find_after(wanted, *module)
                                                             : image.find(wanted, SymbolUse::call);
    } else if (Module* module = module_of(image, handle)) {
        found = image.find_within(wanted, *module);
        if (!found) { // what it needs of the shared libraries counts too
            found = image.find_after(wanted, *image.modules().back());
        }
    } else {
        return system_result(version != nullptr ? ::dlvsym(handle, name, version)
                                                : ::dlsym(handle, name));
    }
    if (!found) {
        keep_message(fail(0, "undefined symbol: %s%s%s", name, version != nullptr ? "@" : "",
                          version != nullptr ? version : ""));
        return nullptr;
    }
    return Image::address_of(found);
}

} // namespace

void* dlopen(const char* name, int flags) {
    Image& image = *current_image();
    if (name == nullptr) {
        return handle_of(image);
    }
    const char* slash = std::strrchr(name, '/');
    if (image.options().sharing.is_shared(slash != nullptr ? slash + 1 : name)) {
        return system_result(::dlopen(name, flags));
    }
    Module* module = nullptr;
    if ((flags & RTLD_NOLOAD) != 0) {
        const std::lock_guard guard(image.load_lock());
        for (const auto& present : image.modules()) {
            if (present->file->name() == name || present->file->path() == name) {
                ++present->opened;
                return present.get();
            }
        }
        return nullptr;
    }
    const Module* caller = address_table().find(__builtin_return_address(0));
    Error error = slash != nullptr ? image.load_library(name, module)
                                   : image.find_and_load_library(name, caller, module);
    if (error) {
        keep_message(error);
        return nullptr;
    }
    return module;
}

void* dlsym(void* handle, const char* name) {
    return find_symbol(handle, name, nullptr, __builtin_return_address(0));
}

void* dlvsym(void* handle, const char* name, const char* version) {
    return find_symbol(handle, name, version, __builtin_return_address(0));
}

int dlclose(void* handle) {
    Image& image = *current_image();
    if (handle == handle_of(image)) {
        return 0;
    }
    if (Module* module = module_of(image, handle)) {
        image.close_library(*module);
        return 0;
    }
    return ::dlclose(handle);
}

char* dlerror() {
    if (has_message() == 0) {
        return nullptr;
    }
    has_message() = 0;
    return thread_head().error;
}

int dladdr(const void* address, Dl_info* info) {
    const Module* module = address_table().find(address);
    if (module == nullptr) {
        return ::dladdr(address, info);
    }
    const auto own =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - module->base);
    const Elf64_Sym* symbol = module->file->symbols().covering(own);
    info->dli_fname = module->file->path().c_str();
    info->dli_fbase = module->start;
    info->dli_sname = symbol != nullptr ? module->file->symbols().name(*symbol) : nullptr;
    info->dli_saddr = symbol != nullptr ? module->at(symbol->st_value) : nullptr;
    return 1;
}

int dladdr1(const void* address, Dl_info* info, void** extra, int flags) {
    const Module* module = address_table().find(address);
    if (module == nullptr) {
        return ::dladdr1(address, info, extra, flags);
    }
    if (flags == RTLD_DL_LINKMAP) {
        *extra = const_cast<link_map*>(&module->link);
    } else {
        *extra = nullptr;
    }
    return libc::dladdr(address, info);
}

int dlinfo(void* handle, int request, void* answer) {
    Image& image = *current_image();
    Module* module =
        handle == handle_of(image) ? image.modules().front().get() : module_of(image, handle);
    if (module == nullptr) {
        return ::dlinfo(handle, request, answer);
    }
    if (request == RTLD_DI_LINKMAP) {
        *static_cast<link_map**>(answer) = &module->link;
        return 0;
    }
    keep_message(fail(0, "dlinfo: request %d is not known of private modules", request));
    return -1;
}

int find_object(void* address, dl_find_object* found) {
    return warren_image_find_object(address, found);
}

} // namespace warren::image::libc
