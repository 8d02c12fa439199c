// The constructors and destructors of an image's modules.
#include <algorithm>
#include <unistd.h>

#include "image/address_table.hpp"
#include "image/debugger.hpp"
#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/tuning.hpp"
#include "warren/image.h"

namespace warren::image {

namespace {

using Constructor = Image::Constructor;
using Destructor = void (*)();

template <typename Function>
std::span<const Function> functions(const Module& module, Range array) {
    return {reinterpret_cast<const Function*>(module.at(array.address)),
            array.bytes / sizeof(Function)};
}

bool is_function(const void* address) { // some linkers leave 0 and -1 in such lists
    return address != nullptr && address != reinterpret_cast<const void*>(UINTPTR_MAX);
}

} // namespace

void Image::construct(Module& module, Constructor own) {
    if (module.state != Module::State::relocated) {
        return; // done, or under way: needs may go round in circles
    }
    module.state = Module::State::constructing;
    const DynamicSection& dynamic = module.file->dynamic();
    char** const variables = libc_state_.value<char**>(Variable::environment);
    const auto call_all = [&](Range array) {
        for (const Constructor function : functions<Constructor>(module, array)) {
            if (is_function(reinterpret_cast<const void*>(function))) {
                function(argument_count, arguments, variables);
            }
        }
    };
    if (&module == program_) {
        call_all(dynamic.preinit_array);
    }
    for (std::size_t at = module.preloaded; at < module.needs.size(); ++at) {
        construct(*module.needs[at]);
    }
    for (std::size_t at = module.preloaded; at > 0; --at) { // the last first, as ld.so does
        construct(*module.needs[at - 1]);
    }
    if (own != nullptr) {
        own(argument_count, arguments, variables);
    } else {
        if (dynamic.init != 0) {
            reinterpret_cast<Constructor>(module.at(dynamic.init))(argument_count, arguments,
                                                                   variables);
        }
        call_all(dynamic.init_array);
    }
    module.state = Module::State::constructed;
    constructed_.push_back(&module);
}

void Image::destruct_module(Module& module) {
    if (module.state != Module::State::constructed) {
        return;
    }
    module.state = Module::State::destructed;
    const DynamicSection& dynamic = module.file->dynamic();
    const auto all = functions<Destructor>(module, dynamic.fini_array);
    for (std::size_t at = all.size(); at > 0; --at) {
        if (is_function(reinterpret_cast<const void*>(all[at - 1]))) {
            all[at - 1]();
        }
    }
    if (dynamic.fini != 0) {
        reinterpret_cast<Destructor>(module.at(dynamic.fini))();
    }
}

void Image::destruct(int status) {
    if (destructed_) {
        return;
    }
    exit_functions_.run(status);
    if (destructed_) { // one of them ended the image again
        return;
    }
    destructed_ = true;
    libc::delete_timers(libc_state_);
    if (!options_.ended) { // else the threads that its libraries have made end with the process
        run_key_destructors();
    }
    while (!constructed_.empty()) {
        Module* last = constructed_.back();
        constructed_.pop_back();
        destructed_modules_.push_back(last);
        destruct_module(*last);
        exit_functions_.run(status); // what destructors have added
    }
}

// The C++ library keeps memory for exceptions when there is no other, and has a function that leak
// detectors call at the end of a process.
void Image::free_reserves(std::span<Module* const> modules) {
    const SymbolName name("_ZN9__gnu_cxx9__freeresEv", nullptr);
    for (const Module* module : modules) {
        if (const Elf64_Sym* symbol = module->file->symbols().find(name, SymbolUse::call)) {
            reinterpret_cast<Destructor>(module->at(symbol->st_value))();
        }
    }
}

void Image::give_up() {
    destructed_ = true;
    libc::delete_timers(libc_state_);
    destructed_modules_ = std::move(constructed_);
    libc_state_.drop_output();
}

bool Image::close_library(Module& module) {
    const std::lock_guard guard(load_lock_);
    if (module.opened == 0) { // the system's loader minds only of libraries that may go
        return module.kept || module.file->dynamic().kept;
    }
    if (--module.opened == 0 && !destructed_) {
        remove_unused();
    }
    return true;
}

// Destructs and unmaps all modules that nobody has opened and no remaining module needs.
void Image::remove_unused() {
    std::vector<const Module*> used;
    for (const auto& module : modules_) {
        if (module->opened > 0 || module->kept || module->file->dynamic().kept ||
            module->thread_objects.load() > 0) {
            used.push_back(module.get());
        }
    }
    for (std::size_t at = 0; at < used.size(); ++at) {
        for (const Module* needed : used[at]->needs) {
            if (std::find(used.begin(), used.end(), needed) == used.end()) {
                used.push_back(needed);
            }
        }
    }
    const auto is_unused = [&](const Module* module) {
        return std::find(used.begin(), used.end(), module) == used.end();
    };
    for (const auto& module : modules_) { // one that came with another may stay without it
        if (!is_unused(module.get()) && module->root != nullptr && is_unused(module->root)) {
            module->root = module.get();
        }
    }
    std::vector<Module*> gone;
    for (std::size_t at = constructed_.size(); at > 0; --at) { // the last constructed first
        Module* module = constructed_[at - 1];
        if (is_unused(module)) {
            const auto* const end = module->start + module->file->span();
            fork_handlers_.remove_of(module->start, end);
            destruct_module(*module);
            exit_functions_.run_of(module->start, end);
            gone.push_back(module);
        }
    }
    if (gone.empty()) {
        return;
    }
    free_reserves(gone);
    std::erase_if(constructed_, is_unused);
    tell_debugger_without(gone);
    address_table().remove(gone);
    {
        const std::lock_guard guard(threads_lock_);
        std::erase_if(tls_modules_, is_unused);
    }
    std::erase_if(modules_, [&](const auto& module) { return is_unused(module.get()); });
    // The place of thread-local variables is given out again when nobody is below it.
    tls_bytes_ = 0;
    for (const auto& module : modules_) {
        tls_bytes_ = std::max(tls_bytes_, static_cast<std::uint64_t>(-module->tls_offset));
    }
}

Error destroy_image(Image& image) {
    const bool belongs = current_image() == &image;
    if (!belongs) {
        if (Error error = enter_image(image)) {
            return error;
        }
    }
    // Ask first: what has been destructed can't go on.
    if (image.running().first_thread == nullptr && image.other_threads() > 0) {
        image.run_key_destructors();
    }
    for (int wait_ms = 0; image.other_threads() > 0 && wait_ms < exit_wait_ms; ++wait_ms) {
        usleep(1000); // threads that have ended for the program's eyes may have yet to end for ours
    }
    if (const std::size_t threads = image.other_threads(); threads > 0) {
        if (!belongs) {
            leave_image().drop();
        }
        return fail(WARREN_IMAGE_ERR_BUSY, "%zu threads of the image still run", threads);
    }
    run_thread_destructors(*thread_head().thread);
    image.destruct(0);
    image.free_reserves(image.destructed_modules());
    if (Error error = leave_image()) {
        return error;
    }
    delete &image;
    return {};
}

} // namespace warren::image
