#include <cerrno>
#include <memory>
#include <unistd.h>

#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/thread.hpp"

namespace warren::image::inside {

namespace {

struct C11Start {
    thrd_start_t function;
    void* argument;
};

void* run_c11(void* given) {
    const std::unique_ptr<C11Start> start(static_cast<C11Start*>(given));
    const C11Start copy = *start;
    const auto result = static_cast<std::intptr_t>(copy.function(copy.argument));
    return reinterpret_cast<void*>(result); // where thrd_join looks for it
}

} // namespace

int create(pthread_t* made, const pthread_attr_t* attributes, void* (*start)(void*),
           void* argument) {
    return create_thread(made, attributes, start, argument);
}

int create_c11(thrd_t* made, thrd_start_t start, void* argument) {
    auto given = std::make_unique<C11Start>(C11Start{start, argument});
    const int error = create_thread(made, nullptr, run_c11, given.get());
    if (error != 0) {
        return error == ENOMEM ? thrd_nomem : thrd_error;
    }
    static_cast<void>(given.release()); // run_c11 has it
    return thrd_success;
}

// The first thread of a program may end before others: the program ends with the last.
void exit_thread(void* result) {
    Image& image = *current_image();
    if (thread_head().thread != image.running().first_thread ||
        image.running().process != getpid()) {
        pthread_exit(result);
    }
    run_thread_destructors(*thread_head().thread);
    image.run_key_destructors();
    while (image.other_threads() > 0) {
        sleep_microseconds(1000);
    }
    inside::exit(0);
}

int create_key(pthread_key_t* key, void (*destructor)(void*)) {
    const int error = pthread_key_create(key, destructor);
    if (error == 0 && destructor != nullptr) {
        current_image()->add_key(*key, destructor);
    }
    return error;
}

int delete_key(pthread_key_t key) {
    current_image()->remove_key(key);
    return pthread_key_delete(key);
}

void delete_key_c11(tss_t key) {
    delete_key(key);
}

int cxa_thread_atexit(void (*destructor)(void*), void* object, void* module) {
    thread_head().thread->destructors.push_back({destructor, object, module});
    return 0;
}

} // namespace warren::image::inside
