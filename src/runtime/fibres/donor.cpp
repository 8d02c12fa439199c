#include "runtime/fibres/donor.hpp"

#include <cerrno>
#include <csignal>
#include <linux/futex.h>
#include <memory>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace warren::fibre {

namespace {

// Above all numbers of kernel threads (PID_MAX_LIMIT), and within what a futex has room for.
constexpr int first_number = 1 << 22;

struct Donation {
    Fibre* fibre;
    void (*publish)(Fibre&);
    void (*function)(void*);
    void* argument;
};

// Where the C library keeps the thread's number.
int* find_number() {
    int* address = nullptr;
    if (prctl(PR_GET_TID_ADDRESS, &address) == 0 && address != nullptr) {
        return address;
    }
    // Kernels without it: the first word in the thread's description that has this number.
    const int number = static_cast<int>(syscall(SYS_gettid));
    auto* word = reinterpret_cast<int*>(thread_pointer());
    for (int* const end = word + 512; word < end; ++word) {
        if (*word == number) {
            return word;
        }
    }
    return nullptr;
}

void forget_kernel_thread(std::uint32_t number) {
    // Nothing may interrupt a kernel thread whose stack is another's.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    if (int* own_number = find_number()) {
        *own_number = first_number + static_cast<int>(number);
    }
    static int nobody; // cleared by each of them
    static robust_list_head no_mutexes = {{&no_mutexes.list}, 0, nullptr};
    syscall(SYS_set_tid_address, &nobody);
    syscall(SYS_set_robust_list, &no_mutexes, sizeof no_mutexes);
    forget_restartable_sequences();
}

void* give(void* argument) {
    const std::unique_ptr<Donation> owned(static_cast<Donation*>(argument));
    const Donation donation = *owned;
    Fibre& fibre = *donation.fibre;
    fibre.context.thread_pointer = thread_pointer();
    forget_kernel_thread(fibre.number);
    fibre.on_worker.store(1, std::memory_order_relaxed);
    donation.publish(fibre);
    auto* before = static_cast<Fibre*>(leave_kernel_thread(&fibre.context, &fibre.on_worker));
    // As everywhere where a fibre is resumed (scheduler.cpp).
    static_cast<void>(fibre.on_worker.load(std::memory_order_acquire));
    if (before != nullptr) {
        before->on_worker.store(0, std::memory_order_release);
    }
    donation.function(donation.argument);
    return nullptr;
}

} // namespace

void forget_restartable_sequences() {
#if defined(RSEQ_SIG)
    if (__rseq_size != 0) {
        constexpr unsigned area_bytes = 32; // as the C library registers it
        syscall(SYS_rseq, thread_pointer() + __rseq_offset, area_bytes, RSEQ_FLAG_UNREGISTER,
                RSEQ_SIG);
    }
#endif
}

int donate(Fibre& fibre, void* stack, std::size_t bytes, void (*publish)(Fibre&),
           void (*function)(void*), void* argument) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    int error = pthread_attr_setstack(&attributes, stack, bytes);
    if (error == 0) {
        auto donation = std::make_unique<Donation>(Donation{&fibre, publish, function, argument});
        pthread_t thread;
        error = pthread_create(&thread, &attributes, give, donation.get());
        if (error == 0) {
            static_cast<void>(donation.release()); // give has it
        }
    }
    pthread_attr_destroy(&attributes);
    return error;
}

} // namespace warren::fibre
