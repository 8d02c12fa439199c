/* A thread that is cancelled while it waits ends; its rank and the others go on. */
#define _GNU_SOURCE

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "expect.h"

static int pipe_ends[2];
static pid_t child;

static void* in_poll(void* argument) {
    poll(NULL, 0, 30000);
    return argument;
}

static void* in_ppoll(void* argument) {
    sigset_t set;
    sigemptyset(&set);
    ppoll(NULL, 0, NULL, &set);
    return argument;
}

static void* in_sigwait(void* argument) {
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigwait(&set, &number);
    return argument;
}

static void* in_sigsuspend(void* argument) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigsuspend(&set);
    return argument;
}

static void* in_pause(void* argument) {
    pause();
    return argument;
}

static void* in_sleep(void* argument) {
    const struct timespec time = {30, 0};
    nanosleep(&time, NULL);
    return argument;
}

static void* in_read(void* argument) {
    char byte;
    return read(pipe_ends[0], &byte, 1) == 1 ? NULL : argument;
}

static void* in_waitpid(void* argument) {
    waitpid(child, NULL, 0);
    return argument;
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    void* (*const waits[])(void*) = {in_poll,  in_ppoll, in_sigwait, in_sigsuspend,
                                     in_pause, in_sleep, in_read,    in_waitpid};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    expect(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0 && pipe(pipe_ends) == 0);
    child = fork();
    if (child == 0) {
        sleep(60);
        _exit(0);
    }
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; ++i) {
        pthread_t thread;
        void* result = NULL;
        expect(pthread_create(&thread, NULL, waits[i], NULL) == 0);
        usleep(20000);
        expect(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
        expect(result == PTHREAD_CANCELED);
    }
    kill(child, SIGKILL);
    expect(waitpid(child, NULL, 0) == child);
    return finish();
}
