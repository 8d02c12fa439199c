#include "launch/host/sent_signals.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image/host_interface.hpp"
#include "launch/host/actions.hpp"
#include "launch/host/crash.hpp"
#include "launch/host/dispatch.hpp"
#include "launch/host/fibre_signals.hpp"
#include "launch/host/passed_signals.hpp"
#include "launch/host/rank_signals.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/signals_to_parent.hpp"
#include "launch/host/thread_signals.hpp"
#include "runtime/fibres/api.hpp"

namespace warren::launch {

namespace {

struct Sending {
    pid_t process = 0;
    bool fibres = false;
    std::uint32_t ranks = 0;
    std::unique_ptr<std::atomic<pthread_t>[]> first; // threads, as programs name them
};

Sending& sending() {
    static Sending& only = *new Sending; // outlives everything
    return only;
}

siginfo_t information_of(int number, int code, sigval value) {
    siginfo_t information{};
    information.si_signo = number;
    information.si_code = code;
    information.si_pid = getpid();
    information.si_uid = getuid();
    information.si_value = value;
    return information;
}

int send_to_self(int number) {
    return static_cast<int>(syscall(SYS_tgkill, getpid(), own_thread(), number));
}

// Whether the calling fibre has blocked the signal. The kernel blocks it, too, while its handler
// runs: then it is pending for this thread.
bool blocks_in_fibre(std::uint32_t rank, int number) {
    return warren_fibre_is_one() && blocks_signal(rank, number);
}

// As the kernel does: to the calling thread, if that is the first one and takes it.
int send_in_rank(std::uint32_t rank, siginfo_t information) {
    const int number = information.si_signo;
    const bool is_fibre = sending().fibres && warren_fibre_is_one();
    if (is_fibre && blocks_in_fibre(rank, number) && !is_crash_signal(number)) {
        bool has_room = true;
        hold_back(rank, information, false, &has_room);
        return has_room ? 0 : -1;
    }
    const bool is_open = (mask_of_thread() & bit(number)) == 0;
    const bool is_first = is_fibre || first_thread(rank) == own_thread();
    if (is_fibre || is_crash_signal(number) || (is_first && is_open)) {
        return static_cast<int>(
            syscall(SYS_rt_tgsigqueueinfo, getpid(), own_thread(), number, &information));
    }
    return send_to_rank(rank, information) ? 0 : -1;
}

bool is_to_rank(std::uint32_t rank, int number) {
    return Actions::has(number) && signals_of_rank(rank) != nullptr;
}

// Whether a child of fork, or of such a child, means the rank that it comes from.
bool is_to_parent(pid_t process, std::uint32_t rank, int number) {
    const bool is_the_kernels = number == SIGKILL || number == SIGSTOP || number == SIGCONT ||
                                (number >= __SIGRTMIN && number < SIGRTMIN);
    return process == sending().process && process != getpid() && rank < sending().ranks &&
           Actions::has(number) && !is_the_kernels;
}

// `send_outside` sends to a process that no rank is.
template <class Outside>
auto send(pid_t process, const siginfo_t& information, const Outside& send_outside)
    -> decltype(send_outside()) {
    const std::uint32_t rank = rank_of_thread();
    if (process == getpid() && is_to_rank(rank, information.si_signo)) {
        return send_in_rank(rank, information);
    }
    return is_to_parent(process, rank, information.si_signo) ? send_to_parent(rank, information)
                                                             : send_outside();
}

int send_signal(pid_t process, int number) {
    return send(process, information_of(number, SI_USER, {}),
                [&] { return kill(process, number); });
}

int queue_signal(pid_t process, int number, sigval value) {
    return send(process, information_of(number, SI_QUEUE, value),
                [&] { return sigqueue(process, number, value); });
}

// It is what a program says of its signal, but for the sender, by whom ranks know their own.
siginfo_t information_from(const siginfo_t& given, int number) {
    siginfo_t information = given;
    information.si_signo = number;
    information.si_pid = getpid();
    information.si_uid = getuid();
    return information;
}

// The process that a descriptor means; 0: it means none, or one that has ended. Threads have
// descriptors of their own.
pid_t process_of(int descriptor) {
    char path[48];
    std::snprintf(path, sizeof path, "/proc/thread-self/fdinfo/%d", descriptor);
    const int status = open(path, O_RDONLY | O_CLOEXEC);
    if (status < 0) {
        return 0;
    }
    char text[256] = {};
    const ssize_t count = read(status, text, sizeof text - 1);
    close(status);
    const char* line = count > 0 ? std::strstr(text, "\nPid:\t") : nullptr;
    return line != nullptr ? static_cast<pid_t>(std::strtol(line + 6, nullptr, 10)) : 0;
}

int signal_by_descriptor(int descriptor, int number, siginfo_t* given, unsigned flags) {
    const auto send_outside = [&] {
        return static_cast<int>(syscall(SYS_pidfd_send_signal, descriptor, number, given, flags));
    };
    // (The kernel refuses information about another signal.)
    const bool is_plain = flags == 0 && (given == nullptr || given->si_signo == number);
    const int before = errno;
    const pid_t process = is_plain ? process_of(descriptor) : 0;
    errno = before;
    return process > 0 ? send(process,
                              given != nullptr ? information_from(*given, number)
                                               : information_of(number, SI_USER, {}),
                              send_outside)
                       : send_outside();
}

// The C library's function for calls that it doesn't know.
long call_system(long number, long first, long second, long third, long fourth, long fifth,
                 long sixth) {
    const auto call = [&] {
        return warren_image_call_system(number, first, second, third, fourth, fifth, sixth);
    };
    const auto process = static_cast<pid_t>(first);
    const auto signal = static_cast<int>(second);
    if (number == SYS_kill) {
        return send(process, information_of(signal, SI_USER, {}), call);
    }
    if (number == SYS_rt_sigqueueinfo && third != 0) {
        const auto& given = *reinterpret_cast<const siginfo_t*>(third);
        return send(process, information_from(given, signal), call);
    }
    if (number == SYS_pidfd_send_signal) {
        return signal_by_descriptor(static_cast<int>(first), signal,
                                    reinterpret_cast<siginfo_t*>(third),
                                    static_cast<unsigned>(fourth));
    }
    return call();
}

// Whether another thread means its rank's fibre, of which the C library knows no kernel thread.
bool means_fibre(pthread_t thread) {
    const std::uint32_t rank = rank_of_thread();
    return sending().fibres && rank < sending().ranks && !warren_fibre_is_one() &&
           signals_of_rank(rank) != nullptr &&
           pthread_equal(sending().first[rank].load(std::memory_order_acquire), thread) != 0;
}

int signal_thread(pthread_t thread, int number) {
    if (!means_fibre(thread) || !Actions::has(number)) {
        return number == 0 && means_fibre(thread) ? 0 : pthread_kill(thread, number);
    }
    siginfo_t information = information_of(number, SI_TKILL, {});
    return offer_to_fibre(rank_of_thread(), information) ? 0 : errno;
}

// Whether a fibre means itself.
bool means_itself(pthread_t thread) {
    return sending().fibres && warren_fibre_is_one() &&
           pthread_equal(thread, pthread_self()) != 0 &&
           signals_of_rank(rank_of_thread()) != nullptr;
}

int queue_for_thread(pthread_t thread, int number, sigval value) {
    const bool to_itself = means_itself(thread);
    if (!Actions::has(number) || (!to_itself && !means_fibre(thread))) {
        return number == 0 && (to_itself || means_fibre(thread))
                   ? 0
                   : pthread_sigqueue(thread, number, value);
    }
    siginfo_t information = information_of(number, SI_QUEUE, value);
    const std::uint32_t rank = rank_of_thread();
    const bool sent =
        to_itself ? send_in_rank(rank, information) == 0 : offer_to_fibre(rank, information);
    return sent ? 0 : errno;
}

} // namespace

void prepare_sending(std::uint32_t ranks, bool fibres) {
    prepare_signals_to_parent();
    sending().process = getpid();
    sending().fibres = fibres;
    sending().ranks = ranks;
    sending().first = std::make_unique<std::atomic<pthread_t>[]>(ranks);
}

void note_first_thread(std::uint32_t rank) {
    sending().first[rank].store(pthread_self(), std::memory_order_release);
}

std::span<const warren_image_binding> sending_bindings() {
    static const warren_image_binding bindings[] = {
        {"raise", reinterpret_cast<void*>(&send_to_self)},
        {"gsignal", reinterpret_cast<void*>(&send_to_self)},
        {"kill", reinterpret_cast<void*>(&send_signal)},
        {"sigqueue", reinterpret_cast<void*>(&queue_signal)},
        {"pidfd_send_signal", reinterpret_cast<void*>(&signal_by_descriptor)},
        {"syscall", reinterpret_cast<void*>(&call_system)},
        {"pthread_kill", reinterpret_cast<void*>(&signal_thread)},
        {"pthread_sigqueue", reinterpret_cast<void*>(&queue_for_thread)},
    };
    return bindings;
}

} // namespace warren::launch
