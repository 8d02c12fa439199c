#include "image/image.hpp"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <sys/stat.h>

#include "base/futex.hpp"
#include "image/address_table.hpp"
#include "image/architecture.hpp"
#include "image/debugger.hpp"
#include "image/host.hpp"
#include "image/load_plan.hpp"
#include "image/relocation.hpp"
#include "image/suitability.hpp"
#include "warren/image.h"

namespace warren::image {

Image::Image(ImageOptions options) : options_(std::move(options)) {
    libc_state_.open_streams(options_.descriptors);
}

Image::~Image() {
    discard(0);
}

bool Image::variables(std::vector<Range>& ranges) {
    const std::unique_lock guard(load_lock_, std::try_to_lock);
    if (!guard) {
        return false;
    }
    for (const auto& module : modules_) {
        for (const Segment& segment : module->file->segments()) {
            if (segment.writable) {
                ranges.push_back({reinterpret_cast<std::uintptr_t>(module->at(segment.address)),
                                  segment.memory_bytes});
            }
        }
    }
    return true;
}

// ---- loading

Error Image::load_library(const std::string& path, Module*& module, int mode) {
    const std::lock_guard guard(load_lock_);
    FilePointer file;
    if (Error error = open_file(path, file)) {
        return error;
    }
    if (Error error = load(file, module, mode)) {
        return error;
    }
    construct(*module);
    return {};
}

Error Image::find_and_load_library(const std::string& name, const Module* user, Module*& module,
                                   int mode) {
    const std::lock_guard guard(load_lock_);
    if (Module* present = find_loaded(name)) {
        module = present;
        ++module->opened;
        apply_mode(*module, mode);
        bind_undefined();
        return {};
    }
    std::vector<const ElfFile*> chain;
    if (user != nullptr) {
        chain.push_back(user->file.get());
    }
    if (program_ != nullptr && program_ != user) {
        chain.push_back(program_->file.get());
    }
    FilePointer file;
    if (Error error = find_library(name, chain, file)) {
        return error;
    }
    if ((mode & RTLD_NOLOAD) != 0) { // not loaded, and that is no error
        return {};
    }
    if (Error error = load(file, module, mode)) {
        return error;
    }
    construct(*module);
    return {};
}

// A name without folders is that of a library; a path may be another one of the same file.
Module* Image::find_loaded(const std::string& path) {
    struct stat status {};
    const bool is_path = path.find('/') != std::string::npos && stat(path.c_str(), &status) == 0;
    for (const auto& module : modules_) {
        if (is_path ? module->file->identity() == identity_of(status)
                    : module->file->name() == path) {
            return module.get();
        }
    }
    return nullptr;
}

// A later dlopen can add RTLD_NODELETE and RTLD_GLOBAL to an open library; it never removes them.
void Image::apply_mode(Module& root, int mode) {
    root.kept |= (mode & RTLD_NODELETE) != 0;
    if ((mode & RTLD_GLOBAL) != 0) {
        for (Module* module : with_needs(root)) {
            module->global = true;
        }
    }
}

// A function that was missing may have come with a library.
void Image::bind_undefined() {
    for (const auto& module : modules_) {
        std::erase_if(module->undefined, [&](const auto& slot) {
            const SymbolTable& symbols = module->file->symbols();
            const Definition found = find({symbols.name(slot.second), symbols.version(slot.second)},
                                          SymbolUse::call, module.get());
            if (found) {
                note_use(*module, found.module);
                void* address = address_of(found);
                std::memcpy(module->at(slot.first), &address, sizeof address);
            }
            return static_cast<bool>(found);
        });
    }
}

Error Image::load_program(const std::string& path) {
    const std::lock_guard guard(load_lock_);
    FilePointer file;
    if (Error error = open_file(path, file)) {
        return error;
    }
    if (Error error = check_private(*file)) {
        return error;
    }
    if (!file->is_program() || file->header().e_entry == 0) {
        return fail(WARREN_IMAGE_ERR_UNSUITABLE, "%s is a library, no program", path.c_str());
    }
    if (!modules_.empty()) {
        return fail(WARREN_IMAGE_ERR_USE, "%s: the program comes first into an image, which has %s",
                    path.c_str(), modules_.front()->file->path().c_str());
    }
    return load(file, program_);
}

// A variable of the C library's that a program defines itself is the one that the C library's
// functions use, as in a process: argp_program_version is meant to be defined so. The streams and
// the environment begin with the image's values.
void Image::take_variables(std::size_t first) {
    if (first > 0 || modules_.empty()) {
        return; // none of a program's
    }
    constexpr Variable first_values[] = {Variable::standard_input, Variable::standard_output,
                                         Variable::standard_error, Variable::environment,
                                         Variable::program_path,   Variable::program_name};
    for (std::size_t at = 0; const char* name = variable_name(at); ++at) {
        Variable variable{};
        find_variable(name, variable);
        const Elf64_Sym* symbol =
            modules_[0]->file->symbols().find(SymbolName(name, nullptr), SymbolUse::address);
        if (symbol != nullptr && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT &&
            std::find(std::begin(first_values), std::end(first_values), variable) ==
                std::end(first_values)) {
            libc_state_.place(variable) = modules_[0]->at(symbol->st_value);
        }
    }
}

Error Image::load(const FilePointer& root, Module*& module, int mode) {
    std::vector<FilePointer> present;
    for (const auto& other : modules_) {
        if (other->file->identity() == root->identity()) {
            module = other.get();
            ++module->opened;
            apply_mode(*module, mode);
            bind_undefined();
            return {};
        }
        present.push_back(other->file);
    }
    const std::size_t first = modules_.size();
    const std::string key = first == 0 ? plan_key(*root) : "";
    std::shared_ptr<const LoadPlan> known = first == 0 ? LoadPlan::find(key) : nullptr;
    auto recorded = std::make_shared<LoadPlan>();
    if (known == nullptr) {
        if (Error error = find_closure(root, options_.sharing, present, recorded->closure)) {
            return error;
        }
        for (const Closure::Member& member : recorded->closure.members) {
            if (Error error = check_private(*member.file)) {
                return error;
            }
        }
    }
    const Closure& closure = known != nullptr ? known->closure : recorded->closure;
    for (const std::string& name : closure.shared) {
        if (Error error = SharedScope::only().load(name, *root)) {
            return error;
        }
    }
    recorded->symbols.resize(closure.members.size());
    Error error = map_new(closure, first);
    for (std::size_t at = first; at < modules_.size() && first > 0; ++at) {
        modules_[at]->global = (mode & RTLD_GLOBAL) != 0;
        modules_[at]->root_first = (mode & RTLD_DEEPBIND) != 0;
        modules_[at]->root = modules_[first].get();
    }
    if (!error && first > 0) {
        apply_mode(*modules_[first], mode);
    }
    take_variables(first);
    const bool lazy = (mode & RTLD_NOW) == 0;
    for (std::size_t at = modules_.size(); at > first && !error; --at) {
        // Modules that others need come later in the list.
        const std::size_t member = at - 1 - first;
        error =
            relocate(*this, *modules_[at - 1], known != nullptr ? &known->symbols[member] : nullptr,
                     first == 0 ? &recorded->symbols[member] : nullptr, lazy);
    }
    if (error) {
        discard(first);
        return error;
    }
    if (first == 0 && known == nullptr) {
        LoadPlan::keep(key, std::move(recorded));
    }
    publish_tls(first);
    bind_undefined();
    std::vector<Module*> made;
    for (std::size_t at = first; at < modules_.size(); ++at) {
        made.push_back(modules_[at].get());
    }
    tell_debugger_of(made);
    module = modules_[first].get();
    ++module->opened;
    return {};
}

// All that decides what is found: the file, and what the host and the user say.
std::string Image::plan_key(const ElfFile& root) const {
    const char* folders = std::getenv("LD_LIBRARY_PATH");
    std::string key = root.path();
    key.append("\n").append(folders != nullptr ? folders : "");
    for (const std::string& name : options_.sharing.shared) {
        key.append("\nshared ").append(name);
    }
    for (const std::string& name : options_.sharing.private_) {
        key.append("\nprivate ").append(name);
    }
    for (const std::string& name : options_.sharing.preloaded) {
        key.append("\npreloaded ").append(name);
    }
    for (const HostBinding& binding : options_.bindings) {
        key.append("\nbound ").append(binding.name).append(" ");
        key.append(std::to_string(reinterpret_cast<std::uintptr_t>(binding.address)));
    }
    return key;
}

Error Image::map_new(const Closure& closure, std::size_t first) {
    std::vector<Module*> made;
    for (const Closure::Member& member : closure.members) {
        auto module = std::make_unique<Module>();
        module->file = member.file;
        module->image = this;
        if (Error error = module->map()) {
            return error;
        }
        if (Error error = place_tls(*module)) {
            return error;
        }
        made.push_back(module.get());
        modules_.push_back(std::move(module));
    }
    for (std::size_t at = 0; at < made.size(); ++at) {
        for (const std::size_t number : closure.members[at].needs) {
            made[at]->needs.push_back(number < first ? modules_[number].get()
                                                     : made[number - first]);
        }
    }
    made.front()->preloaded = closure.preloaded;
    if (!address_table().add(made)) {
        return fail(WARREN_IMAGE_ERR_MEMORY, "%s: the process has %zu modules, the limit",
                    closure.members.front().file->path().c_str(), AddressTable::limit);
    }
    return {};
}

Error Image::place_tls(Module& module) {
    const TlsSegment& tls = module.file->tls();
    if (tls.memory_bytes == 0) {
        return {};
    }
    // A program finds its variables right below the thread pointer: nothing is there before it.
    const std::uint64_t bytes =
        (tls_bytes_ + tls.memory_bytes + tls.alignment - 1) & ~(tls.alignment - 1);
    if (bytes > reserve_bytes - reserve_head_bytes) {
        return fail(WARREN_IMAGE_ERR_MEMORY,
                    "%s: its %llu bytes of thread-local variables don't fit any more: %llu of %llu "
                    "are taken",
                    module.file->path().c_str(), static_cast<unsigned long long>(tls.memory_bytes),
                    static_cast<unsigned long long>(tls_bytes_),
                    static_cast<unsigned long long>(reserve_bytes - reserve_head_bytes));
    }
    tls_bytes_ = bytes;
    module.tls_offset = -static_cast<std::int64_t>(bytes);
    return {};
}

void Image::publish_tls(std::size_t first) {
    const std::lock_guard guard(threads_lock_);
    for (std::size_t at = first; at < modules_.size(); ++at) {
        if (!modules_[at]->has_tls()) {
            continue;
        }
        tls_modules_.push_back(modules_[at].get());
        for (const Thread* thread : threads_) {
            if (thread->pointer != nullptr) {
                initialise_tls(*modules_[at], thread->pointer);
            }
        }
    }
}

// Unmaps the modules from number `first` on, which are no longer, or not yet, in use.
void Image::discard(std::size_t first) {
    std::vector<Module*> gone;
    for (std::size_t at = first; at < modules_.size(); ++at) {
        gone.push_back(modules_[at].get());
    }
    if (gone.empty()) {
        return;
    }
    tell_debugger_without(gone);
    address_table().remove(gone);
    {
        const std::lock_guard guard(threads_lock_);
        std::erase_if(tls_modules_, [&](const Module* module) {
            return std::find(gone.begin(), gone.end(), module) != gone.end();
        });
    }
    modules_.resize(first);
}

void Image::move_stream(int from, int to) {
    for (int* own : {&options_.descriptors.output, &options_.descriptors.error}) {
        if (*own == from) {
            *own = to;
        }
    }
    libc_state_.move_stream(from, to);
}

void Image::set_input(int descriptor) {
    options_.descriptors.input = descriptor;
    libc_state_.set_input(descriptor);
}

// Commands that it starts have these, too.
void Image::take_streams() {
    options_.descriptors.input = 0;
    options_.descriptors.output = 1;
    options_.descriptors.error = 2;
    libc_state_.take_streams();
}

// ---- symbols

// A module with all that it needs, as the system orders them: those that it names itself first.
std::vector<Module*> Image::with_needs(Module& root) {
    std::vector<Module*> all{&root};
    for (std::size_t at = 0; at < all.size(); ++at) {
        for (Module* needed : all[at]->needs) {
            if (std::find(all.begin(), all.end(), needed) == all.end()) {
                all.push_back(needed);
            }
        }
    }
    return all;
}

// The modules whose symbols a module sees, in their order.
std::vector<Module*> Image::seen_by(const Module* asker) {
    std::vector<Module*> seen;
    const bool has_root = asker != nullptr && asker->root != nullptr;
    if (has_root && asker->root_first) {
        seen = with_needs(*const_cast<Module*>(asker->root));
    }
    for (const auto& module : modules_) {
        if (module->global) {
            seen.push_back(module.get());
        }
    }
    if (has_root && !asker->root_first) {
        const std::vector<Module*> local = with_needs(*const_cast<Module*>(asker->root));
        seen.insert(seen.end(), local.begin(), local.end());
    }
    return seen;
}

// A symbol that is unique in a process (STB_GNU_UNIQUE) is the first module's of all that have it.
Definition Image::find_in(std::span<Module* const> modules, const SymbolName& name, SymbolUse use,
                          const Module* skipped) {
    for (Module* module : modules) {
        const Elf64_Sym* symbol =
            module != skipped ? module->file->symbols().find(name, use) : nullptr;
        if (symbol == nullptr) {
            continue;
        }
        if (ELF64_ST_BIND(symbol->st_info) == STB_GNU_UNIQUE) {
            for (const auto& other : modules_) {
                const Elf64_Sym* same = other->file->symbols().find(name, use);
                if (same != nullptr && ELF64_ST_BIND(same->st_info) == STB_GNU_UNIQUE) {
                    return {other.get(), nullptr, same, nullptr, nullptr};
                }
            }
        }
        return {module, nullptr, symbol, nullptr, nullptr};
    }
    return {};
}

Definition Image::find(const SymbolName& name, SymbolUse use, const Module* asker,
                       const Module* skipped) {
    for (const HostBinding& binding : options_.bindings) {
        if (binding.name == name.text) {
            return {nullptr, nullptr, nullptr, binding.address, nullptr};
        }
    }
    if (const Definition found = find_in(seen_by(asker), name, use, skipped)) {
        return found;
    }
    if (void* function = find_substitute_function(name.text)) {
        return {nullptr, nullptr, nullptr, function, nullptr};
    }
    if (void** variable = find_substitute_variable(libc_state_, name.text)) {
        return {nullptr, nullptr, nullptr, *variable, variable};
    }
    const SharedSymbol shared = SharedScope::only().find(name, use);
    return {nullptr, shared.library, shared.symbol, shared.address, nullptr};
}

Definition Image::find_after(const SymbolName& name, const Module& from) {
    std::vector<Module*> seen = seen_by(&from);
    const auto place = std::find(seen.begin(), seen.end(), &from);
    seen.erase(seen.begin(), place != seen.end() ? place + 1 : place);
    if (const Definition found = find_in(seen, name, SymbolUse::call, &from)) {
        return found;
    }
    return find_shared(name);
}

Definition Image::find_shared(const SymbolName& name) {
    if (void* function = find_substitute_function(name.text)) {
        return {nullptr, nullptr, nullptr, function, nullptr};
    }
    const SharedSymbol shared = SharedScope::only().find(name, SymbolUse::call);
    return {nullptr, shared.library, shared.symbol, shared.address, nullptr};
}

Definition Image::find_within(const SymbolName& name, Module& within) {
    return find_in(with_needs(within), name, SymbolUse::call, nullptr);
}

void* Image::address_of(const Definition& definition) {
    const Elf64_Sym* symbol = definition.symbol;
    if (definition.module == nullptr) {
        if (symbol != nullptr && ELF64_ST_TYPE(symbol->st_info) == STT_TLS) {
            void* block = nullptr; // the calling thread's
            dlinfo(definition.library->link, RTLD_DI_TLS_DATA, static_cast<void*>(&block));
            return block == nullptr ? nullptr : static_cast<std::byte*>(block) + symbol->st_value;
        }
        return definition.address;
    }
    if (symbol->st_shndx == SHN_ABS) {
        return reinterpret_cast<void*>(symbol->st_value);
    }
    if (ELF64_ST_TYPE(symbol->st_info) == STT_TLS) {
        return architecture::thread_pointer() + definition.module->tls_offset + symbol->st_value;
    }
    void* address = definition.module->at(symbol->st_value);
    if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC) {
        address = reinterpret_cast<void* (*)()>(address)();
    }
    return address;
}

// ---- threads

void Image::add_thread(Thread& thread) {
    const std::lock_guard guard(threads_lock_);
    threads_.push_back(&thread);
}

void Image::begin_thread(Thread& thread) {
    const std::lock_guard guard(threads_lock_);
    thread.pointer = architecture::thread_pointer();
    for (const Module* module : tls_modules_) {
        initialise_tls(*module, thread.pointer);
    }
}

void Image::remove_thread(Thread& thread) {
    // Afterwards the image may end, at once.
    const std::lock_guard guard(threads_lock_);
    std::erase(threads_, &thread);
    if (thread.pointer != nullptr) {
        ended_processor_ns_ += processor_ns_of(thread);
    }
    threads_ended.fetch_add(1, std::memory_order_release);
    futex_wake(threads_ended, INT_MAX);
}

void Image::run_key_destructors() {
    thread_keys_.run_destructors(thread_head().thread->key_values);
}

// A thread that has not begun has no clock yet.
std::uint64_t Image::processor_ns() {
    const std::lock_guard guard(threads_lock_);
    std::uint64_t all = ended_processor_ns_;
    for (const Thread* thread : threads_) {
        all += thread->pointer != nullptr ? processor_ns_of(*thread) : 0;
    }
    return all;
}

void Image::renew_locks() {
    std::construct_at(&threads_lock_);
    std::construct_at(&load_lock_);
    fork_handlers_.renew_lock();
    thread_keys_.renew_lock();
    std::erase_if(threads_, [](const Thread* thread) { return thread != thread_head().thread; });
}

std::size_t Image::other_threads() {
    const std::lock_guard guard(threads_lock_);
    return threads_.size() - 1;
}

} // namespace warren::image
