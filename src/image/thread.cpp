#include "image/thread.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>

#include "base/blocked_signals.hpp"
#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/module.hpp"
#include "runtime/fibres/scheduler.hpp"
#include "warren/image.h"

namespace warren::image {

namespace {

// Arguments of a new thread, until it has begun.
struct Start {
    void* (*function)(void*);
    void* argument;
    std::unique_ptr<Thread> thread;
    BlockedSignals::Mask mask; // of signals, while it runs the function
};

ThreadWatch thread_watch;

// The thread, which is the calling one, has run the last of the program's code.
void end(Thread* thread) {
    if (thread->fibre == nullptr && thread_watch.ends != nullptr) {
        thread_watch.ends();
    }
    thread_head().thread = nullptr;
    thread->image->remove_thread(*thread);
    delete thread;
}

// Ends a thread's belonging when all else of the thread has ended: the system calls the destructors
// of a thread's keys in rounds, and ours sets its key again until the last round.
class EndOfThreads {
  public:
    EndOfThreads() { pthread_key_create(&key_, end); }
    EndOfThreads(const EndOfThreads&) = delete;
    EndOfThreads& operator=(const EndOfThreads&) = delete;

    void watch() const { pthread_setspecific(key_, first_round()); }

    static const EndOfThreads& only() {
        static const EndOfThreads& made = *new EndOfThreads;
        return made;
    }

  private:
    static void* first_round() { return reinterpret_cast<void*>(1); }

    static void end(void* value) {
        const auto round = reinterpret_cast<std::uintptr_t>(value);
        Thread* thread = thread_head().thread;
        if (thread == nullptr) {
            return;
        }
        if (round == 1) {
            run_thread_destructors(*thread);
        }
        thread->image->run_key_destructors();
        if (round < PTHREAD_DESTRUCTOR_ITERATIONS) {
            pthread_setspecific(only().key_, reinterpret_cast<void*>(round + 1));
            return;
        }
        image::end(thread);
    }

    pthread_key_t key_{};
};

std::uint64_t clock_ns(const Thread& thread) {
    if (thread.fibre != nullptr) {
        return fibre::scheduler()->ran_ns(*thread.fibre);
    }
    timespec now{};
    constexpr std::uint64_t ns_of_s = 1'000'000'000;
    return clock_gettime(thread.clock, &now) != 0
               ? 0
               : static_cast<std::uint64_t>(now.tv_sec) * ns_of_s +
                     static_cast<std::uint64_t>(now.tv_nsec);
}

void start_clock(Thread& thread) {
    thread.fibre = fibre::Scheduler::current();
    if (thread.fibre == nullptr) {
        pthread_getcpuclockid(pthread_self(), &thread.clock);
    }
    thread.clock_start_ns = clock_ns(thread);
}

// `mask`: of the signals that the program's code has blocked.
void begin(Thread& thread, BlockedSignals::Mask mask) {
    thread.pointer = architecture::thread_pointer();
    start_clock(thread);
    thread_head().thread = &thread;
    thread.image->begin_thread(thread);
    libc::begin_locale(thread);
    if (thread.fibre == nullptr && thread_watch.begun != nullptr) {
        thread_watch.begun(mask);
    }
}

// The new thread has the mask that its attributes say, or its maker's.
BlockedSignals::Mask mask_of_new_thread(const pthread_attr_t* attributes,
                                        BlockedSignals::Mask before) {
    sigset_t set;
    if (attributes == nullptr || pthread_attr_getsigmask_np(attributes, &set) != 0) {
        return before;
    }
    BlockedSignals::Mask mask = 0;
    std::memcpy(&mask, &set, sizeof mask);
    return mask;
}

void* run(void* argument) {
    void* (*function)(void*) = nullptr;
    void* its_argument = nullptr;
    BlockedSignals::Mask mask = 0;
    {
        const std::unique_ptr<Start> start(static_cast<Start*>(argument));
        function = start->function;
        its_argument = start->argument;
        EndOfThreads::only().watch();
        mask = start->mask;
        begin(*start->thread.release(), mask);
    }
    BlockedSignals::restore(mask); // handlers may run from now on
    return function(its_argument);
}

} // namespace

void initialise_tls(const Module& module, std::byte* thread_pointer) {
    const TlsSegment& tls = module.file->tls();
    if (tls.memory_bytes != 0) {
        std::byte* block = thread_pointer + module.tls_offset;
        std::memcpy(block, module.at(tls.address), tls.file_bytes);
        std::memset(block + tls.file_bytes, 0, tls.memory_bytes - tls.file_bytes);
    }
}

// Workers estimate: what a fibre has run may seem less than a moment before.
std::uint64_t processor_ns_of(const Thread& thread) {
    const std::uint64_t now = clock_ns(thread);
    return now - std::min(now, thread.clock_start_ns);
}

Error enter_image(Image& image) {
    if (thread_head().thread != nullptr) {
        return fail(WARREN_IMAGE_ERR_USE, "this thread belongs to %s image already",
                    thread_head().thread->image == &image ? "this" : "another");
    }
    auto thread = std::make_unique<Thread>();
    thread->image = &image;
    image.add_thread(*thread);
    EndOfThreads::only().watch();
    begin(*thread.release(), BlockedSignals::of_thread());
    return {};
}

Error leave_image() {
    Thread* thread = thread_head().thread;
    if (thread == nullptr) {
        return fail(WARREN_IMAGE_ERR_USE, "this thread belongs to no image");
    }
    run_thread_destructors(*thread);
    if (!thread->image->is_destructed()) {
        thread->image->run_key_destructors();
    }
    libc::end_locale(*thread);
    end(thread);
    return {};
}

void watch_threads(const ThreadWatch& watch) {
    thread_watch = watch;
}

void run_thread_destructors(Thread& thread) {
    while (!thread.destructors.empty()) { // they may add others
        const ThreadDestructor last = thread.destructors.back();
        thread.destructors.pop_back();
        last.function(last.object);
        if (last.module != nullptr) {
            last.module->thread_objects.fetch_sub(1);
        }
    }
}

int create_thread(pthread_t* made, const pthread_attr_t* attributes, void* (*start)(void*),
                  void* argument) {
    Image* image = current_image();
    const auto create = host().functions.create_thread;
    if (image == nullptr) {
        return create(made, attributes, start, argument);
    }
    const BlockedSignals blocked; // of the thread until it has begun: its signals wait for that
    auto given = std::make_unique<Start>(Start{start, argument, std::make_unique<Thread>(),
                                               mask_of_new_thread(attributes, blocked.before())});
    Thread& thread = *given->thread;
    thread.image = image;
    // Counted before it runs, so that nobody unloads the image meanwhile.
    image->add_thread(thread);
    const int error = create(made, attributes, run, given.get());
    if (error != 0) {
        image->remove_thread(thread);
        return error;
    }
    static_cast<void>(given.release()); // run has it
    return 0;
}

} // namespace warren::image
