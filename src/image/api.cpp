// The C API (warren/image.h) on the classes of this room.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "image/address_table.hpp"
#include "image/elf_file.hpp"
#include "image/host.hpp"
#include "image/host_interface.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/program.hpp"
#include "warren/image.h"

#define WARREN_API extern "C" [[gnu::visibility("default")]]

namespace {

using warren::Error;
using warren::image::Image;
using warren::image::Module;

Image& of(warren_image* image) {
    return *reinterpret_cast<Image*>(image);
}

// Keeps the sentence for warren_image_error.
int report(Error error) {
    if (!error) {
        return WARREN_IMAGE_SUCCESS;
    }
    const std::unique_ptr<warren::ErrorRecord> record(error.take());
    if (warren::image::host().registered.load(std::memory_order_acquire)) {
        char(&text)[sizeof(warren::image::ThreadHead::error)] = warren::image::thread_head().error;
        std::snprintf(text, sizeof text, "%s", record->text.c_str());
    }
    return record->error_class;
}

bool is_host() {
    return warren::image::host().registered.load(std::memory_order_acquire);
}

int no_host() {
    return WARREN_IMAGE_ERR_HOST;
}

Error check_thread(Image& image) {
    return warren::image::current_image() == &image
               ? Error{}
               : warren::fail(WARREN_IMAGE_ERR_USE,
                              "the calling thread doesn't belong to the image");
}

std::vector<std::string> names(const char* const* list) {
    std::vector<std::string> made;
    for (; list != nullptr && *list != nullptr; ++list) {
        made.emplace_back(*list);
    }
    return made;
}

} // namespace

WARREN_API int warren_image_register_host(const warren::image::HostFunctions* functions,
                                          bool exported) {
    if (is_host()) {
        return WARREN_IMAGE_SUCCESS;
    }
    if (Error error = warren::image::register_host(*functions)) {
        const std::unique_ptr<warren::ErrorRecord> record(error.take());
        std::fprintf(stderr, "warren_image_host: %s\n", record->text.c_str());
        return record->error_class;
    }
    if (!exported) {
        warren::image::host().registered.store(false);
        std::fputs("warren_image_host: the program must export pthread_create and "
                   "_dl_find_object: link it with -Wl,--export-dynamic-symbol=NAME for both, or "
                   "-rdynamic\n",
                   stderr);
        return WARREN_IMAGE_ERR_HOST;
    }
    return WARREN_IMAGE_SUCCESS;
}

WARREN_API int warren_image_create_thread(pthread_t* made, const pthread_attr_t* attributes,
                                          void* (*start)(void*), void* argument) {
    return warren::image::create_thread(made, attributes, start, argument);
}

WARREN_API const char* warren_image_error(void) {
    return is_host() ? warren::image::thread_head().error
                     : "this process is no host of images: link libwarren_image_host.a and call "
                       "warren_image_host first";
}

WARREN_API int warren_image_create(const warren_image_options* options, warren_image** image) {
    if (!is_host()) {
        return no_host();
    }
    warren::image::ImageOptions made;
    if (options != nullptr) {
        // Programs that were compiled before 'preloaded' was added end their options there.
        const bool has_preloaded = options->bytes == sizeof(warren_image_options);
        if (!has_preloaded && options->bytes != offsetof(warren_image_options, preloaded)) {
            return report(warren::fail(WARREN_IMAGE_ERR_USE,
                                       "options of %zu bytes: set bytes to "
                                       "sizeof(warren_image_options), %zu",
                                       options->bytes, sizeof(warren_image_options)));
        }
        made.sharing = {names(options->shared), names(options->separate),
                        has_preloaded ? names(options->preloaded) : std::vector<std::string>()};
        made.descriptors = {options->input, options->output, options->error,
                            (options->flags & WARREN_IMAGE_OWN_DESCRIPTORS) != 0};
        made.own_directory = (options->flags & WARREN_IMAGE_OWN_DIRECTORY) != 0;
        for (const warren_image_binding* binding = options->bindings;
             binding != nullptr && binding->name != nullptr; ++binding) {
            made.bindings.push_back({binding->name, binding->address});
        }
        if (options->ended != nullptr) {
            made.ended = [function = options->ended,
                          context = options->context](const warren::image::ProgramEnd& end) {
                const warren_image_end told{end.status, end.signal};
                function(context, &told);
            };
        }
    }
    *image = reinterpret_cast<warren_image*>(new Image(std::move(made)));
    return WARREN_IMAGE_SUCCESS;
}

WARREN_API int warren_image_enter(warren_image* image) {
    return report(warren::image::enter_image(of(image)));
}

WARREN_API int warren_image_leave(void) {
    return is_host() ? report(warren::image::leave_image()) : no_host();
}

WARREN_API int warren_image_load(warren_image* image, const char* path,
                                 warren_image_module** module) {
    if (Error error = check_thread(of(image))) {
        return report(error);
    }
    Module* loaded = nullptr;
    Error error = of(image).load_library(path, loaded);
    *module = reinterpret_cast<warren_image_module*>(loaded);
    return report(error);
}

WARREN_API int warren_image_unload(warren_image* image, warren_image_module* module) {
    if (Error error = check_thread(of(image))) {
        return report(error);
    }
    of(image).close_library(*reinterpret_cast<Module*>(module));
    return WARREN_IMAGE_SUCCESS;
}

WARREN_API int warren_image_symbol(warren_image* image, warren_image_module* module,
                                   const char* name, const char* version, void** address) {
    using namespace warren::image;
    const std::lock_guard guard(of(image).load_lock());
    const SymbolName wanted(name, version);
    const Definition found =
        module == nullptr ? of(image).find(wanted, SymbolUse::call)
                          : of(image).find_within(wanted, *reinterpret_cast<Module*>(module));
    if (!found) {
        *address = nullptr;
        return report(warren::fail(WARREN_IMAGE_ERR_SYMBOL, "the image has no symbol %s%s%s", name,
                                   version != nullptr ? "@" : "",
                                   version != nullptr ? version : ""));
    }
    *address = Image::address_of(found);
    return WARREN_IMAGE_SUCCESS;
}

WARREN_API int warren_image_load_program(warren_image* image, const char* path) {
    if (Error error = check_thread(of(image))) {
        return report(error);
    }
    return report(of(image).load_program(path));
}

WARREN_API int warren_image_run(warren_image* image, int argument_count, char** arguments,
                                char** environment, warren_image_end* end) {
    warren::image::ProgramEnd ended;
    Error error =
        warren::image::run_program(of(image), argument_count, arguments, environment, ended);
    *end = {ended.status, ended.signal};
    return report(error);
}

WARREN_API void warren_image_move_stream(int from, int to) {
    if (warren::image::Image* image = warren::image::current_image()) {
        image->move_stream(from, to);
    }
}

WARREN_API void warren_image_set_input(int descriptor) {
    if (Image* image = warren::image::current_image()) {
        image->set_input(descriptor);
    }
}

WARREN_API void warren_image_take_streams() {
    if (Image* image = warren::image::current_image()) {
        image->take_streams();
    }
}

WARREN_API pid_t warren_image_fork() {
    return warren::image::libc::fork();
}

WARREN_API int warren_image_spawn_found(pid_t* child, const char* name,
                                        const posix_spawn_file_actions_t* actions,
                                        const posix_spawnattr_t* attributes, char* const* arguments,
                                        char* const* environment) {
    return warren::image::libc::posix_spawnp(child, name, actions, attributes, arguments,
                                             environment);
}

WARREN_API void warren_image_watch_exec(void (*prepare)()) {
    warren::image::libc::watch_exec(prepare);
}

WARREN_API void warren_image_run_commands_by(const warren::image::CommandFunctions* functions) {
    warren::image::libc::run_commands_by(*functions);
}

WARREN_API void warren_image_aim_signals_by(const warren::image::SignalFunctions* functions) {
    warren::image::libc::aim_signals_by(*functions);
}

WARREN_API std::size_t warren_image_other_threads() {
    Image* image = warren::image::current_image();
    return image != nullptr ? image->other_threads() : 0;
}

WARREN_API void warren_image_watch_threads(void (*begun)(std::uint64_t mask), void (*ends)()) {
    warren::image::watch_threads({begun, ends});
}

WARREN_API int warren_image_start_thread(pthread_t* made, const pthread_attr_t* attributes,
                                         void* (*start)(void*), void* argument) {
    return warren::image::libc::pthread_create(made, attributes, start, argument);
}

WARREN_API int warren_image_start_c_thread(thrd_t* made, thrd_start_t start, void* argument) {
    return warren::image::libc::thrd_create(made, start, argument);
}

WARREN_API int warren_image_close_file(int descriptor) {
    return warren::image::libc::close(descriptor);
}

WARREN_API void warren_image_forget_files(unsigned first, unsigned last) {
    warren::image::libc::before_closing_range(first, last);
}

WARREN_API int warren_image_duplicate_file(int from, int to, int flags) {
    return from == to && flags == 0 ? warren::image::libc::dup2(from, to)
                                    : warren::image::libc::dup3(from, to, flags);
}

WARREN_API void warren_image_place_files_by(int (*place)(int descriptor)) {
    warren::image::libc::place_files_by(place);
}

WARREN_API int warren_image_control_file(int descriptor, int command, void* argument) {
    return warren::image::libc::fcntl_with(descriptor, command, argument);
}

WARREN_API long warren_image_call_system(long number, long first, long second, long third,
                                         long fourth, long fifth, long sixth) {
    return warren::image::libc::syscall(number, first, second, third, fourth, fifth, sixth);
}

WARREN_API std::FILE* warren_image_open_descriptor(int descriptor, const char* mode) {
    return warren::image::libc::fdopen(descriptor, mode);
}

WARREN_API int warren_image_close_stream(std::FILE* stream) {
    return warren::image::libc::fclose(stream);
}

WARREN_API void warren_image_keep_descriptors(int (*keep)(int descriptor, bool kept)) {
    warren::image::ElfFile::keep_descriptors(keep);
}

WARREN_API int warren_image_destroy(warren_image* image) {
    return report(warren::image::destroy_image(of(image)));
}

WARREN_API warren_image* warren_image_current(void) {
    return reinterpret_cast<warren_image*>(warren::image::current_image());
}

WARREN_API warren_image* warren_image_of(const void* address) {
    const Module* module = warren::image::address_table().find(address);
    return module == nullptr ? nullptr : reinterpret_cast<warren_image*>(module->image);
}
