// Thread: one kernel thread that belongs to an image. It is in the image from its start to its end,
// or between enter_image and leave_image, and its reserve holds the thread-local variables of the
// image's modules. Threads that it makes belong to the image too.
//
// Thread rule: the record is its thread's; the image has the list under its lock.
// Invariant: thread_head().thread is the calling thread's record, or null.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <pthread.h>
#include <vector>

#include "base/error.hpp"
#include "image/libc/thread_keys.hpp"

namespace warren::fibre {
struct Fibre;
}

namespace warren::image {

class Image;
struct Module;

// A destructor of a thread-local object.
struct ThreadDestructor {
    void (*function)(void*);
    void* object;
    Module* module; // whose code it is; null: unknown
};

struct Thread {
    Image* image = nullptr;
    std::byte* pointer = nullptr; // the thread pointer
    // The fibre, or the clock of the kernel thread, that measures its processor time.
    const fibre::Fibre* fibre = nullptr;
    clockid_t clock{};
    std::uint64_t clock_start_ns = 0; // when it came to the image
    bool has_own_locale = false;      // has chosen one (uselocale) rather than the image's
    bool follows_setlocale = false;   // has not, and runs; under the lock of the locale
    std::vector<ThreadDestructor> destructors;
    KeyValues key_values;
};

// The calling thread, which belongs to no image, belongs to this one from now on.
Error enter_image(Image& image);
// The calling thread's destructors of thread-local objects run, and it belongs to no image.
Error leave_image();
// The thread's destructors of thread-local objects, the last first.
void run_thread_destructors(Thread& thread);
// Since it came to its image.
std::uint64_t processor_ns_of(const Thread& thread);

// Fills the block of a module's thread-local variables of the thread with that pointer.
void initialise_tls(const Module& module, std::byte* thread_pointer);

// Whom to tell in kernel threads that images have made: before the program's function runs, and
// after the last of the program's destructors. `mask`: of signals, that of the program's function.
// Null: nobody.
struct ThreadWatch {
    void (*begun)(std::uint64_t mask) = nullptr;
    void (*ends)() = nullptr;
};
void watch_threads(const ThreadWatch& watch);

// pthread_create of images, and of the host program for libraries that images share.
int create_thread(pthread_t* made, const pthread_attr_t* attributes, void* (*start)(void*),
                  void* argument);

} // namespace warren::image
