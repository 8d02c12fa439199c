#include <csetjmp>
#include <csignal>
#include <pthread.h>

#include "image/address_table.hpp"
#include "image/host.hpp"
#include "image/libc/functions.hpp"
#include "image/program.hpp"

// The C library's headers hide it from C++: pthread_cleanup_push of C programs calls it.
extern "C" void __pthread_register_cancel(__pthread_unwind_buf_t*); // NOLINT

namespace warren::image::libc {

// pthread_exit and cancellation unwind the first thread until here, and come back for its end.
// No object with a destructor may live here while main runs: see program.hpp on unwinding.
int libc_start_main(int (*main)(int, char**, char**), int, char**,
                    void (*init)(int, char**, char**), void (*)(), void (*)(), void*) {
    Image& image = *current_image();
    image.construct(*image.program(), init);
    __pthread_unwind_buf_t frame;
    if (__sigsetjmp(reinterpret_cast<__jmp_buf_tag*>(frame.__cancel_jmp_buf), 0) != 0) {
        end_first_thread();
    }
    __pthread_register_cancel(&frame);
    image.running().first_frame = &frame;
    libc::exit(main(image.argument_count, image.arguments, image.environment));
}

void exit(int status) {
    end_program({status & 0xff, 0}, Farewell::orderly);
}

void immediate_exit(int status) {
    end_program({status & 0xff, 0}, Farewell::none);
}

void quick_exit(int status) {
    end_program({status & 0xff, 0}, Farewell::quick);
}

// The program's own handler hears of it, as in a process.
void abort() {
    struct sigaction action {};
    sigaction(SIGABRT, nullptr, &action);
    if ((action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler != SIG_DFL &&
        action.sa_handler != SIG_IGN) {
        action.sa_handler(SIGABRT);
    }
    end_program({0, SIGABRT}, Farewell::none);
}

int cxa_atexit(void (*function)(void*), void* argument, void* module) {
    current_image()->exit_functions().add({function, nullptr, argument, module});
    return 0;
}

int cxa_at_quick_exit(void (*function)(void*), void* module) {
    current_image()->quick_exit_functions().add({function, nullptr, nullptr, module});
    return 0;
}

int atexit(void (*function)()) {
    return libc::cxa_atexit(reinterpret_cast<void (*)(void*)>(reinterpret_cast<void*>(function)),
                            nullptr, nullptr);
}

int on_exit(void (*function)(int, void*), void* argument) {
    current_image()->exit_functions().add({nullptr, function, argument, nullptr});
    return 0;
}

// Called by the destructors of each module: what was registered for it and has not been called. At
// an image's end nothing is left of that.
void cxa_finalize(void* module) {
    const Module* owner = module != nullptr ? address_table().find(module) : nullptr;
    if (owner != nullptr && owner->image == current_image()) {
        current_image()->exit_functions().run_of(owner->start, owner->start + owner->file->span());
    }
}

} // namespace warren::image::libc
