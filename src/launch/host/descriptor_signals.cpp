#include "launch/host/descriptor_signals.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <fcntl.h>
#include <mutex>
#include <unistd.h>
#include <unordered_map>

#include "base/blocked_signals.hpp"
#include "image/host_interface.hpp"
#include "launch/host/rank_signals.hpp"
#include "launch/host/rank_timers.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/thread_signals.hpp"

namespace warren::launch {

namespace {

// A fibre has a descriptor that the router owns.
struct Owned {
    std::uint32_t rank;
    int signal; // as F_SETSIG counts: 0 is SIGIO without the descriptor
};

struct DescriptorSignals {
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

// Null: it is not the router's. Under the lock.
Owned* find_owned(int descriptor, std::uint32_t rank) {
    const auto found = descriptor_signals().owned.find(descriptor);
    const bool is_there = found != descriptor_signals().owned.end() && is_owned(descriptor, rank);
    return is_there ? &found->second : nullptr;
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
        descriptor_signals().owned.erase(descriptor);
    }
}

bool means_process(int command, const void* argument) {
    if (command == F_SETOWN) {
        return static_cast<pid_t>(reinterpret_cast<std::intptr_t>(argument)) == getpid();
    }
    const auto* owner = static_cast<const f_owner_ex*>(argument);
    return command == F_SETOWN_EX && owner->type == F_OWNER_PID && owner->pid == getpid();
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

int control_owned(int descriptor, std::uint32_t rank, int command, void* argument) {
    const BlockedSignals blocked; // a handler may call this
    const std::lock_guard guard(descriptor_signals().lock);
    switch (command) {
    case F_SETOWN:
    case F_SETOWN_EX:
        if (means_process(command, argument)) {
            return own(descriptor, rank);
        }
        disown(descriptor, rank);
        break;
    case F_GETOWN:
        if (is_owned(descriptor, rank)) {
            return getpid();
        }
        break;
    case F_GETOWN_EX:
        if (is_owned(descriptor, rank)) {
            *static_cast<f_owner_ex*>(argument) = {.type = F_OWNER_PID, .pid = getpid()};
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

} // namespace

void prepare_descriptor_signals(bool fibres) {
    descriptor_signals().fibres = fibres;
}

int control_descriptor(int descriptor, int command, void* argument) {
    const bool is_about_owner = command == F_SETOWN || command == F_GETOWN || command == F_SETSIG ||
                                command == F_GETSIG || command == F_SETOWN_EX ||
                                command == F_GETOWN_EX;
    const std::uint32_t rank = is_about_owner ? rank_of_thread() : no_rank;
    return signals_of_rank(rank) != nullptr
               ? control_owned(descriptor, rank, command, argument)
               : warren_image_control_file(descriptor, command, argument);
}

bool take_of_descriptor(siginfo_t& information, std::uint32_t& rank) {
    if (information.si_code < POLL_IN || information.si_code > POLL_HUP) {
        return false;
    }
    const std::lock_guard guard(descriptor_signals().lock);
    const auto found = descriptor_signals().owned.find(information.si_fd);
    if (found == descriptor_signals().owned.end()) {
        rank = no_rank;
        return true;
    }
    rank = found->second.rank;
    information.si_signo = found->second.signal;
    if (information.si_signo == 0) {
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
    };
    return bindings;
}

} // namespace warren::launch
