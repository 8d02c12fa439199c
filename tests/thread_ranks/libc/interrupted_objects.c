/* Handlers end the waits of a rank for semaphores and futex words, as those of a process: with a
   time limit always, else without SA_RESTART only. Descriptors that are ready come before signals.
   SA_RESETHAND leaves the flags. */
#define _GNU_SOURCE

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "handled.h"

enum { period_us = 20000, kinds = 5 };

static sem_t semaphore;

static void count(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)information;
    (void)context;
    ++calls;
}

static void count_and_post(int number, siginfo_t* information, void* context) {
    count(number, information, context);
    sem_post(&semaphore);
}

/* Again and again: one signal may come before the wait. 0: no more. */
static void start_timer(long us) {
    const struct itimerval times = {{0, us}, {0, us}};
    expect(setitimer(ITIMER_REAL, &times, NULL) == 0);
}

static struct timespec in_a_while(clockid_t clock) {
    struct timespec end;
    clock_gettime(clock, &end);
    end.tv_sec += 20;
    return end;
}

static long wait_for_word(int command, const struct timespec* limit) {
    static const uint32_t word = 0;
    return syscall(SYS_futex, &word, command, 0, limit, NULL, FUTEX_BITSET_MATCH_ANY);
}

static long wait_with_limit(int kind) {
    const struct timespec for_a_while = {20, 0};
    const struct timespec by_day = in_a_while(CLOCK_REALTIME);
    const struct timespec steady = in_a_while(CLOCK_MONOTONIC);
    switch (kind) {
    case 0:
        return sem_timedwait(&semaphore, &by_day);
    case 1:
        return sem_clockwait(&semaphore, CLOCK_MONOTONIC, &steady);
    case 2:
        return wait_for_word(FUTEX_WAIT_PRIVATE, &for_a_while);
    case 3:
        return wait_for_word(FUTEX_WAIT_BITSET_PRIVATE, &steady);
    default:
        return wait_for_word(FUTEX_WAIT, &for_a_while);
    }
}

static void handlers_that_end_waits(void) {
    for (int restarts = 0; restarts < 2; ++restarts) {
        handle(SIGALRM, count, restarts ? SA_RESTART : 0);
        start_timer(period_us);
        for (int kind = 0; kind < kinds; ++kind) {
            calls = 0;
            errno = 0;
            expect(wait_with_limit(kind) == -1 && errno == EINTR);
            expect(calls != 0);
        }
        start_timer(0);
        together();
    }
    handle(SIGALRM, count, 0);
    start_timer(period_us);
    errno = 0;
    expect(sem_wait(&semaphore) == -1 && errno == EINTR);
    errno = 0;
    expect(wait_for_word(FUTEX_WAIT_PRIVATE, NULL) == -1 && errno == EINTR);
    start_timer(0);
    together();
}

/* The wait goes on, and gets what the handler gives. */
static void handlers_that_restart_waits(void) {
    handle(SIGALRM, count_and_post, SA_RESTART);
    start_timer(period_us);
    for (int round = 0; round < kinds; ++round) {
        expect(sem_wait(&semaphore) == 0);
    }
    start_timer(0);
    usleep(2 * period_us);
    while (sem_trywait(&semaphore) == 0) {
    }
    set_default(SIGALRM, 0);
    together();
}

/* A signal is pending that the wait would let through. */
static void ready_descriptors(void) {
    int ends[2];
    expect(pipe(ends) == 0);
    const int watcher = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    expect(epoll_ctl(watcher, EPOLL_CTL_ADD, ends[0], &event) == 0);
    struct pollfd descriptor = {.fd = ends[0], .events = POLLIN};
    sigset_t none;
    sigemptyset(&none);
    fd_set set;
    handle(SIGUSR1, count, 0);
    for (int ready = 0; ready < 2; ++ready) {
        const int wanted = ready ? 1 : -1;
        if (ready) {
            expect(write(ends[1], "1", 1) == 1);
        }
        for (int kind = 0; kind < 3; ++kind) {
            block(SIGUSR1, SIG_BLOCK);
            calls = 0;
            expect(pthread_kill(pthread_self(), SIGUSR1) == 0);
            FD_ZERO(&set);
            FD_SET(ends[0], &set);
            errno = 0;
            const int said = kind == 0   ? ppoll(&descriptor, 1, NULL, &none)
                             : kind == 1 ? pselect(ends[0] + 1, &set, NULL, NULL, NULL, &none)
                                         : epoll_pwait(watcher, &event, 1, -1, &none);
            expect(said == wanted && (ready || errno == EINTR));
            expect(FD_ISSET(ends[0], &set));
            expect(calls == !ready);
            block(SIGUSR1, SIG_UNBLOCK);
            expect(calls == 1);
        }
    }
    close(watcher);
    close(ends[0]);
    close(ends[1]);
    set_default(SIGUSR1, 0);
    together();
}

/* Sets that end where memory does, and are shorter than the number of descriptors says. */
static void odd_sets(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char* memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(memory != MAP_FAILED && mprotect(memory + page, page, PROT_NONE) == 0);
    fd_set* const set = (fd_set*)(memory + page - sizeof(fd_set));
    int ends[2];
    expect(pipe(ends) == 0);
    sigset_t none;
    sigemptyset(&none);
    const int counts[] = {FD_SETSIZE, getdtablesize(), 2000, INT_MAX};
    handle(SIGUSR1, count, 0);
    for (int kind = 0; kind < 5; ++kind) {
        const int is_negative = kind == 4;
        const int number = is_negative ? -1 : counts[kind];
        block(SIGUSR1, SIG_BLOCK);
        calls = 0;
        expect(pthread_kill(pthread_self(), SIGUSR1) == 0);
        FD_ZERO(set);
        FD_SET(ends[0], set);
        errno = 0;
        expect(pselect(number, set, NULL, NULL, NULL, &none) == -1);
        expect(errno == (is_negative ? EINVAL : EINTR));
        expect(FD_ISSET(ends[0], set) && calls == !is_negative);
        block(SIGUSR1, SIG_UNBLOCK);
    }
    close(ends[0]);
    close(ends[1]);
    munmap(memory, 2 * page);
    set_default(SIGUSR1, 0);
    together();
}

static void handlers_that_serve_once(void) {
    const int flags = SA_RESETHAND | SA_RESTART;
    struct sigaction action;
    calls = 0;
    handle(SIGURG, count, flags);
    raise(SIGURG);
    raise(SIGURG);
    expect(calls == 1);
    expect(sigaction(SIGURG, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
    const unsigned left = (unsigned)action.sa_flags & ~0x04000000U; /* SA_RESTORER */
    expect(left == ((unsigned)flags | SA_SIGINFO));
    set_default(SIGURG, 0);
    together();
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    expect(sem_init(&semaphore, 0, 0) == 0);
    handlers_that_end_waits();
    handlers_that_restart_waits();
    ready_descriptors();
    odd_sets();
    handlers_that_serve_once();
    return finish();
}
