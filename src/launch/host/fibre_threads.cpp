// The part of fibre_signals.hpp for threads that a fibre's program makes, and for stacks of
// signals.
#include <cerrno>
#include <csignal>
#include <pthread.h>
#include <span>
#include <threads.h>
#include <unistd.h>

#include "image/host_interface.hpp"
#include "launch/host/fibre_signals.hpp"
#include "launch/host/rank_signals.hpp"

namespace warren::launch {

namespace {

// The kernel's stack of signals stays the launcher's, which is the worker's: fibres on it share it,
// and a program may free its own. Handlers run on the launcher's.
int set_signal_stack(const stack_t* wanted, stack_t* former) {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr) {
        return sigaltstack(wanted, former);
    }
    constexpr auto auto_disarm = static_cast<int>(1U << 31);
    const int flags = wanted != nullptr ? wanted->ss_flags & ~auto_disarm : 0;
    const bool enables = wanted != nullptr && flags != SS_DISABLE;
    if (flags != 0 && flags != SS_DISABLE && flags != SS_ONSTACK) {
        errno = EINVAL;
        return -1;
    }
    if (enables && wanted->ss_size < static_cast<std::size_t>(sysconf(_SC_MINSIGSTKSZ))) {
        errno = ENOMEM;
        return -1;
    }
    const stack_t before = signals->stack;
    if (wanted != nullptr) {
        signals->stack = enables ? *wanted : stack_t{};
    }
    if (former != nullptr) {
        *former = before;
        former->ss_flags = before.ss_size == 0 ? SS_DISABLE : 0;
    }
    return 0;
}

// A thread blocks what the fibre blocks that makes it.
template <typename Make>
int make_thread(Make make) {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr || signals->blocked == 0) {
        return make();
    }
    const sigset_t set = set_of(signals->blocked);
    sigset_t former;
    pthread_sigmask(SIG_BLOCK, &set, &former);
    const int result = make();
    pthread_sigmask(SIG_SETMASK, &former, nullptr);
    return result;
}

int make_posix_thread(pthread_t* made, const pthread_attr_t* attributes, void* (*start)(void*),
                      void* argument) {
    return make_thread(
        [&] { return warren_image_start_thread(made, attributes, start, argument); });
}

int make_c_thread(thrd_t* made, thrd_start_t start, void* argument) {
    return make_thread([&] { return warren_image_start_c_thread(made, start, argument); });
}

} // namespace

std::span<const warren_image_binding> fibre_thread_bindings() {
    static const warren_image_binding bindings[] = {
        {"pthread_create", reinterpret_cast<void*>(&make_posix_thread)},
        {"thrd_create", reinterpret_cast<void*>(&make_c_thread)},
        {"sigaltstack", reinterpret_cast<void*>(&set_signal_stack)},
    };
    return bindings;
}

} // namespace warren::launch
