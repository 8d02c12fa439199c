/* For programs that check which signals reach a rank: handlers, masks, and waits for calls of a
   handler, which counts them in `calls`. To be included after _GNU_SOURCE is defined. */
#ifndef WARREN_TESTS_LIBC_HANDLED_H
#define WARREN_TESTS_LIBC_HANDLED_H

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

enum { looks = 20000, between_looks_us = 500 }; /* ten seconds at most */

static volatile sig_atomic_t calls;

static void handle(int number, void (*with_information)(int, siginfo_t*, void*), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = with_information;
    action.sa_flags = SA_SIGINFO | flags;
    expect(sigaction(number, &action, NULL) == 0);
}

static void set_default(int number, int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    action.sa_flags = flags;
    expect(sigaction(number, &action, NULL) == 0);
}

static sigset_t only(int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    return set;
}

static void block(int number, int how) {
    const sigset_t set = only(number);
    expect(pthread_sigmask(how, &set, NULL) == 0);
}

static void await_calls(int wanted) {
    for (int look = 0; look < looks && calls < wanted; ++look) {
        usleep(between_looks_us);
    }
    expect(calls >= wanted);
}

#endif
