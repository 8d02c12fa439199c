#include "image/program.hpp"

#include <alloca.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "image/host.hpp"
#include "warren/image.h"

// The C library's headers hide it from C++: pthread_cleanup_pop of C programs calls it.
extern "C" void __pthread_unregister_cancel(__pthread_unwind_buf_t*); // NOLINT

namespace warren::image {

namespace {

// The kernel's data on the stack of a new process, from low addresses to high.
class FirstStack {
  public:
    FirstStack(const Image& image, const Module& program) : image_(image), program_(program) {
        while (image.environment[environment_count_] != nullptr) {
            ++environment_count_;
        }
    }

    std::size_t bytes() const {
        const std::size_t words = 1 + static_cast<std::size_t>(image_.argument_count) + 1 +
                                  environment_count_ + 1 + 2 * auxiliary_limit;
        return (words * sizeof(std::uint64_t) + 15) / 16 * 16;
    }

    void write(std::uint64_t* word) const {
        *word++ = static_cast<std::uint64_t>(image_.argument_count);
        for (int i = 0; i < image_.argument_count; ++i) {
            *word++ = reinterpret_cast<std::uint64_t>(image_.arguments[i]);
        }
        *word++ = 0;
        for (std::size_t i = 0; i < environment_count_; ++i) {
            *word++ = reinterpret_cast<std::uint64_t>(image_.environment[i]);
        }
        *word++ = 0;
        const auto put = [&](std::uint64_t type, std::uint64_t value) {
            *word++ = type;
            *word++ = value;
        };
        const ElfFile& file = *program_.file;
        put(AT_PHDR, reinterpret_cast<std::uint64_t>(program_.at(file.header().e_phoff)));
        put(AT_PHENT, sizeof(Elf64_Phdr));
        put(AT_PHNUM, file.header().e_phnum);
        put(AT_ENTRY, reinterpret_cast<std::uint64_t>(program_.at(file.header().e_entry)));
        put(AT_EXECFN, reinterpret_cast<std::uint64_t>(file.path().c_str()));
        for (const std::uint64_t type :
             {AT_PAGESZ, AT_CLKTCK, AT_HWCAP, AT_HWCAP2, AT_PLATFORM, AT_RANDOM, AT_SECURE, AT_UID,
              AT_EUID, AT_GID, AT_EGID, AT_SYSINFO_EHDR}) {
            put(type, getauxval(type));
        }
        put(AT_NULL, 0);
    }

  private:
    static constexpr std::size_t auxiliary_limit = 20;

    const Image& image_;
    const Module& program_;
    std::size_t environment_count_ = 0;
};

// Gives the calling thread what the host wants the program to have of its own.
Error take_own(const ImageOptions& options) {
    const Descriptors& wanted = options.descriptors;
    const int parts = (options.own_directory ? CLONE_FS : 0) | (wanted.own_table ? CLONE_FILES : 0);
    if (parts != 0 && unshare(parts) != 0) {
        return fail(WARREN_IMAGE_ERR_HOST,
                    "a working directory or descriptors of the thread's own: unshare: %s",
                    std::strerror(errno));
    }
    if (!wanted.own_table) {
        return {};
    }
    // Copies first: one may be what another is to become.
    int copies[3] = {-1, -1, -1};
    const int given[3] = {wanted.input, wanted.output, wanted.error};
    for (int i = 0; i < 3; ++i) {
        copies[i] = given[i] < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC)
                                 : fcntl(given[i], F_DUPFD_CLOEXEC, 3);
    }
    bool done = true;
    for (int i = 0; i < 3; ++i) {
        done = done && dup2(copies[i], i) == i;
        close(copies[i]);
    }
    return done ? Error{}
                : fail(WARREN_IMAGE_ERR_HOST, "descriptors %d, %d, %d for a program: %s", given[0],
                       given[1], given[2], std::strerror(errno));
}

[[noreturn]] void stay() {
    while (true) {
        pause();
    }
}

} // namespace

// A sanitizer would mark what surrounds the first stack, which is where the program's stack will
// be.
[[gnu::no_sanitize_address]] Error run_program(Image& image, int argument_count, char** arguments,
                                               char** environment, ProgramEnd& end) {
    const Module* program = image.program();
    Thread* thread = thread_head().thread;
    if (program == nullptr) {
        return fail(WARREN_IMAGE_ERR_USE, "there is no program in the image");
    }
    if (thread == nullptr || thread->image != &image) {
        return fail(WARREN_IMAGE_ERR_USE, "%s: the calling thread doesn't belong to its image",
                    program->file->path().c_str());
    }
    Running& running = image.running();
    if (running.first_thread != nullptr) {
        return fail(WARREN_IMAGE_ERR_USE, "%s has run: an image runs its program once",
                    program->file->path().c_str());
    }
    if (Error error = take_own(image.options())) {
        return error;
    }
    running.first_thread = thread;
    running.first_handle = pthread_self();
    running.process = getpid();
    running.kernel_thread = image.options().own_directory ? gettid() : 0;
    image.argument_count = argument_count;
    image.arguments = arguments;
    image.libc_state().begin(arguments, environment);
    image.environment = image.libc_state().first_environment.get();

    const FirstStack stack(image, *program);
    const std::size_t bytes = stack.bytes();
    auto* memory = static_cast<std::byte*>(alloca(bytes + 16));
    memory += -reinterpret_cast<std::uintptr_t>(memory) & 15;
    stack.write(reinterpret_cast<std::uint64_t*>(memory));
    architecture::enter_program(&running.host, memory,
                                program->at(program->file->header().e_entry));
    end = running.end;
    return {};
}

void end_program(ProgramEnd end, Farewell farewell) {
    Image* image = current_image();
    const bool in_process = image == nullptr || image->running().first_thread == nullptr ||
                            image->running().process != getpid();
    if (image != nullptr && farewell == Farewell::orderly) {
        run_thread_destructors(*thread_head().thread);
        image->destruct(end.status);
        image->libc_state().flush_at_end();
    } else if (image != nullptr && farewell == Farewell::quick) {
        image->quick_exit_functions().run(end.status);
    }
    if (in_process) { // a child of fork, or a thread of the host that is lent to a library
        if (end.signal != 0) {
            std::abort();
        }
        if (image == nullptr && farewell == Farewell::orderly) {
            std::exit(end.status);
        }
        _exit(end.status);
    }
    if (farewell != Farewell::orderly) {
        thread_head().thread->destructors.clear();
        image->give_up();
    }
    image->libc_state().file_locks.forget_all();
    Running& running = image->running();
    running.end = end;
    if (image->options().ended) {
        image->options().ended(end);
    }
    if (thread_head().thread != running.first_thread) {
        stay();
    }
    if (running.first_frame != nullptr) {
        __pthread_unregister_cancel(running.first_frame);
    }
    architecture::leave_program(&running.host);
}

} // namespace warren::image
