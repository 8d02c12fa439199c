// Stacks of threads. Each thread records its own when it begins and ends.

#include <cerrno>
#include <cstdint>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analyser/tracker/real.hpp"
#include "analyser/tracker/tracker.hpp"

namespace warren::locality::tracker {

namespace {

struct Start {
    void* (*function)(void*);
    void* argument;
};

pthread_key_t end_key;
pthread_once_t end_key_once = PTHREAD_ONCE_INIT;
bool end_key_made = false;

void at_end(void*) {
    const Inside inside;
    if (inside) {
        record_own_stack_end();
    }
}

void make_end_key() {
    end_key_made = pthread_key_create(&end_key, at_end) == 0;
}

void* begin_thread(void* memory) {
    const Start start = *static_cast<Start*>(memory);
    real()->free(memory);
    {
        const Inside inside;
        pthread_attr_t attributes;
        if (inside && pthread_getattr_np(pthread_self(), &attributes) == 0) {
            void* stack = nullptr;
            std::size_t bytes = 0;
            if (pthread_attr_getstack(&attributes, &stack, &bytes) == 0) {
                record_own_stack(reinterpret_cast<std::uint64_t>(stack), bytes);
                if (end_key_made) {
                    pthread_setspecific(end_key, &end_key); // any value but null
                }
            }
            pthread_attr_destroy(&attributes);
        }
    }
    return start.function(start.argument);
}

} // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*function)(void*), void* argument) {
    const Real* functions = real();
    pthread_once(&end_key_once, make_end_key);
    auto* start = static_cast<Start*>(functions->malloc(sizeof(Start)));
    if (start == nullptr) {
        return EAGAIN;
    }
    *start = {function, argument};
    const int error = functions->pthread_create(thread, attributes, begin_thread, start);
    if (error != 0) {
        functions->free(start);
    }
    return error;
}

} // namespace warren::locality::tracker
