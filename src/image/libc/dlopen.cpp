// dlopen and its kin from inside an image: its own modules, and for the rest the system's.
//
// Handles are modules, or the system's for libraries that are shared. A message waits for dlerror
// in the thread's head.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <memory>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "image/address_table.hpp"
#include "image/architecture.hpp"
#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/open_file.hpp"

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

// Whether the system's loader has given this handle, which it doesn't check itself.
bool is_system_handle(const void* handle) {
    struct Search {
        const void* handle;
        bool found;
    } search = {handle, false};
    // The loader changes its lists under the lock that it holds while it calls this.
    const auto look = [](dl_phdr_info*, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        const auto* space = reinterpret_cast<const r_debug_extended*>(&_r_debug);
        while (space != nullptr && !wanted.found) {
            const link_map* map = space->base.r_map;
            while (map != nullptr && map != wanted.handle) {
                map = map->l_next;
            }
            wanted.found = map != nullptr;
            space = space->base.r_version > 1 ? space->r_next : nullptr;
        }
        return 1;
    };
    ::dl_iterate_phdr(look, &search);
    return search.found;
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

// The name of a module in messages: the program's is that by which it was started.
std::string shown_name(Image& image, const Module* module) {
    return module == nullptr || module == image.program() ? image.libc_state().program_path()
                                                          : module->file->path();
}

void* find_symbol(void* handle, const char* name, const char* version, const void* caller) {
    Image& image = *current_image();
    has_message() = 0; // that of an earlier call
    const std::lock_guard guard(image.load_lock());
    const SymbolName wanted(name, version);
    const bool by_caller = handle == RTLD_DEFAULT || handle == RTLD_NEXT;
    const std::string place =
        shown_name(image, by_caller ? address_table().find(caller) : module_of(image, handle));
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
            found = image.find_shared(wanted);
        }
    } else if (!is_system_handle(handle)) {
        keep_message(fail(0, "invalid handle %p: never opened, or closed", handle));
        return nullptr;
    } else {
        return system_result(version != nullptr ? ::dlvsym(handle, name, version)
                                                : ::dlsym(handle, name));
    }
    const bool is_substitute = found && found.module == nullptr && found.library == nullptr;
    if (is_substitute && version != nullptr && ::dlvsym(RTLD_DEFAULT, name, version) == nullptr) {
        found = {}; // the C library has no such version
    }
    if (!found) {
        keep_message(fail(0, "%s: undefined symbol: %s%s%s", place.c_str(), name,
                          version != nullptr ? ", version " : "",
                          version != nullptr ? version : ""));
        return nullptr;
    }
    return Image::address_of(found);
}

// Why the system's loader would refuse a file; empty: not by what its first bytes say.
std::string fault_of_file(const char* path) {
    const std::string not_opened = "cannot open shared object file: ";
    OpenFile file;
    file.open(path);
    struct stat status {};
    if (file.number() < 0 || fstat(file.number(), &status) != 0) {
        return not_opened + std::strerror(errno);
    }
    if (S_ISDIR(status.st_mode)) {
        return std::string("cannot read file data: ") + std::strerror(EISDIR);
    }
    Elf64_Ehdr header{};
    const ssize_t bytes = pread(file.number(), &header, sizeof header, 0);
    if (bytes < static_cast<ssize_t>(sizeof header)) {
        return "file too short";
    }
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        return "invalid ELF header";
    }
    if (header.e_ident[EI_CLASS] == ELFCLASS32) {
        return "wrong ELF class: ELFCLASS32";
    }
    if (header.e_machine != architecture::elf_machine) {
        return not_opened + std::strerror(ENOENT); // it looks on, for one of this machine
    }
    return header.e_type == ET_REL ? "only ET_DYN and ET_EXEC can be loaded" : "";
}

// Programs compare dlerror's text with what they know of the system's loader. What Warren adds for
// those who start programs is in parentheses at the end.
Error in_words_of_loader(const char* name, Error error) {
    const std::unique_ptr<ErrorRecord> record(error.take());
    const std::string fault = std::strchr(name, '/') != nullptr ? fault_of_file(name) : "";
    if (!fault.empty()) {
        return fail(record->error_class, "%s: %s", name, fault.c_str());
    }
    std::string text = record->text;
    const std::size_t addition = text.rfind(" (");
    if (addition != std::string::npos && text.ends_with(')')) {
        text.resize(addition);
    }
    return fail(record->error_class, "%s", text.c_str());
}

bool is_loaded(Image& image, const char* name) {
    const std::lock_guard guard(image.load_lock());
    return image.find_loaded(name) != nullptr;
}

} // namespace

void* dlopen(const char* name, int flags) {
    Image& image = *current_image();
    has_message() = 0; // that of an earlier call
    if (name == nullptr || *name == 0) {
        return handle_of(image);
    }
    const char* slash = std::strrchr(name, '/');
    if (image.options().sharing.is_shared(slash != nullptr ? slash + 1 : name)) {
        return system_result(::dlopen(name, flags));
    }
    if ((flags & (RTLD_LAZY | RTLD_NOW)) == 0) {
        keep_message(fail(0, "%s: invalid mode for dlopen(): %s", name, std::strerror(EINVAL)));
        return nullptr;
    }
    Module* module = nullptr;
    if ((flags & RTLD_NOLOAD) != 0 && slash != nullptr && !is_loaded(image, name)) {
        if (const std::string fault = fault_of_file(name); !fault.empty()) {
            keep_message(fail(0, "%s: %s", name, fault.c_str()));
        }
        return nullptr;
    }
    const Module* caller = address_table().find(__builtin_return_address(0));
    Error error = slash != nullptr ? image.load_library(name, module, flags)
                                   : image.find_and_load_library(name, caller, module, flags);
    if (error) {
        keep_message(in_words_of_loader(name, error));
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
    has_message() = 0; // that of an earlier call
    if (handle == handle_of(image)) {
        return 0;
    }
    {
        const std::lock_guard guard(image.load_lock());
        if (Module* module = module_of(image, handle)) {
            if (image.close_library(*module)) {
                return 0;
            }
            keep_message(fail(0, "%s: shared object not open", module->file->path().c_str()));
            return -1;
        }
    }
    if (!is_system_handle(handle)) {
        keep_message(fail(0, "invalid handle %p: shared object not open", handle));
        return -1;
    }
    const int result = ::dlclose(handle);
    if (result != 0) {
        system_result(nullptr);
    }
    return result;
}

char* dlerror() {
    if (has_message() == 0) {
        return nullptr;
    }
    has_message() = 0;
    return thread_head().error;
}

namespace {

// A substitute has the name of the function that it stands for.
int dladdr_of_shared(const void* address, Dl_info* info) {
    const char* name = find_substitute_name(address);
    const void* real = name != nullptr ? ::dlsym(RTLD_DEFAULT, name) : nullptr;
    const int found = ::dladdr(real != nullptr ? real : address, info);
    if (found != 0 && real != nullptr) {
        info->dli_sname = name;
        info->dli_saddr = const_cast<void*>(address);
    }
    return found;
}

} // namespace

int dladdr(const void* address, Dl_info* info) {
    const Module* module = address_table().find(address);
    if (module == nullptr) {
        return dladdr_of_shared(address, info);
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
        const int found = ::dladdr1(address, info, extra, flags);
        return found != 0 ? dladdr_of_shared(address, info) : 0;
    }
    if (flags == RTLD_DL_LINKMAP) {
        *extra = const_cast<link_map*>(&module->link);
    } else {
        *extra = nullptr;
    }
    return libc::dladdr(address, info);
}

namespace {

std::string folder_of(const std::string& path) {
    char* here = path.starts_with('/') ? nullptr : ::get_current_dir_name();
    std::string folder = here != nullptr ? std::string(here) + "/" + path : path;
    std::free(here);
    return folder.substr(0, std::max<std::size_t>(folder.rfind('/'), 1));
}

} // namespace

int dlinfo(void* handle, int request, void* answer) {
    Image& image = *current_image();
    has_message() = 0; // that of an earlier call
    const std::lock_guard guard(image.load_lock());
    Module* module =
        handle == handle_of(image) ? image.modules().front().get() : module_of(image, handle);
    if (module == nullptr) {
        if (!is_system_handle(handle)) {
            keep_message(fail(0, "invalid handle %p: never opened, or closed", handle));
            return -1;
        }
        const int result = ::dlinfo(handle, request, answer);
        if (result != 0) {
            system_result(nullptr);
        }
        return result;
    }
    if (request == RTLD_DI_LINKMAP) {
        *static_cast<link_map**>(answer) = &module->link;
        return 0;
    }
    if (request == RTLD_DI_LMID) {
        *static_cast<Lmid_t*>(answer) = LM_ID_BASE;
        return 0;
    }
    if (request == RTLD_DI_ORIGIN) {
        const std::string folder = folder_of(module->file->path());
        std::memcpy(answer, folder.c_str(), folder.size() + 1);
        return 0;
    }
    if (request == RTLD_DI_TLS_DATA) {
        *static_cast<void**>(answer) =
            module->has_tls() ? architecture::thread_pointer() + module->tls_offset : nullptr;
        return 0;
    }
    keep_message(fail(0, "dlinfo: request %d is not known of private modules", request));
    return -1;
}

namespace {

// As the C library's: file(function+0xoffset) [address].
std::string describe(const void* address) {
    Dl_info info{};
    char text[64];
    std::snprintf(text, sizeof text, "[%p]", address);
    if (libc::dladdr(address, &info) == 0 || info.dli_fname == nullptr || *info.dli_fname == 0) {
        return text;
    }
    const void* from = info.dli_saddr != nullptr ? info.dli_saddr : info.dli_fbase;
    const auto to = reinterpret_cast<std::uintptr_t>(address);
    const auto start = reinterpret_cast<std::uintptr_t>(from);
    char offset[64];
    std::snprintf(offset, sizeof offset, "%c%#lx) ", to >= start ? '+' : '-',
                  static_cast<unsigned long>(to >= start ? to - start : start - to));
    return std::string(info.dli_fname) + "(" +
           (info.dli_sname != nullptr && info.dli_saddr != nullptr ? info.dli_sname : "") + offset +
           text;
}

} // namespace

char** backtrace_symbols(void* const* addresses, int count) {
    std::vector<std::string> lines;
    std::size_t bytes = static_cast<std::size_t>(std::max(count, 0)) * sizeof(char*);
    for (int i = 0; i < count; ++i) {
        lines.push_back(describe(addresses[i]));
        bytes += lines.back().size() + 1;
    }
    auto** list = static_cast<char**>(std::malloc(std::max(bytes, sizeof(char*)))); // one block
    if (list == nullptr) {
        return nullptr;
    }
    char* place = reinterpret_cast<char*>(list + lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
        list[i] = place;
        place = std::copy_n(lines[i].c_str(), lines[i].size() + 1, place);
    }
    return list;
}

void backtrace_symbols_fd(void* const* addresses, int count, int file) {
    for (int i = 0; i < count; ++i) {
        const std::string line = describe(addresses[i]) + "\n";
        if (::write(file, line.data(), line.size()) < 0) {
            return;
        }
    }
}

// Runs when code calls a function that no library defined when the caller was loaded.
void undefined_function() {
    const Module* caller = address_table().find(__builtin_return_address(0));
    std::string names;
    if (caller != nullptr) {
        for (const auto& [place, index] : caller->undefined) {
            names += (names.empty() ? "" : " or ") + caller->file->symbols().text(index);
        }
    }
    std::fprintf(LibcState::current().error(),
                 "%s: symbol lookup error: %s: undefined symbol: %s\n",
                 LibcState::current().program_name(),
                 caller != nullptr ? caller->file->path().c_str() : "a library", names.c_str());
    constexpr int exit_status = 127; // the system's loader's
    libc::immediate_exit(exit_status);
}

int find_object(void* address, dl_find_object* found) {
    return warren_image_find_object(address, found);
}

} // namespace warren::image::libc
