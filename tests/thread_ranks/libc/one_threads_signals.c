/* What raise and pthread_kill send to a rank's first thread is for that alone: others that let the
   signal through, or wait for it, don't get it. What pthread_sigqueue sends to another thread comes
   to that. SIGKILL can't be in a handler's mask. */
#define _GNU_SOURCE

#include <errno.h>
#include <time.h>

#include "handled.h"

enum { rounds = 20, wait_us = 500 };

static pthread_t first_thread;
static volatile sig_atomic_t calls_in_first_thread, last_value, is_over;

static void count(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)context;
    last_value = information->si_value.sival_int;
    calls_in_first_thread += pthread_equal(pthread_self(), first_thread) != 0;
    ++calls;
}

static void* let_through(void* none) {
    while (!is_over) {
        usleep(wait_us);
        block(SIGUSR1, SIG_BLOCK);
        block(SIGUSR1, SIG_UNBLOCK);
    }
    return none;
}

static void* take(void* none) {
    const sigset_t set = only(SIGUSR1);
    const struct timespec limit = {0, wait_us * 1000};
    sigset_t pending;
    while (!is_over) {
        errno = 0;
        expect(sigtimedwait(&set, NULL, &limit) == -1 && errno == EAGAIN);
        expect(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 0);
    }
    return none;
}

static void signals_for_the_first(void* (*other)(void*)) {
    pthread_t thread;
    sigset_t pending;
    block(SIGUSR1, SIG_BLOCK);
    is_over = 0;
    expect(pthread_create(&thread, NULL, other, NULL) == 0);
    if (other == let_through) {
        usleep(10 * wait_us); /* it has begun, and lets the signal through */
    }
    for (int round = 0; round < rounds; ++round) {
        calls = calls_in_first_thread = 0;
        expect(round % 2 == 0 ? raise(SIGUSR1) == 0 : pthread_kill(first_thread, SIGUSR1) == 0);
        usleep(4 * wait_us);
        expect(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1);
        expect(calls == 0);
        block(SIGUSR1, SIG_UNBLOCK);
        expect(calls == 1 && calls_in_first_thread == 1);
        block(SIGUSR1, SIG_BLOCK);
    }
    is_over = 1;
    expect(pthread_join(thread, NULL) == 0);
    block(SIGUSR1, SIG_UNBLOCK);
    together();
}

/* One is pending for the thread, and one for the process. */
static void two_pending(void) {
    block(SIGUSR1, SIG_BLOCK);
    calls = 0;
    for (int i = 0; i < 3; ++i) {
        raise(SIGUSR1);
        kill(getpid(), SIGUSR1);
    }
    block(SIGUSR1, SIG_UNBLOCK);
    expect(calls == 2);
    together();
}

static void* sleep_till_over(void* none) {
    while (!is_over) {
        usleep(wait_us);
    }
    return none;
}

static void signals_for_another(void) {
    pthread_t thread;
    is_over = 0;
    expect(pthread_create(&thread, NULL, sleep_till_over, NULL) == 0);
    for (int round = 0; round < rounds; ++round) {
        const union sigval value = {.sival_int = 100 * world_rank + round};
        calls = calls_in_first_thread = 0;
        expect(pthread_sigqueue(thread, SIGUSR1, value) == 0);
        await_calls(1);
        expect(calls_in_first_thread == 0 && last_value == value.sival_int);
    }
    is_over = 1;
    expect(pthread_join(thread, NULL) == 0);
    together();
}

static void masks_of_handlers(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = count;
    action.sa_flags = SA_SIGINFO;
    sigfillset(&action.sa_mask);
    expect(sigaction(SIGURG, &action, NULL) == 0 && sigaction(SIGURG, NULL, &action) == 0);
    expect(sigismember(&action.sa_mask, SIGUSR2) == 1);
    expect(sigismember(&action.sa_mask, SIGKILL) == 0);
    expect(sigismember(&action.sa_mask, SIGSTOP) == 0);
    set_default(SIGURG, 0);
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    first_thread = pthread_self();
    handle(SIGUSR1, count, 0);
    signals_for_the_first(let_through);
    signals_for_the_first(take);
    two_pending();
    signals_for_another();
    masks_of_handlers();
    return finish();
}
