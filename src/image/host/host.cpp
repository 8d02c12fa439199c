// The part that a host program links in (libwarren_image_host.a): the reserve of thread-local
// memory, and two functions of the system that must know of images when libraries call them that
// images share: who makes threads, and who unwinds stacks. The program must export both (the CMake
// target says so), and the reserve must be the last of its thread-local variables, which the
// section's name sees to: linkers put common thread-local variables behind all others.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include "image/host_interface.hpp"
#include "warren/image.h"

__asm__(R"(
    .section .tcommon, "awT", @nobits
    .globl warren_image_reserve
    .hidden warren_image_reserve
    .type warren_image_reserve, @object
    .size warren_image_reserve, 65536
    .balign 64
warren_image_reserve:
    .zero 65536
    .text
)");

namespace {

using CreateThread = decltype(&pthread_create);
using FindObject = decltype(&_dl_find_object);

// The system's function of this name, or whatever is in front of it behind the program.
template <typename Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

CreateThread real_create_thread = nullptr;
FindObject real_find_object = nullptr;
// Here and not asked of the library: the functions below are called before anything is ready.
bool is_host = false;

// Before any other constructor of the program.
[[gnu::constructor(101)]] void find_real_functions() {
    real_create_thread = next<CreateThread>("pthread_create");
    real_find_object = next<FindObject>("_dl_find_object");
}

} // namespace

extern "C" {

extern __thread char warren_image_reserve[] __attribute__((tls_model("local-exec")));

[[gnu::visibility("default")]] int pthread_create(pthread_t* made, const pthread_attr_t* attributes,
                                                  void* (*start)(void*), void* argument) noexcept {
    if (is_host) {
        return warren_image_create_thread(made, attributes, start, argument);
    }
    const auto real =
        real_create_thread != nullptr ? real_create_thread : next<CreateThread>("pthread_create");
    return real(made, attributes, start, argument);
}

[[gnu::visibility("default")]] int _dl_find_object(void* address, dl_find_object* found) noexcept {
    if (is_host) {
        return warren_image_find_object(address, found);
    }
    const auto real =
        real_find_object != nullptr ? real_find_object : next<FindObject>("_dl_find_object");
    return real(address, found);
}

int warren_image_host(void) {
    const warren::image::HostFunctions functions{
        sizeof(warren::image::HostFunctions),
        reinterpret_cast<std::byte*>(warren_image_reserve),
        65536,
        real_create_thread,
        real_find_object,
    };
    const int error = warren_image_register_host(
        &functions,
        // Libraries find this under these names: the program's, if it exports them.
        dlsym(RTLD_DEFAULT, "pthread_create") == reinterpret_cast<void*>(&pthread_create) &&
            dlsym(RTLD_DEFAULT, "_dl_find_object") == reinterpret_cast<void*>(&_dl_find_object));
    is_host = error == WARREN_IMAGE_SUCCESS;
    return error;
}
}
