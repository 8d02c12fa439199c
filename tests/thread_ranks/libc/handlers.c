/* Handlers of signals that call what their rank may be calling, that don't return, and that run in
 * a child. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "expect.h"

enum { short_us = 300, loops = 20000, forks = 30, left_status = 7 };

static volatile sig_atomic_t calls;
static sigjmp_buf place;

static void count(int number) {
    (void)number;
    ++calls;
}

static void set_again(int number) {
    signal(number, set_again);
    ++calls;
}

static void start_again(int number) {
    (void)number;
    ++calls;
    ualarm(short_us, 0);
}

static void jump(int number) {
    (void)number;
    siglongjmp(place, 1);
}

/* Each of these would end up in a wait for itself. */
static void handlers_that_set_handlers_and_timers(void) {
    const struct itimerval often = {{0, short_us}, {0, short_us}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    calls = 0;
    signal(SIGALRM, set_again);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < loops || calls == 0; ++i) {
        signal(SIGUSR1, SIG_IGN);
        signal(SIGUSR1, SIG_DFL);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    calls = 0;
    signal(SIGALRM, start_again);
    ualarm(short_us, 0);
    struct itimerval now;
    for (int i = 0; i < loops || calls == 0; ++i) {
        getitimer(ITIMER_REAL, &now);
    }
    signal(SIGALRM, SIG_IGN);
    setitimer(ITIMER_REAL, &never, NULL);
}

/* Others set actions while a rank forks; the child sets one, too. */
static void children_that_set_actions(void) {
    together();
    if (world_rank != 0) {
        for (int i = 0; i < 10 * loops; ++i) {
            signal(SIGUSR1, i % 2 == 0 ? SIG_IGN : SIG_DFL);
        }
    }
    for (int i = 0; world_rank == 0 && i < forks; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            signal(SIGUSR1, SIG_DFL);
            _exit(left_status);
        }
        int status = 0;
        expect(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == left_status);
    }
    together();
}

static void handlers_that_jump_out_of_a_wait(void) {
    signal(SIGALRM, jump);
    signal(SIGUSR1, count);
    if (sigsetjmp(place, 1) == 0) {
        ualarm(10 * short_us, 0);
        while (1) {
            pause();
        }
    }
    calls = 0;
    raise(SIGUSR1);
    expect(calls == 1);
}

static void ignored_signals_are_not_pending(void) {
    sigset_t set;
    sigset_t pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    sigpending(&pending);
    expect(sigismember(&pending, SIGUSR1) == 1);
    signal(SIGUSR1, SIG_IGN);
    sigpending(&pending);
    expect(sigismember(&pending, SIGUSR1) == 0);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* A group of processes has children of all ranks. */
static void children_of_a_group(void) {
    pid_t child = 0;
    if (world_rank == 0) {
        child = fork();
        if (child == 0) {
            _exit(left_status);
        }
        siginfo_t ended;
        waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT);
    }
    together();
    siginfo_t information;
    if (world_rank != 0) {
        expect(waitpid(0, NULL, WNOHANG) == -1 && errno == ECHILD);
        expect(waitpid(-getpgrp(), NULL, WNOHANG) == -1 && errno == ECHILD);
        expect(waitid(P_PGID, (id_t)getpgrp(), &information, WEXITED | WNOHANG) == -1 &&
               errno == ECHILD);
    }
    together();
    if (world_rank == 0) {
        int status = 0;
        expect(waitpid(0, &status, 0) == child && WEXITSTATUS(status) == left_status);
    }
}

static void close_a_file(int number) {
    (void)number;
    close(open("/dev/null", O_RDONLY));
    ++calls;
}

/* A lock of a file makes each close look for what it ends. */
static void handlers_that_close_files_during_a_fork(void) {
    FILE* file = tmpfile();
    expect(lockf(fileno(file), F_LOCK, 0) == 0);
    calls = 0;
    signal(SIGALRM, close_a_file);
    /* Not so often that no fork of a process gets done. */
    const struct itimerval often = {{0, 10 * short_us}, {0, 10 * short_us}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < forks || calls == 0; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(left_status);
        }
        int status = 0;
        expect(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == left_status);
    }
    signal(SIGALRM, SIG_IGN);
    setitimer(ITIMER_REAL, &never, NULL);
    fclose(file);
    together();
}

/* freopen closes a file, and so ends the rank's locks of it. */
static void locks_and_freopen(void) {
    char name[] = "/tmp/a-warren-handlers-XXXXXX";
    int file = -1;
    if (world_rank == 0) {
        file = mkstemp(name);
        expect(lockf(file, F_LOCK, 0) == 0);
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (world_rank != 0) {
        file = open(name, O_RDWR);
        expect(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK && lock.l_pid > 0);
    }
    together();
    if (world_rank == 0) {
        FILE* stream = fopen(name, "r");
        expect(freopen("/dev/null", "r", stream) != NULL);
        fclose(stream);
    }
    together();
    if (world_rank != 0) {
        lock.l_type = F_WRLCK;
        expect(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK);
    }
    close(file);
    together();
    if (world_rank == 0) {
        unlink(name);
    }
}

static void messages_of_dlopen(void) {
    expect(dlopen("./there-is-none.so", RTLD_NOW) == NULL);
    expect(dlsym(RTLD_DEFAULT, "printf") != NULL);
    expect(dlerror() == NULL);
    expect(dlopen("there-is-none.so", RTLD_NOW | RTLD_NOLOAD) == NULL);
    const char* message = dlerror();
    expect(message != NULL && strstr(message, "cannot open shared object file") != NULL);
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    handlers_that_set_handlers_and_timers();
    children_that_set_actions();
    handlers_that_jump_out_of_a_wait();
    ignored_signals_are_not_pending();
    children_of_a_group();
    handlers_that_close_files_during_a_fork();
    locks_and_freopen();
    messages_of_dlopen();
    return finish();
}
