// Threads: each gets its number from who makes it, and its end from the key of a thread-local value.

#include <cerrno>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "locality/hooks/heap.hpp"
#include "locality/hooks/hooks.hpp"

namespace warren::locality::hooks {

thread_local constinit Mine mine{nullptr, nullptr, no_thread, no_thread, 0, 0, 0, {}};

namespace {

constexpr std::uint16_t has_ended = 0xffff;
pthread_key_t end_key;

struct Start {
    void* (*function)(void*);
    void* argument;
    std::uint32_t number;
    std::uint32_t parent;
};

// What other keys' functions still do counts, too: the last turn of the few that there are is this
// one's.
void thread_ends(void* value) {
    if (++mine.endings < PTHREAD_DESTRUCTOR_ITERATIONS) {
        pthread_setspecific(end_key, value);
        return;
    }
    mine.endings = has_ended;
    const Inside inside;
    counts::Thread* const thread = mine.thread;
    mine.words = nullptr;
    mine.thread = nullptr;
    if (inside && thread != nullptr && is_recording()) {
        recorder().thread_ended(thread);
    }
}

void* begin_thread(void* memory) {
    const Start start = *static_cast<Start*>(memory);
    mine.number = start.number;
    mine.parent = start.parent;
    {
        const Inside inside;
        release(memory, sizeof(Start));
        if (inside && is_recording()) {
            this_thread();
            note_modules();
        }
    }
    return start.function(start.argument);
}

} // namespace

bool start_threads() {
    return pthread_key_create(&end_key, thread_ends) == 0;
}

counts::Thread* this_thread() {
    if (mine.endings == has_ended || !is_own_process()) {
        return nullptr;
    }
    if (mine.thread == nullptr) {
        counts::Recorder& of = recorder();
        mine.thread = of.thread_began(static_cast<std::uint32_t>(syscall(SYS_gettid)), mine.number,
                                      mine.parent);
        mine.number = no_thread; // in a forked child it begins anew
        mine.parent = no_thread;
        if (!of.process().layout.communication()) {
            mine.words = reinterpret_cast<char*>(mine.thread->counters.words);
        }
        pthread_setspecific(end_key, &end_key); // any value but null
    }
    return mine.thread;
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*function)(void*), void* argument) {
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static Create next = nullptr;
    if (next == nullptr) {
        next = reinterpret_cast<Create>(behind("pthread_create"));
    }
    Start* start = nullptr;
    if (is_recording()) {
        const Inside inside;
        counts::Thread* const parent = inside ? this_thread() : nullptr;
        if (parent != nullptr) {
            start = static_cast<Start*>(allocate(sizeof(Start)));
            if (start == nullptr) {
                return EAGAIN;
            }
            *start = {function, argument, recorder().next_number(), parent->counters.number};
        }
    }
    if (start == nullptr) {
        return next(thread, attributes, function, argument);
    }
    const int error = next(thread, attributes, begin_thread, start);
    if (error != 0) {
        release(start, sizeof(Start));
    }
    return error;
}

} // namespace warren::locality::hooks
