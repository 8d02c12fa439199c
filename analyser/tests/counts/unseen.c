/* Waits in system calls that any handler ends, while a thread sends signals that this one ignores
 * or blocks: each takes the time that it was asked for. Exits with 1 if one doesn't. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void start(pthread_t* made, int number, void* (*function)(void*)) {
    for (int index = 0; index < number; ++index) {
        const int error = pthread_create(&made[index], NULL, function, NULL);
        if (error != 0) {
            fprintf(stderr, "pthread_create: %s\n", strerror(error));
            exit(1);
        }
    }
}

static pthread_t waiter;
static int signal_sent;
static int waits; /* or it is over */
static int events;

static void* sends_unseen(void* unused) {
    while (__atomic_load_n(&waits, __ATOMIC_RELAXED)) {
        pthread_kill(waiter, signal_sent);
        usleep(20000);
    }
    return unused;
}

static void handle(int number) {
    (void)number;
}

static void* sends_one(void* unused) {
    usleep(150000);
    pthread_kill(waiter, SIGUSR2);
    return unused;
}

enum { calls = 9, sigsuspend_call = calls - 1 };

static long wait_in(int call) {
    struct timespec time = {0, 150000000};
    struct timeval short_time = {0, 150000};
    struct epoll_event event;
    int word = 0;
    sigset_t set;
    sigemptyset(&set);
    errno = 0;
    switch (call) {
    case 0:
        return poll(NULL, 0, 150);
    case 1:
        return nanosleep(&time, &time);
    case 2:
        return clock_nanosleep(CLOCK_REALTIME, 0, &time, NULL);
    case 3:
        return epoll_wait(events, &event, 1, 150);
    case 4:
        return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0) == -1 &&
                       errno == ETIMEDOUT
                   ? 0
                   : -1;
    case 5:
        return select(0, NULL, NULL, NULL, &short_time);
    case 6:
        return pselect(0, NULL, NULL, NULL, &time, NULL);
    case 7:
        sigaddset(&set, SIGUSR2);
        return sigtimedwait(&set, NULL, &time) == -1 && errno == EAGAIN ? 0 : -1;
    default: /* which a handler ends, and only that */
        if (signal_sent == SIGUSR1) {
            sigaddset(&set, SIGUSR1);
        }
        return sigsuspend(&set) == -1 && errno == EINTR ? 0 : -1;
    }
}

int main(void) {
    static const int sent[] = {SIGCHLD, SIGHUP, SIGUSR1};
    waiter = pthread_self();
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, handle);
    signal(SIGUSR2, handle);
    events = epoll_create1(0);
    for (int way = 0; way < 3; ++way) {
        for (int call = 0; call < calls; ++call) {
            pthread_t made[2];
            signal_sent = sent[way];
            waits = 1;
            start(made, 1, sends_unseen);
            if (call == sigsuspend_call) {
                start(made + 1, 1, sends_one);
            }
            const double begin = seconds(CLOCK_MONOTONIC);
            const long result = wait_in(call);
            const double took = seconds(CLOCK_MONOTONIC) - begin;
            const int error = errno;
            __atomic_store_n(&waits, 0, __ATOMIC_RELAXED);
            pthread_join(made[0], NULL);
            if (call == sigsuspend_call) {
                pthread_join(made[1], NULL);
            }
            if (result != 0 || took < 0.149 || took > 4) {
                fprintf(stderr, "signal %d, call %d: %ld (%s) after %.2f s\n", signal_sent, call,
                        result, strerror(error), took);
                exit(1);
            }
        }
    }
    return 0;
}
