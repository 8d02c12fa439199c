#include "launch/host/descriptor_signals.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/sockios.h>
#include <mutex>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unordered_map>

#include "base/blocked_signals.hpp"
#include "image/host_interface.hpp"
#include "launch/host/rank_timers.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/thread_signals.hpp"

namespace warren::launch {

namespace {

// The router owns the descriptor for a fibre.
struct Owned {
    std::uint32_t rank;
    int signal; // as F_SETSIG counts: 0 is SIGIO without the descriptor
};

struct DescriptorSignals {
    pid_t process = 0;
    bool fibres = false;
    std::mutex lock;
    std::unordered_map<int, Owned> owned; // by descriptor; those that are closed stay
};

DescriptorSignals& descriptor_signals() {
    static DescriptorSignals& only = *new DescriptorSignals; // outlives everything
    return only;
}

pid_t owner_for(std::uint32_t rank) {
    return descriptor_signals().fibres ? router_of_signals() : first_thread(rank);
}

// Whether the kernel's owner is the calling rank.
bool is_owned(int descriptor, std::uint32_t rank) {
    f_owner_ex owner{};
    return fcntl(descriptor, F_GETOWN_EX, &owner) == 0 && owner.type == F_OWNER_TID &&
           owner.pid != 0 && owner.pid == owner_for(rank);
}

bool is_same_file(int one, int other) {
    const pid_t process = getpid();
    return syscall(SYS_kcmp, process, process, KCMP_FILE, one, other) == 0;
}

// The descriptor may be another one of the same open file. Null: it has no entry. Under the lock.
Owned* find_entry(int descriptor) {
    auto& all = descriptor_signals().owned;
    auto found = all.find(descriptor);
    if (found == all.end()) {
        found = std::find_if(all.begin(), all.end(),
                             [&](const auto& one) { return is_same_file(one.first, descriptor); });
    }
    return found != all.end() ? &found->second : nullptr;
}

// Null: it is not the router's. Under the lock.
Owned* find_owned(int descriptor, std::uint32_t rank) {
    return descriptor_signals().fibres && is_owned(descriptor, rank) ? find_entry(descriptor)
                                                                     : nullptr;
}

int own(int descriptor, std::uint32_t rank) {
    const f_owner_ex owner{.type = F_OWNER_TID, .pid = owner_for(rank)};
    const Owned* former = find_owned(descriptor, rank);
    const int signal = former != nullptr ? former->signal : fcntl(descriptor, F_GETSIG);
    if (signal < 0 || fcntl(descriptor, F_SETOWN_EX, &owner) != 0) {
        return -1;
    }
    if (descriptor_signals().fibres) {
        descriptor_signals().owned[descriptor] = {.rank = rank, .signal = signal};
        return fcntl(descriptor, F_SETSIG, signal_of_router);
    }
    return 0;
}

// Another process, or nobody, is to own it.
void disown(int descriptor, std::uint32_t rank) {
    if (const Owned* former = find_owned(descriptor, rank)) {
        fcntl(descriptor, F_SETSIG, former->signal);
    }
}

// Whether it makes this process the owner.
bool means(pid_t process, int command, const void* argument) {
    if (command == F_SETOWN) {
        return static_cast<pid_t>(reinterpret_cast<std::intptr_t>(argument)) == process;
    }
    const auto* owner = static_cast<const f_owner_ex*>(argument);
    return command == F_SETOWN_EX && owner->type == F_OWNER_PID && owner->pid == process;
}

// Signals have no room for more than their numbers here.
int set_signal(int descriptor, std::uint32_t rank, int signal) {
    Owned* owned = find_owned(descriptor, rank);
    if (owned == nullptr) {
        return fcntl(descriptor, F_SETSIG, signal);
    }
    if (signal < 0 || signal >= NSIG) {
        errno = EINVAL;
        return -1;
    }
    owned->signal = signal;
    return 0;
}

// The kernel names the descriptor from now on by which its signals were asked for.
void note_asked(int descriptor, std::uint32_t rank) {
    if (descriptor_signals().fibres && is_owned(descriptor, rank)) {
        const Owned* known = find_entry(descriptor);
        descriptor_signals().owned[descriptor] = {.rank = rank,
                                                  .signal = known != nullptr ? known->signal : 0};
    }
}

// `process`: what the rank takes itself for, or a child of fork the rank that it comes from.
int control_owned(int descriptor, std::uint32_t rank, pid_t process, int command, void* argument) {
    switch (command) {
    case F_SETOWN:
    case F_SETOWN_EX:
        if (means(process, command, argument)) {
            return own(descriptor, rank);
        }
        disown(descriptor, rank);
        break;
    case F_GETOWN:
        if (is_owned(descriptor, rank)) {
            return process;
        }
        break;
    case F_GETOWN_EX:
        if (is_owned(descriptor, rank)) {
            *static_cast<f_owner_ex*>(argument) = {.type = F_OWNER_PID, .pid = process};
            return 0;
        }
        break;
    case F_SETSIG:
        return set_signal(descriptor, rank,
                          static_cast<int>(reinterpret_cast<std::intptr_t>(argument)));
    case F_GETSIG:
        if (const Owned* owned = find_owned(descriptor, rank)) {
            return owned->signal;
        }
        break;
    case F_SETFL:
        note_asked(descriptor, rank);
        break;
    default:
        break;
    }
    return warren_image_control_file(descriptor, command, argument);
}

int control(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void* argument = va_arg(arguments, void*); // as wide as any
    va_end(arguments);
    return control_descriptor(descriptor, command, argument);
}

int control_of_device(int descriptor, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void* argument = va_arg(arguments, void*);
    va_end(arguments);
    return control_device(descriptor, request, argument);
}

// The other way to ask for a socket's owner; other files don't know these requests.
bool is_about_owner_of_socket(int descriptor, unsigned long request) {
    struct stat status {};
    return (request == FIOSETOWN || request == SIOCSPGRP || request == FIOGETOWN ||
            request == SIOCGPGRP) &&
           fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
}

} // namespace

void prepare_descriptor_signals(bool fibres) {
    descriptor_signals().process = getpid();
    descriptor_signals().fibres = fibres;
}

int control_descriptor(int descriptor, int command, void* argument) {
    const bool is_about_owner = command == F_SETOWN || command == F_GETOWN || command == F_SETSIG ||
                                command == F_GETSIG || command == F_SETOWN_EX ||
                                command == F_GETOWN_EX;
    const bool asks =
        command == F_SETFL && (reinterpret_cast<std::intptr_t>(argument) & O_ASYNC) != 0;
    const std::uint32_t rank = is_about_owner || asks ? rank_of_thread() : no_rank;
    if (rank == no_rank) {
        return warren_image_control_file(descriptor, command, argument);
    }
    DescriptorSignals& signals = descriptor_signals();
    const BlockedSignals blocked; // a handler may call this
    // In a child of fork another thread may have held the lock, and there is none now.
    std::unique_lock lock(signals.lock, std::defer_lock);
    if (getpid() == signals.process) {
        lock.lock();
    }
    return control_owned(descriptor, rank, signals.process, command, argument);
}

int control_device(int descriptor, unsigned long request, void* argument) {
    if (argument != nullptr && is_about_owner_of_socket(descriptor, request)) {
        int& owner = *static_cast<int*>(argument);
        if (request == FIOSETOWN || request == SIOCSPGRP) {
            return control_descriptor(descriptor, F_SETOWN,
                                      reinterpret_cast<void*>(std::intptr_t{owner}));
        }
        owner = control_descriptor(descriptor, F_GETOWN, nullptr);
        return 0;
    }
    const int result = ioctl(descriptor, request, argument);
    if (result == 0 && request == FIOASYNC && *static_cast<const int*>(argument) != 0) {
        const std::intptr_t flags = fcntl(descriptor, F_GETFL);
        return control_descriptor(descriptor, F_SETFL, reinterpret_cast<void*>(flags));
    }
    return result;
}

bool take_of_descriptor(siginfo_t& information, std::uint32_t& rank) {
    if (information.si_code < POLL_IN || information.si_code > POLL_HUP) {
        return false;
    }
    const std::lock_guard guard(descriptor_signals().lock);
    const Owned* found = find_entry(information.si_fd);
    rank = found != nullptr ? found->rank : no_rank;
    information.si_signo = found != nullptr ? found->signal : SIGIO;
    if (found == nullptr || found->signal == 0) {
        information = {};
        information.si_signo = SIGIO;
        information.si_code = SI_KERNEL;
    }
    return true;
}

std::span<const warren_image_binding> descriptor_signal_bindings() {
    static const warren_image_binding bindings[] = {
        {"fcntl", reinterpret_cast<void*>(&control)},
        {"fcntl64", reinterpret_cast<void*>(&control)},
        {"ioctl", reinterpret_cast<void*>(&control_of_device)},
    };
    return bindings;
}

} // namespace warren::launch
