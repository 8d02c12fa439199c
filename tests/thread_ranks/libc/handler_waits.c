/* A handler may wait, give way and look for messages; it may wait for what it has raised itself,
   and leave a wait for good by a jump. A rank's alarm runs in its first thread. Children of a fork
   make threads. The argument is the kind of ranks. */
#define _GNU_SOURCE

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "handled.h"

enum { raised = 50, jumps = 10, alarms = 20, children = 10, threads = 5 };

static void set_alarm(int us) {
    const struct itimerval once = {{0, 0}, {0, us}};
    expect(setitimer(ITIMER_REAL, &once, NULL) == 0);
}

/* ---- Handlers that wait */

enum { gives_way, waits, looks_for_message, kinds };

static int kind;
static sem_t posted;

static void wait_in_handler(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)information;
    (void)context;
    int flag;
    ++calls;
    if (kind == gives_way) {
        sched_yield();
    } else if (kind == waits) {
        while (sem_wait(&posted) != 0) {
        }
    } else {
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    }
}

static void* post(void* none) {
    for (int i = 0; i < raised; ++i) {
        usleep(500);
        sem_post(&posted);
    }
    return none;
}

static void waits_in_handlers(void) {
    handle(SIGUSR2, wait_in_handler, 0);
    for (kind = 0; kind < kinds; ++kind) {
        pthread_t thread;
        if (kind == waits) {
            expect(pthread_create(&thread, NULL, post, NULL) == 0);
        }
        together();
        calls = 0;
        for (int i = 0; i < raised; ++i) {
            raise(SIGUSR2);
            expect(calls == i + 1);
        }
        if (kind == waits) {
            expect(pthread_join(thread, NULL) == 0);
        }
        sigset_t blocked;
        expect(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0);
        expect(sigismember(&blocked, SIGUSR2) == 0);
        together();
    }
    set_default(SIGUSR2, 0);
}

/* ---- What a handler raises itself */

static volatile sig_atomic_t nested;

static void count_nested(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)information;
    (void)context;
    ++nested;
}

static void raise_and_wait(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)information;
    (void)context;
    sigset_t all_others;
    sigfillset(&all_others);
    sigdelset(&all_others, SIGUSR2);
    raise(SIGUSR2);
    expect(nested == 0);
    expect(sigsuspend(&all_others) == -1 && errno == EINTR);
    expect(nested == 1);
    const sigset_t awaited = only(SIGHUP);
    raise(SIGHUP);
    expect(sigwaitinfo(&awaited, NULL) == SIGHUP);
    ++calls;
}

static void signals_of_handlers(void) {
    handle(SIGUSR2, count_nested, 0);
    handle(SIGHUP, count_nested, 0);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = raise_and_wait;
    action.sa_flags = SA_SIGINFO;
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaddset(&action.sa_mask, SIGHUP);
    expect(sigaction(SIGUSR1, &action, NULL) == 0);
    calls = 0;
    raise(SIGUSR1);
    expect(calls == 1 && nested == 1);
    set_default(SIGUSR1, 0);
    set_default(SIGUSR2, 0);
    set_default(SIGHUP, 0);
    together();
}

/* ---- Jumps out of waits */

static sigjmp_buf before_wait;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void jump(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)information;
    (void)context;
    siglongjmp(before_wait, 1);
}

static void use_stack(int depth) {
    volatile char bytes[3000];
    memset((void*)bytes, 0x5a, sizeof bytes);
    if (depth > 0) {
        use_stack(depth - 1);
    }
}

static void wait_for_nobody(int way, sem_t* never, pthread_mutex_t* held) {
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 20;
    switch (way) {
    case 0:
        sem_wait(never);
        break;
    case 1:
        sem_timedwait(never, &limit);
        break;
    case 2:
        pthread_mutex_lock(&mutex);
        pthread_cond_wait(&condition, &mutex);
        break;
    default:
        pthread_mutex_lock(held);
    }
}

static void jumps_out_of_waits(void) {
    sem_t never;
    pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
    sem_init(&never, 0, 0);
    pthread_mutex_lock(&held);
    handle(SIGALRM, jump, SA_RESTART);
    for (volatile int way = 0; way < 4; ++way) {
        volatile int jumped = 0;
        for (volatile int i = 0; i < jumps; ++i) {
            if (sigsetjmp(before_wait, 1) == 0) {
                set_alarm(2000 + 100 * world_rank);
                wait_for_nobody(way, &never, &held);
                expect(!"the wait has ended");
            } else {
                ++jumped;
                use_stack(5);
            }
        }
        expect(jumped == jumps);
        for (int i = 0; i < jumps; ++i) { /* others look at those who wait */
            use_stack(5);
            together();
            sem_post(&never);
            sem_wait(&never);
        }
    }
    set_default(SIGALRM, 0);
}

/* ---- A condition that is signalled while a handler runs */

static pthread_mutex_t own_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t own_condition = PTHREAD_COND_INITIALIZER;
static atomic_int in_handler, is_signalled, is_true;

static void wait_for_signaller(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)information;
    (void)context;
    in_handler = 1;
    for (int look = 0; look < looks && !is_signalled; ++look) {
        usleep(between_looks_us);
    }
}

static void* signal_condition(void* none) {
    for (int look = 0; look < looks && !in_handler; ++look) {
        usleep(between_looks_us);
    }
    pthread_mutex_lock(&own_mutex);
    is_true = 1;
    pthread_cond_signal(&own_condition);
    pthread_mutex_unlock(&own_mutex);
    is_signalled = 1;
    return none;
}

static void signals_of_conditions(void) {
    pthread_t thread;
    handle(SIGALRM, wait_for_signaller, SA_RESTART);
    expect(pthread_create(&thread, NULL, signal_condition, NULL) == 0);
    pthread_mutex_lock(&own_mutex);
    set_alarm(5000);
    while (!is_true) {
        pthread_cond_wait(&own_condition, &own_mutex);
    }
    pthread_mutex_unlock(&own_mutex);
    expect(pthread_join(thread, NULL) == 0);
    set_default(SIGALRM, 0);
    together();
}

/* ---- The first thread's alarms */

static pthread_t first;
static volatile sig_atomic_t elsewhere;
static atomic_int is_over;

static void look_where(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)information;
    (void)context;
    ++calls;
    elsewhere += !pthread_equal(pthread_self(), first);
}

static void* sleep_often(void* none) {
    while (!is_over) {
        usleep(3000);
    }
    return none;
}

/* In a process the kernel may choose the other thread, while the first one has no processor. */
static void alarms_beside_a_thread(int is_process) {
    pthread_t thread;
    first = pthread_self();
    handle(SIGALRM, look_where, SA_RESTART);
    expect(pthread_create(&thread, NULL, sleep_often, NULL) == 0);
    calls = 0;
    for (int i = 0; i < alarms; ++i) {
        set_alarm(2000);
        for (long look = 0; look < 400000000 && calls <= i; ++look) {
            if (i % 2 == 0) {
                sched_yield();
            }
        }
    }
    is_over = 1;
    expect(pthread_join(thread, NULL) == 0);
    expect(calls == alarms);
    expect(is_process || elsewhere == 0);
    set_default(SIGALRM, 0);
    together();
}

/* ---- Children of a fork */

static void* use_thread(void* none) {
    use_stack(20);
    return none;
}

static void children_that_make_threads(void) {
    for (int i = 0; i < children; ++i) {
        pthread_t ended;
        expect(pthread_create(&ended, NULL, use_thread, NULL) == 0);
        expect(pthread_join(ended, NULL) == 0);
        const pid_t child = fork();
        if (child == 0) {
            for (int turn = 0; turn < threads; ++turn) {
                pthread_t made[threads];
                for (int n = 0; n < threads; ++n) {
                    pthread_create(&made[n], NULL, use_thread, NULL);
                }
                for (int n = 0; n < threads; ++n) {
                    pthread_join(made[n], NULL);
                }
                sched_yield();
            }
            _exit(0);
        }
        int status = -1;
        expect(waitpid(child, &status, 0) == child && status == 0);
    }
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    sem_init(&posted, 0, 0);
    waits_in_handlers();
    signals_of_handlers();
    jumps_out_of_waits();
    signals_of_conditions();
    alarms_beside_a_thread(argc > 1 && strcmp(argv[1], "processes") == 0);
    children_that_make_threads();
    return finish();
}
