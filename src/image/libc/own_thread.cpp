// Questions about a thread. Those about a fibre are answered for the kernel thread that runs it:
// the kernel knows no thread of the fibre's number.
#include <cerrno>
#include <pthread.h>
#include <sched.h>

#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/thread.hpp"

namespace warren::image::libc {

namespace {

bool is_own_fibre(pthread_t thread) {
    const Thread* own = current_thread();
    return own != nullptr && own->fibre != nullptr && pthread_equal(thread, pthread_self()) != 0;
}

} // namespace

// The C library finds the stack, and then asks the kernel for the processors, which may change.
int pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes) {
    const int error = ::pthread_getattr_np(thread, attributes);
    if (error != ESRCH || !is_own_fibre(thread)) {
        return error;
    }
    void* stack = nullptr;
    std::size_t bytes = 0;
    pthread_attr_getstack(attributes, &stack, &bytes);
    const auto* here = reinterpret_cast<const std::byte*>(&bytes);
    const auto* begin = static_cast<const std::byte*>(stack);
    if (here < begin || here >= begin + bytes) {
        return error;
    }
    pthread_attr_init(attributes);
    return pthread_attr_setstack(attributes, stack, bytes);
}

int pthread_getaffinity_np(pthread_t thread, std::size_t bytes, cpu_set_t* set) {
    if (!is_own_fibre(thread)) {
        return ::pthread_getaffinity_np(thread, bytes, set);
    }
    return ::sched_getaffinity(0, bytes, set) == 0 ? 0 : errno;
}

int pthread_setaffinity_np(pthread_t thread, std::size_t bytes, const cpu_set_t* set) {
    if (!is_own_fibre(thread)) {
        return ::pthread_setaffinity_np(thread, bytes, set);
    }
    return ::sched_setaffinity(0, bytes, set) == 0 ? 0 : errno;
}

int pthread_getschedparam(pthread_t thread, int* policy, sched_param* parameters) {
    if (!is_own_fibre(thread)) {
        return ::pthread_getschedparam(thread, policy, parameters);
    }
    *policy = ::sched_getscheduler(0);
    return *policy >= 0 && ::sched_getparam(0, parameters) == 0 ? 0 : errno;
}

} // namespace warren::image::libc
