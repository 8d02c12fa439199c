/* Signals for threads that a rank's program has made, handlers that are left by jumps, and signals
   without a handler, while the rank waits. The argument is the kind of ranks. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "expect.h"

enum { period_us = 20000, children = 10, depth = 20, frame_bytes = 4096 };

static const struct timespec long_time = {20, 0};
static pthread_t first_thread;
static volatile sig_atomic_t calls, calls_in_first_thread, nested, most_nested, reaped;
static sigjmp_buf place;
static jmp_buf place_without_mask;

static void count(int number) {
    (void)number;
    ++calls;
    calls_in_first_thread += pthread_equal(pthread_self(), first_thread) != 0;
}

static void jump(int number) {
    siglongjmp(place, number);
}

static void jump_without_mask(int number) {
    longjmp(place_without_mask, number);
}

static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    expect(sigaction(number, &action, NULL) == 0);
}

static void start_timer(long first_us, long period) {
    const struct itimerval times = {{0, period}, {0, first_us}};
    expect(setitimer(ITIMER_REAL, &times, NULL) == 0);
}

/* Looks, with sleeps, until a counter has reached a value. */
static void await(volatile sig_atomic_t* counter, int value) {
    for (int look = 0; look < 5000 && *counter < value; ++look) {
        usleep(1000);
    }
    expect(*counter >= value);
}

struct waiter {
    int descriptor; /* read from; or, -1, */
    pid_t child;    /* waited for */
    volatile sig_atomic_t begun, ended;
    int result, error;
};

static void* wait_in_thread(void* argument) {
    struct waiter* own = argument;
    char text;
    own->begun = 1;
    own->result = own->descriptor >= 0 ? (int)read(own->descriptor, &text, 1)
                                       : (int)waitpid(own->child, NULL, 0);
    own->error = errno;
    own->ended = 1;
    return NULL;
}

/* Again and again: one signal may come before the wait. The sleeps get none of them. */
static void interrupt(struct waiter* waiter) {
    pthread_t thread;
    expect(pthread_create(&thread, NULL, wait_in_thread, waiter) == 0);
    await(&waiter->begun, 1);
    calls = calls_in_first_thread = 0;
    for (int i = 0; i < 200 && !waiter->ended; ++i) {
        const struct timespec time = {0, 20000000};
        pthread_kill(thread, SIGUSR1);
        expect(nanosleep(&time, NULL) == 0);
    }
    expect(waiter->ended && waiter->result == -1 && waiter->error == EINTR);
    expect(calls >= 1 && calls_in_first_thread == 0);
    if (waiter->ended) {
        pthread_join(thread, NULL);
    }
}

static pid_t make_child_that_waits(void) {
    const pid_t child = fork();
    if (child == 0) {
        while (1) {
            pause();
        }
    }
    return child;
}

static void end_child(pid_t child) {
    kill(child, SIGKILL);
    expect(waitpid(child, NULL, 0) == child);
}

static void* raise_in_thread(void* result) {
    usleep(period_us);
    const int before = calls;
    raise(SIGUSR1);
    *(int*)result = calls - before;
    return NULL;
}

static void signals_for_threads(void) {
    handle(SIGUSR1, count, 0);
    int ends[2];
    expect(pipe(ends) == 0);
    struct waiter reader = {.descriptor = ends[0]};
    interrupt(&reader);
    struct waiter parent = {.descriptor = -1, .child = make_child_that_waits()};
    interrupt(&parent);
    end_child(parent.child);
    /* The handler has run when raise returns. */
    int result = 0;
    pthread_t thread;
    expect(pthread_create(&thread, NULL, raise_in_thread, &result) == 0);
    const struct timespec time = {0, 10 * period_us * 1000L};
    expect(nanosleep(&time, NULL) == 0);
    expect(pthread_join(thread, NULL) == 0 && result == 1);
    close(ends[0]);
    close(ends[1]);
}

static void* note_mask(void* mask) {
    pthread_sigmask(SIG_BLOCK, NULL, mask);
    usleep(period_us / 10);
    return mask;
}

/* It comes as soon as there is the thread, which has its maker's mask. */
static void signals_for_new_threads(void) {
    enum { threads = 50 };
    handle(SIGUSR1, count, SA_RESTART);
    sigset_t set, mask;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    expect(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    calls = calls_in_first_thread = 0;
    for (int i = 1; i <= threads; ++i) {
        pthread_t thread;
        expect(pthread_create(&thread, NULL, note_mask, &mask) == 0);
        expect(pthread_kill(thread, SIGUSR1) == 0);
        expect(pthread_join(thread, NULL) == 0);
        expect(calls == i && calls_in_first_thread == 0);
        expect(sigismember(&mask, SIGUSR2) == 1 && sigismember(&mask, SIGUSR1) == 0 &&
               sigismember(&mask, SIGTERM) == 0);
    }
    expect(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    /* Or the mask that its attributes have. */
    pthread_attr_t attributes;
    pthread_t thread;
    expect(pthread_attr_init(&attributes) == 0);
    expect(pthread_attr_setsigmask_np(&attributes, &set) == 0);
    expect(pthread_create(&thread, &attributes, note_mask, &mask) == 0);
    expect(pthread_join(thread, NULL) == 0);
    expect(sigismember(&mask, SIGUSR2) == 1 && sigismember(&mask, SIGUSR1) == 0);
    pthread_attr_destroy(&attributes);
}

/* A signal of which no handler runs ends no sleep. */
static void stops_of_children(void) {
    handle(SIGCHLD, count, SA_NOCLDSTOP);
    calls = 0;
    const pid_t child = fork();
    if (child == 0) {
        usleep(period_us);
        raise(SIGSTOP);
        _exit(0);
    }
    const struct timespec time = {0, 10 * period_us * 1000L};
    expect(nanosleep(&time, NULL) == 0 && calls == 0);
    end_child(child);
    handle(SIGCHLD, SIG_DFL, 0);
}

static void reap(int number) {
    (void)number;
    const int error = errno;
    if (++nested > most_nested) {
        most_nested = nested;
    }
    while (waitpid(-1, NULL, WNOHANG) > 0) {
        ++reaped;
    }
    --nested;
    errno = error;
}

/* Which blocks its own signal. */
static void handler_that_reaps(void) {
    reaped = most_nested = 0;
    handle(SIGCHLD, reap, SA_RESTART);
    volatile int* ends =
        mmap(NULL, sizeof *ends, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < children; ++i) {
        if (fork() == 0) {
            while (!*ends) {
                usleep(period_us);
            }
            _exit(0);
        }
    }
    *ends = 1; /* they all end, about now */
    while (reaped < children && nanosleep(&long_time, NULL) != 0) {
    }
    expect(reaped == children);
    expect(most_nested == 1);
    handle(SIGCHLD, SIG_DFL, 0);
}

/* longjmp leaves the handler's signals blocked, for the rank that jumps. */
static void jump_of_one(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    if (world_rank == 0) {
        handle(SIGALRM, jump_without_mask, 0);
        if (setjmp(place_without_mask) == 0) {
            start_timer(period_us, 0);
            sleep(20);
            expect(0);
        }
        sigset_t blocked;
        expect(sigprocmask(SIG_UNBLOCK, &set, &blocked) == 0 && sigismember(&blocked, SIGALRM));
    }
    together();
    handle(SIGALRM, count, SA_RESTART);
    calls = 0;
    raise(SIGALRM);
    expect(calls == 1);
    together();
}

static pid_t wait_deep(pid_t child, int levels) {
    volatile char frame[frame_bytes];
    frame[levels] = 0;
    return levels == 0 ? waitpid(child, NULL, 0) : wait_deep(child, levels - 1) + frame[levels];
}

/* After a jump out of a handler the rank is in none, also deeper on the stack. */
static void wait_after_jump(void) {
    handle(SIGALRM, jump, 0);
    if (sigsetjmp(place, 1) == 0) {
        start_timer(period_us, 0);
        sleep(20);
        expect(0);
    }
    const pid_t child = make_child_that_waits();
    handle(SIGALRM, count, 0);
    start_timer(period_us, period_us);
    expect(wait_deep(child, depth) == -1 && errno == EINTR);
    start_timer(0, 0);
    end_child(child);
}

static void* wait_for_alarm(void* result) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    return sigwait(&set, result) == 0 ? result : NULL;
}

/* The timer goes on when the thread that has waited for it has ended. */
static void timer_after_its_waiter(void) {
    handle(SIGALRM, count, SA_RESTART);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    expect(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    int number = 0;
    pthread_t thread;
    expect(pthread_create(&thread, NULL, wait_for_alarm, &number) == 0);
    usleep(2 * period_us);
    start_timer(period_us, period_us);
    expect(pthread_join(thread, NULL) == 0 && number == SIGALRM);
    calls = 0;
    expect(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    await(&calls, 2);
    start_timer(0, 0);
}

/* Who asks for locks holds none. */
static void locks_that_nobody_holds(void) {
    char name[] = "/tmp/a-warren-locks-XXXXXX";
    int file = -1;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (world_rank == 0) {
        file = mkstemp(name);
        expect(fcntl(file, F_OFD_SETLK, &lock) == 0); /* no process's */
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int look = 0; look < 2; ++look) {
        if (world_rank != 0) {
            file = file < 0 ? open(name, O_RDWR) : file;
            lock.l_type = F_WRLCK;
            lock.l_pid = 0;
            expect(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK && lock.l_pid == -1);
        }
        together();
    }
    close(file);
    if (world_rank == 0) {
        unlink(name);
    }
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    first_thread = pthread_self();
    const int threads = strcmp(argv[1], "threads") == 0;
    signals_for_threads();
    signals_for_new_threads();
    if (!threads) { /* whose children's signals are all ranks' */
        stops_of_children();
        handler_that_reaps();
    }
    jump_of_one();
    wait_after_jump();
    timer_after_its_waiter();
    locks_that_nobody_holds();
    return finish();
}
