/* A handler runs in the thread of its rank, or as its fibre: on its stack, with its thread-local
   variables, also while the rank waits for others. */
#define _GNU_SOURCE

#include <errno.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "handled.h"

enum { rounds = 40, children = 3, messages = 5 };

static __thread int own;
static const char* stack;
static size_t stack_bytes;
static volatile sig_atomic_t ended, elsewhere, with_others_variables;

static void look_where(void) {
    const char here = 0;
    elsewhere += &here < stack || &here >= stack + stack_bytes;
    with_others_variables += own != world_rank + 1;
}

static void collect(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)information;
    (void)context;
    const int error = errno;
    look_where();
    while (waitpid(-1, NULL, WNOHANG) > 0) {
        ++ended;
    }
    errno = error;
}

static void count(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)information;
    (void)context;
    look_where();
    ++calls;
}

/* Most end while their parent waits for a message, or for all. */
static void ends_of_children(void) {
    handle(SIGCHLD, collect, SA_RESTART);
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < children; ++i) {
            const pid_t child = fork();
            if (child == 0) {
                usleep((useconds_t)(100 * ((world_rank * 7 + i * 13 + round) % 9)));
                _exit(0);
            }
            expect(child > 0);
        }
        for (int i = 0; i < messages; ++i) {
            int received;
            MPI_Sendrecv(&world_rank, 1, MPI_INT, (world_rank + 1) % world_size, 0, &received, 1,
                         MPI_INT, (world_rank + world_size - 1) % world_size, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
        together();
    }
    for (int look = 0; look < looks && ended < rounds * children; ++look) {
        usleep(between_looks_us);
    }
    expect(ended == rounds * children);
    set_default(SIGCHLD, 0);
}

static void* send_to_first(void* first) {
    usleep(20000);
    expect(pthread_kill(*(pthread_t*)first, SIGUSR1) == 0);
    return NULL;
}

/* The handlers of ranks that wait for rank 0, which computes, run meanwhile. */
static void signals_of_threads(void) {
    handle(SIGUSR1, count, SA_RESTART);
    calls = 0;
    together();
    pthread_t thread, first = pthread_self();
    struct timespec begun, now;
    expect(pthread_create(&thread, NULL, send_to_first, &first) == 0);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (world_rank == 0 && calls == 0 && now.tv_sec - begun.tv_sec < 20);
    together();
    expect(pthread_join(thread, NULL) == 0);
    await_calls(1);
    expect(calls == 1);
    together();
}

/* A timer interrupts a rank that computes, and ranks that wait for it. */
static void timers(void) {
    handle(SIGALRM, count, SA_RESTART);
    calls = 0;
    together();
    const struct itimerval often = {{0, 2000}, {0, 2000}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    expect(setitimer(ITIMER_REAL, &often, NULL) == 0);
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (world_rank == 0 && calls < 20 && now.tv_sec - begun.tv_sec < 20);
    together();
    await_calls(20);
    expect(setitimer(ITIMER_REAL, &never, NULL) == 0);
    together();
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    own = world_rank + 1;
    pthread_attr_t attributes;
    void* begin_of_stack;
    expect(pthread_getattr_np(pthread_self(), &attributes) == 0);
    expect(pthread_attr_getstack(&attributes, &begin_of_stack, &stack_bytes) == 0);
    stack = begin_of_stack;
    ends_of_children();
    signals_of_threads();
    timers();
    expect(elsewhere == 0 && with_others_variables == 0);
    return finish();
}
