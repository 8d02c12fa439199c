#include <cerrno>
#include <memory>
#include <unistd.h>

#include "image/address_table.hpp"
#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/thread.hpp"

namespace warren::image::libc {

namespace {

struct C11Start {
    thrd_start_t function;
    void* argument;
};

// No object with a destructor may live here while the function runs: thrd_exit unwinds this, and
// the unwinder of the library knows no images.
void* run_c11(void* given) {
    const C11Start copy = *static_cast<C11Start*>(given);
    delete static_cast<C11Start*>(given);
    const auto result = static_cast<std::intptr_t>(copy.function(copy.argument));
    return reinterpret_cast<void*>(result); // where thrd_join looks for it
}

} // namespace

int pthread_create(pthread_t* made, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
    return create_thread(made, attributes, start, argument);
}

int thrd_create(thrd_t* made, thrd_start_t start, void* argument) {
    auto given = std::make_unique<C11Start>(C11Start{start, argument});
    const int error = create_thread(made, nullptr, run_c11, given.get());
    if (error != 0) {
        return error == ENOMEM ? thrd_nomem : thrd_error;
    }
    static_cast<void>(given.release()); // run_c11 has it
    return thrd_success;
}

namespace {

// Whether the caller is the first thread of the program, or of a child of its fork.
bool is_first_thread(Image& image) {
    const Thread* first = image.running().first_thread;
    return image.running().process == getpid() ? thread_head().thread == first
                                               : first != nullptr && gettid() == getpid();
}

} // namespace

// The first thread of a program may end before others, who may join it: the program ends with the
// last.
void end_first_thread() {
    Image& image = *current_image();
    run_thread_destructors(*thread_head().thread);
    image.run_key_destructors();
    image.running().first_has_left.store(true, std::memory_order_release);
    while (image.other_threads() > 0) {
        libc::usleep(1000);
    }
    libc::exit(0);
}

void pthread_exit(void* result) {
    Image& image = *current_image();
    const bool is_first = is_first_thread(image);
    if (is_first) {
        image.running().first_result = result;
    }
    // In a child of fork the first thread may be one whose frames end elsewhere.
    if (!is_first || (thread_head().thread == image.running().first_thread &&
                      image.running().first_frame != nullptr)) {
        ::pthread_exit(result);
    }
    end_first_thread();
}

void thrd_exit(int result) {
    libc::pthread_exit(reinterpret_cast<void*>(static_cast<std::intptr_t>(result)));
}

// Keys of threads that belong to no image, which no program of an image sees, are the process's.
int pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) {
    Image* image = current_image();
    return image != nullptr ? image->thread_keys().create(*key, destructor)
                            : ::pthread_key_create(key, destructor);
}

int pthread_key_delete(pthread_key_t key) {
    Image* image = current_image();
    return image != nullptr ? image->thread_keys().remove(key) : ::pthread_key_delete(key);
}

void* pthread_getspecific(pthread_key_t key) {
    Thread* thread = current_thread();
    return thread != nullptr ? thread->image->thread_keys().get(thread->key_values, key)
                             : ::pthread_getspecific(key);
}

int pthread_setspecific(pthread_key_t key, const void* value) {
    Thread* thread = current_thread();
    return thread != nullptr
               ? thread->image->thread_keys().set(thread->key_values, key, const_cast<void*>(value))
               : ::pthread_setspecific(key, value);
}

int tss_create(tss_t* key, tss_dtor_t destructor) {
    return libc::pthread_key_create(key, destructor) == 0 ? thrd_success : thrd_error;
}

void tss_delete(tss_t key) {
    libc::pthread_key_delete(key);
}

int tss_set(tss_t key, void* value) {
    return libc::pthread_setspecific(key, value) == 0 ? thrd_success : thrd_error;
}

int cxa_thread_atexit_impl(void (*destructor)(void*), void* object, void* module) {
    Thread& thread = *thread_head().thread;
    Module* owner = address_table().find(module);
    if (owner != nullptr) { // its code stays until then
        owner->thread_objects.fetch_add(1);
    }
    thread.destructors.push_back({destructor, object, owner});
    return 0;
}

} // namespace warren::image::libc
