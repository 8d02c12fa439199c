// Threads. Each gets its number from its creator, and its end is seen by the destructor of a
// thread-specific key. One thread is this library's own and saves.

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <pthread.h>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analyser/counts/platform.hpp"
#include "analyser/hooks/heap.hpp"
#include "analyser/hooks/hooks.hpp"

namespace warren::locality::hooks {

thread_local constinit Mine mine{nullptr, nullptr, no_thread, no_thread, 0,       0,
                                 0,       0,       false,     0,         nullptr, {}};

namespace {

constexpr std::uint16_t has_ended = 0xffff;
pthread_key_t end_key;

struct Start {
    void* (*function)(void*);
    void* argument;
    std::uint32_t number;
    std::uint32_t parent;
};

// Accesses by other keys' destructors count, too, so this one ends the thread in the last iteration
// of destructors.
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
    leave_stack_overflows();
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

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

Create real_create() {
    static Create next = nullptr;
    if (next == nullptr) {
        next = reinterpret_cast<Create>(behind("pthread_create"));
    }
    return next;
}

// Whether the first thread has ended and only this one is left, so that the process would end
// without it.
bool keeps_process() {
    struct stat tasks {};
    if (stat("/proc/self/task", &tasks) != 0 ||
        tasks.st_nlink != 4) { // two folders, and two of its own
        return false;
    }
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", static_cast<int>(getpid()));
    const std::string about = counts::read_file(path);
    const std::size_t name_end = about.rfind(')');
    return name_end != std::string::npos && about.compare(name_end, 3, ") Z") == 0;
}

void* save_by_time(void*) {
    constexpr unsigned look_ms = 50;
    mine.inside = 1; // it is none of the program's
    // It has descriptors of its own, so that it takes no number that the program may expect and
    // keeps no file open.
    constexpr unsigned unshare = 1U << 1; // CLOSE_RANGE_UNSHARE
    syscall(SYS_close_range, 0U, ~0U, unshare);
    while (is_recording() && !keeps_process()) {
        counts::platform::sleep_ms(look_ms);
        if (is_recording()) {
            recorder().look_at_time();
        }
    }
    // The C library ends the process in its last thread, which is this one.
    mine.inside = 0;
    return nullptr;
}

} // namespace

bool start_threads() {
    return pthread_key_create(&end_key, thread_ends) == 0;
}

// Without this thread only events would save what a killed process has counted.
void start_saving() {
    const counts::Settings& settings = recorder().settings();
    if (settings.save_ns == 0 && settings.interval_ns == 0) {
        return;
    }
    constexpr std::size_t stack_bytes = std::size_t{256} << 10;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // signals are for the program's threads
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    if (real_create()(&thread, &attributes, save_by_time, nullptr) != 0) {
        recorder().miss(
            "there was no room for a thread that saves: what a killed process has counted "
            "since its last event is lost");
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
        const counts::Layout& layout = of.process().layout;
        if (!layout.communication() && !layout.lines()) {
            mine.words = reinterpret_cast<char*>(mine.thread->counters.words);
        }
        pthread_setspecific(end_key, &end_key); // any value but null
        take_stack_overflows();
    }
    return mine.thread;
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*function)(void*), void* argument) {
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
        return real_create()(thread, attributes, function, argument);
    }
    const int error = real_create()(thread, attributes, begin_thread, start);
    if (error != 0) {
        release(start, sizeof(Start));
    }
    return error;
}

} // namespace warren::locality::hooks
