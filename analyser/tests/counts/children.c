/* Children of vfork, whose parents sleep where no signal reaches them, beside threads that do what
 * needs all others to stand still.
 *
 *   children forks N             while threads begin others, and one tries programs that are not
 *                                there: forks N times
 *
 *   children leaves N            N processes end while threads try programs that are not there
 *
 *   children outlived SECONDS    ends while a child of vfork sleeps so long; then it says so
 *
 *   children terminated SECONDS  the same by SIGTERM
 *
 *   children killed N            N children of vfork are killed by a signal, then it forks
 *
 *   children cleared N           N times children of clone3 that have no signal handlers
 *
 * Exits with 1 if anything is not as it was. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { page_bytes = 4096, threads = 3 };

static void* does_nothing(void* unused) {
    return unused;
}

/* While another thread executes a program, or tries to, Linux has no new ones (EAGAIN). */
static void start_and_join(void) {
    pthread_t made;
    int error;
    while ((error = pthread_create(&made, NULL, does_nothing, NULL)) == EAGAIN) {
        sched_yield();
    }
    if (error != 0) {
        fprintf(stderr, "pthread_create: %s\n", strerror(error));
        exit(1);
    }
    pthread_join(made, NULL);
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

static void* begins_threads(void* unused) {
    for (;;) {
        start_and_join();
    }
    return unused;
}

static double gigabytes_of_addresses(void) {
    double of_pages = 0;
    FILE* const file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lf", &of_pages) != 1) {
        exit(1);
    }
    fclose(file);
    return of_pages * (double)page_bytes / 1e9;
}

static void* tries_programs(void* unused) {
    char* const none[] = {"nonexistent-program", NULL};
    pid_t child;
    while (posix_spawnp(&child, none[0], NULL, NULL, none, environ) != 0) {
    }
    exit(1);
    return unused;
}

/* Processes, one after the other, each of which does `what` and ends. */
static void fork_each(int number, void (*what)(void)) {
    for (int turn = 0; turn < number; ++turn) {
        const pid_t child = fork();
        if (child == 0) {
            what();
            exit(3);
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 3) {
            exit(1);
        }
    }
}

static void do_nothing(void) {}

static void try_programs(void) {
    pthread_t made[threads];
    start(made, threads, tries_programs);
    usleep(50000);
}

static void fork_beside_children(int number) {
    pthread_t made[2];
    start(made, 1, tries_programs);
    start(made + 1, 1, begins_threads);
    fork_each(number, do_nothing);
}

static double child_sleeps;

static void* has_child(void* unused) {
    const char said[] = "the child goes on\n";
    if (vfork() == 0) {
        usleep((unsigned)(child_sleeps * 1e6));
        _exit(write(1, said, sizeof said - 1) != sizeof said - 1);
    }
    return unused;
}

static void end_beside_child(double how_long) {
    pthread_t made[1];
    child_sleeps = how_long;
    start(made, 1, has_child);
    usleep(300000);
}

/* What is kept of a child goes when it is gone, also before anybody waits for it. */
static void lose_children(int number) {
    const double before = gigabytes_of_addresses();
    for (int turn = 0; turn < number; ++turn) {
        const pid_t child = vfork();
        if (child == 0) {
            /* Calls whose arguments DynamoRIO keeps, as it keeps those of execve. */
            const struct rlimit none = {0, 0};
            setrlimit(RLIMIT_CORE, &none);
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            kill(getpid(), SIGKILL);
        }
        fork_each(1, do_nothing);
        int status = 0;
        if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) {
            exit(1);
        }
    }
    const double more = gigabytes_of_addresses() - before;
    if (more > 100) {
        fprintf(stderr, "%.0f GB more of addresses\n", more);
        exit(1);
    }
}

static void is_no_handler(int signal) {
    (void)signal;
}

static int handler_is(int signal, void (*handler)(int)) {
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == handler;
}

/* An ignored signal stays ignored. A call whose argument can't be read fails, no more. */
static __attribute__((noreturn, noinline)) void be_cleared_child(void) {
    const long unreadable = 8;
    const long bytes = 8;
    const int as_expected = handler_is(SIGUSR1, SIG_DFL) && handler_is(SIGCONT, SIG_DFL) &&
                            handler_is(SIGHUP, SIG_IGN) &&
                            syscall(SYS_rt_sigaction, SIGUSR1, unreadable, NULL, bytes) == -1 &&
                            errno == EFAULT;
    if (as_expected) {
        kill(getpid(), SIGHUP);
        kill(getpid(), SIGUSR1);
    }
    _exit(1);
}

/* As posix_spawn of newer C libraries makes its child. After CLONE_VM it runs on this stack, below,
 * while its parent sleeps. */
static void clone_cleared(uint64_t flags) {
    const uint64_t clear_handlers = UINT64_C(1) << 32;
    const uint64_t request[8] = {flags | clear_handlers, 0, 0, 0, SIGCHLD, 0, 0, 0};
    long child;
    __asm__ volatile("syscall"
                     : "=a"(child)
                     : "0"((long)SYS_clone3), "D"(request), "S"(sizeof request)
                     : "rcx", "r11", "memory");
    if (child == 0) {
        be_cleared_child();
    }
    int status = 0;
    if (child < 0 || waitpid((pid_t)child, &status, 0) != child || !WIFSIGNALED(status) ||
        WTERMSIG(status) != SIGUSR1) {
        fprintf(stderr, "clone3 with %lx: %ld, status %x\n", (unsigned long)flags, child,
                (unsigned)status);
        exit(1);
    }
}

static void clear_handlers(int number) {
    signal(SIGUSR1, is_no_handler);
    signal(SIGCONT, is_no_handler);
    signal(SIGHUP, SIG_IGN);
    for (int turn = 0; turn < number; ++turn) {
        clone_cleared(CLONE_VM | CLONE_VFORK);
        clone_cleared(0);
    }
    if (!handler_is(SIGUSR1, is_no_handler) || !handler_is(SIGCONT, is_no_handler)) {
        exit(1);
    }
}

int main(int count, char** words) {
    const char* const what = count > 2 ? words[1] : "";
    if (strcmp(what, "forks") == 0) {
        fork_beside_children(atoi(words[2]));
    } else if (strcmp(what, "leaves") == 0) {
        fork_each(atoi(words[2]), try_programs);
    } else if (strcmp(what, "outlived") == 0) {
        end_beside_child(atof(words[2]));
    } else if (strcmp(what, "terminated") == 0) {
        end_beside_child(atof(words[2]));
        raise(SIGTERM);
    } else if (strcmp(what, "killed") == 0) {
        lose_children(atoi(words[2]));
    } else if (strcmp(what, "cleared") == 0) {
        clear_handlers(atoi(words[2]));
    } else {
        return 2;
    }
    return 0;
}
