/* The signals of a rank's timers, and those that it sends to its process, reach that rank: its
   handler, in a thread of its own, or whoever of its threads waits for them, as in a process. */
#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>

#include "handled.h"

enum { period_us = 5000, timers = 3 };

static _Thread_local int own_rank = -1; /* of each thread that the rank has made, too */
static volatile sig_atomic_t strange, last_value, last_code;
static pthread_t first_thread, handled_in;
static sigjmp_buf place;
static FILE* log_file;

static void note(int number, siginfo_t* information, void* context) {
    (void)context;
    (void)number;
    strange += own_rank != world_rank;
    handled_in = pthread_self();
    last_value = information->si_value.sival_int;
    last_code = information->si_code;
    ++calls;
}

static void jump(int number) {
    siglongjmp(place, number);
}

static void jump_without_mask(int number) {
    longjmp(place, number);
}

static int blocks(int number) {
    sigset_t now;
    expect(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0);
    return sigismember(&now, number);
}

static int is_pending(int number) {
    sigset_t now;
    expect(sigpending(&now) == 0);
    return sigismember(&now, number);
}

static void set_alarm(long first_us, long next_us) {
    const struct itimerval times = {{0, next_us}, {0, first_us}};
    expect(setitimer(ITIMER_REAL, &times, NULL) == 0);
}

static timer_t make_timer(int number, int value, long first_us, long next_us) {
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = number;
    event.sigev_value.sival_int = value;
    timer_t timer = 0;
    expect(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    const struct itimerspec times = {{0, next_us * 1000}, {0, first_us * 1000}};
    expect(timer_settime(timer, 0, &times, NULL) == 0);
    return timer;
}

/* Only one rank at a time has a timer; the others handle the same signal, and get none. */
static void timers_of_one(void) {
    handle(SIGALRM, note, SA_RESTART);
    handle(SIGRTMIN + 3, note, SA_RESTART);
    for (int rank = 0; rank < world_size; ++rank) {
        calls = 0;
        together();
        if (rank == world_rank) {
            set_alarm(period_us, period_us);
            await_calls(3);
            set_alarm(0, 0);
            expect(last_code == SI_TIMER || last_code == SI_KERNEL);
            calls = 0;
            timer_t timer = make_timer(SIGRTMIN + 3, 100 + rank, period_us, period_us);
            await_calls(3);
            expect(last_value == 100 + rank && last_code == SI_TIMER);
            expect(timer_delete(timer) == 0);
            calls = 1;
        } else {
            const struct timespec time = {0, 20000000};
            expect(nanosleep(&time, NULL) == 0); /* nor ends another's timer a wait */
            expect(poll(NULL, 0, 20) == 0);
        }
        together();
        expect(rank == world_rank ? calls >= 1 : calls == 0);
    }
    expect(strange == 0 && pthread_equal(handled_in, first_thread));
}

static void* sleep_on(void* ends) {
    own_rank = world_rank;
    while (!*(volatile int*)ends) {
        usleep(1000);
    }
    return NULL;
}

/* All ranks at once, without an event: SIGALRM. */
static void timers_at_once(void) {
    calls = 0;
    together();
    timer_t timer = 0;
    expect(timer_create(CLOCK_REALTIME, NULL, &timer) == 0);
    const struct itimerspec times = {{0, 0}, {0, period_us * 1000L}};
    expect(timer_settime(timer, 0, &times, NULL) == 0);
    expect(pause() == -1 && errno == EINTR);
    expect(calls == 1 && last_code == SI_TIMER && last_value == 0);
    expect(timer_delete(timer) == 0);
    together();
    calls = 0;
    timer_t all[timers];
    for (int i = 0; i < timers; ++i) {
        all[i] = make_timer(SIGRTMIN + 3, i, (i + 1) * period_us, 0);
    }
    await_calls(timers);
    expect(calls == timers);
    for (int i = 0; i < timers; ++i) {
        expect(timer_delete(all[i]) == 0);
    }
    together();
}

static void waits_for_timers(void) {
    const sigset_t alarms = only(SIGALRM);
    const sigset_t own = only(SIGRTMIN + 3);
    sigset_t before;
    calls = 0;
    block(SIGALRM, SIG_BLOCK);
    block(SIGRTMIN + 3, SIG_BLOCK);
    together();
    set_alarm(period_us, 0);
    int number = 0;
    expect(sigwait(&alarms, &number) == 0 && number == SIGALRM);
    timer_t timer = make_timer(SIGRTMIN + 3, 200 + world_rank, period_us, period_us);
    siginfo_t information;
    const struct timespec limit = {20, 0};
    for (int i = 0; i < 3; ++i) {
        memset(&information, 0, sizeof information);
        expect(sigtimedwait(&own, &information, &limit) == SIGRTMIN + 3);
        expect(information.si_value.sival_int == 200 + world_rank);
        expect(information.si_code == SI_TIMER && information.si_errno == 0);
    }
    expect(timer_delete(timer) == 0);
    expect(calls == 0);
    /* Pending, shown, and handled by a wait that lets it through. */
    set_alarm(period_us, 0);
    for (int look = 0; look < looks && !is_pending(SIGALRM); ++look) {
        usleep(500);
    }
    expect(is_pending(SIGALRM) == 1 && calls == 0);
    expect(pthread_sigmask(SIG_BLOCK, NULL, &before) == 0);
    sigset_t open = before;
    sigdelset(&open, SIGALRM);
    expect(sigsuspend(&open) == -1 && errno == EINTR && calls == 1);
    expect(blocks(SIGALRM) == 1 && is_pending(SIGALRM) == 0);
    set_alarm(period_us, 0);
    expect(sigsuspend(&open) == -1 && errno == EINTR && calls == 2);
    set_alarm(period_us, 0);
    expect(ppoll(NULL, 0, &limit, &open) == -1 && errno == EINTR && calls == 3);
    block(SIGALRM, SIG_UNBLOCK);
    block(SIGRTMIN + 3, SIG_UNBLOCK);
    expect(strange == 0);
    together();
}

struct waiter {
    int wanted, taken, number;
};

static void* wait_for_signals(void* argument) {
    struct waiter* own = argument;
    own_rank = world_rank;
    const sigset_t set = only(own->number);
    int number = 0;
    while (own->taken < own->wanted && sigwait(&set, &number) == 0 && number == own->number) {
        ++own->taken;
    }
    return own;
}

/* A thread waits that the rank has made, the others have the signal blocked. Then it waits no more,
   and the timer goes on: with the first thread, once that lets the signal through. */
static void threads_that_wait(int number, int by_alarm) {
    together();
    calls = 0;
    block(number, SIG_BLOCK);
    struct waiter waiter = {.wanted = 3, .number = number};
    timer_t timer = 0;
    if (by_alarm) {
        set_alarm(period_us, period_us);
    } else {
        timer = make_timer(number, 0, period_us, period_us);
    }
    pthread_t thread;
    expect(pthread_create(&thread, NULL, wait_for_signals, &waiter) == 0);
    expect(pthread_join(thread, NULL) == 0 && waiter.taken == waiter.wanted && calls == 0);
    block(number, SIG_UNBLOCK);
    await_calls(3);
    block(number, SIG_BLOCK);
    waiter.taken = 0;
    expect(pthread_create(&thread, NULL, wait_for_signals, &waiter) == 0);
    expect(pthread_join(thread, NULL) == 0 && waiter.taken == waiter.wanted);
    /* It comes to who waits first, and then, though the waiter lives, to who lets it through. */
    volatile int ends = 0;
    pthread_t other;
    expect(pthread_create(&other, NULL, sleep_on, (void*)&ends) == 0);
    calls = 0;
    block(number, SIG_UNBLOCK);
    await_calls(3);
    block(number, SIG_BLOCK);
    ends = 1;
    expect(pthread_join(other, NULL) == 0);
    if (by_alarm) {
        set_alarm(0, 0);
    } else {
        expect(timer_delete(timer) == 0);
    }
    block(number, SIG_UNBLOCK);
    expect(strange == 0);
    together();
}

static void* let_through(void* argument) {
    struct waiter* own = argument;
    own_rank = world_rank;
    block(own->number, SIG_UNBLOCK);
    await_calls(own->wanted);
    return argument;
}

/* The one thread of a rank that has a signal unblocked runs the handler. */
static void threads_that_handle(void) {
    block(SIGALRM, SIG_BLOCK);
    calls = 0;
    together();
    struct waiter waiter = {.wanted = 3, .number = SIGALRM};
    pthread_t thread;
    expect(pthread_create(&thread, NULL, let_through, &waiter) == 0);
    set_alarm(4 * period_us, period_us);
    expect(pthread_join(thread, NULL) == 0);
    set_alarm(0, 0);
    expect(calls >= 3 && !pthread_equal(handled_in, first_thread) && strange == 0);
    block(SIGALRM, SIG_UNBLOCK);
    together();
}

/* What a rank sends to its process. */
static void signals_to_itself(void) {
    handle(SIGUSR1, note, SA_RESTART);
    handle(SIGUSR2, note, 0);
    together();
    for (int rank = 0; rank < world_size; ++rank) {
        calls = 0;
        together();
        if (rank == world_rank) {
            expect(kill(getpid(), SIGUSR1) == 0 && calls == 1);
            expect(raise(SIGUSR1) == 0 && calls == 2);
            expect(pthread_kill(pthread_self(), SIGUSR1) == 0 && calls == 3);
            block(SIGUSR1, SIG_BLOCK);
            expect(kill(getpid(), SIGUSR1) == 0 && raise(SIGUSR1) == 0);
            expect(pthread_kill(pthread_self(), SIGUSR1) == 0);
            expect(calls == 3 && is_pending(SIGUSR1) == 1);
            block(SIGUSR1, SIG_UNBLOCK);
            expect(calls >= 4 && is_pending(SIGUSR1) == 0);
            calls = 4;
        }
        together();
        expect(calls == (rank == world_rank ? 4 : 0));
        expect(is_pending(SIGUSR1) == 0 && blocks(SIGUSR1) == 0);
        together();
    }
    expect(strange == 0);
}

/* Sent by one thread, waited for by another, a little before and after. */
static void signals_between_threads(void) {
    block(SIGUSR1, SIG_BLOCK);
    together();
    for (int early = 0; early < 2; ++early) {
        calls = 0;
        struct waiter waiter = {.wanted = 1, .number = SIGUSR1};
        pthread_t thread;
        if (early) {
            expect(kill(getpid(), SIGUSR1) == 0);
            usleep(2000);
        }
        expect(pthread_create(&thread, NULL, wait_for_signals, &waiter) == 0);
        if (!early) {
            usleep(2000);
            expect(kill(getpid(), SIGUSR1) == 0);
        }
        expect(pthread_join(thread, NULL) == 0 && waiter.taken == 1 && calls == 0);
        expect(is_pending(SIGUSR1) == 0);
    }
    block(SIGUSR1, SIG_UNBLOCK);
    together();
}

static void* signal_first(void* unused) {
    own_rank = world_rank;
    for (int i = 0; i < looks && calls == 0; ++i) {
        usleep(20000);
        expect(calls != 0 || pthread_kill(first_thread, SIGUSR2) == 0);
    }
    return unused;
}

/* A thread of the rank ends a wait of the first one. */
static void signals_for_the_first(void) {
    calls = 0;
    together();
    pthread_t thread;
    expect(pthread_create(&thread, NULL, signal_first, NULL) == 0);
    const struct timespec time = {20, 0};
    expect(nanosleep(&time, NULL) == -1 && errno == EINTR);
    expect(pthread_join(thread, NULL) == 0);
    expect(calls >= 1 && pthread_equal(handled_in, first_thread) && strange == 0);
    together();
}

/* The mask before sigsetjmp comes back, a longjmp out of a handler leaves its signal blocked for
 * this rank. */
static void jumps(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    for (int saves = 0; saves < 2; ++saves) {
        action.sa_handler = jump;
        sigemptyset(&action.sa_mask);
        sigaddset(&action.sa_mask, SIGUSR2);
        expect(sigaction(SIGALRM, &action, NULL) == 0);
        together();
        block(SIGUSR1, SIG_BLOCK);
        const int jumped = sigsetjmp(place, saves);
        if (jumped == 0) {
            block(SIGUSR1, SIG_UNBLOCK);
            if (world_rank % 2 == 0) {
                set_alarm(period_us, 0);
                pause();
                expect(0);
            }
        }
        const int even = world_rank % 2 == 0;
        together();
        expect(blocks(SIGALRM) == (even && !saves) && blocks(SIGUSR2) == (even && !saves));
        expect(blocks(SIGUSR1) == (even && saves));
        together(); /* others' handlers run meanwhile */
        calls = 0;
        raise(SIGUSR2);
        expect(calls == (even && !saves ? 0 : 1));
        block(SIGALRM, SIG_UNBLOCK);
        block(SIGUSR1, SIG_UNBLOCK);
        block(SIGUSR2, SIG_UNBLOCK);
        expect(calls == 1);
        together();
    }
    handle(SIGALRM, note, SA_RESTART);
}

static void jump_while_computing(void) {
    static volatile int turns;
    signal(SIGALRM, jump_without_mask);
    together();
    if (sigsetjmp(place, 0) == 0) {
        set_alarm(period_us, 0);
        while (1) {
            ++turns;
        }
    }
    expect(blocks(SIGALRM) == 1);
    block(SIGALRM, SIG_UNBLOCK);
    handle(SIGALRM, note, SA_RESTART);
    calls = 0;
    set_alarm(period_us, 0);
    await_calls(1);
    together();
}

static int make_timer_for(pid_t thread, timer_t* timer) {
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGRTMIN + 3;
    event.sigev_value.sival_int = world_rank;
    event._sigev_un._tid = thread;
    return timer_create(CLOCK_MONOTONIC, &event, timer);
}

static volatile sig_atomic_t number_of_thread, may_end;

static void* stay_a_while(void* unused) {
    own_rank = world_rank;
    number_of_thread = gettid();
    while (!may_end) {
        usleep(period_us);
    }
    return unused;
}

static void start(timer_t timer) {
    const struct itimerspec times = {{0, period_us * 1000}, {0, period_us * 1000}};
    expect(timer_settime(timer, 0, &times, NULL) == 0);
}

/* A timer may name the calling thread, and others of its rank. */
static void timers_for_a_thread(void) {
    handle(SIGRTMIN + 3, note, SA_RESTART);
    pthread_t thread;
    timer_t timer;
    strange = calls = 0;
    together();
    expect(make_timer_for(gettid(), &timer) == 0);
    start(timer);
    for (int i = 1; i <= 20; ++i) {
        await_calls(i);
        expect(last_value == world_rank && pthread_equal(handled_in, first_thread));
    }
    expect(timer_delete(timer) == 0);
    number_of_thread = may_end = 0;
    expect(pthread_create(&thread, NULL, stay_a_while, NULL) == 0);
    for (int look = 0; look < looks && number_of_thread == 0; ++look) {
        usleep(between_looks_us);
    }
    together();
    calls = 0;
    expect(make_timer_for(number_of_thread, &timer) == 0);
    start(timer);
    await_calls(3);
    expect(last_value == world_rank && pthread_equal(handled_in, thread));
    expect(timer_delete(timer) == 0);
    int others = number_of_thread;
    MPI_Bcast(&others, 1, MPI_INT, 0, MPI_COMM_WORLD);
    expect(world_rank == 0 || (make_timer_for(others, &timer) == -1 && errno == EINVAL));
    expect(make_timer_for(getppid(), &timer) == -1 && errno == EINVAL);
    together();
    may_end = 1;
    expect(pthread_join(thread, NULL) == 0 && strange == 0);
}

/* A handler writes to its rank's stream. */
static void print(int number) {
    fprintf(log_file, "%d %d %d\n", world_rank, own_rank, number);
    ++calls;
}

static void streams(void) {
    log_file = tmpfile();
    signal(SIGALRM, print);
    calls = 0;
    together();
    set_alarm(period_us, 0);
    while (calls == 0) {
        pause();
    }
    rewind(log_file);
    int rank = -1, its = -1, number = -1;
    expect(fscanf(log_file, "%d %d %d", &rank, &its, &number) == 3);
    expect(rank == world_rank && its == world_rank && number == SIGALRM);
    fclose(log_file);
    together();
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    own_rank = world_rank;
    first_thread = pthread_self();
    timers_of_one();
    timers_at_once();
    waits_for_timers();
    threads_that_wait(SIGALRM, 1);
    threads_that_wait(SIGRTMIN + 3, 0);
    threads_that_handle();
    signals_to_itself();
    signals_between_threads();
    signals_for_the_first();
    jumps();
    jump_while_computing();
    timers_for_a_thread();
    streams();
    if (finish() != 0) {
        return 1;
    }
    pthread_exit(NULL); /* which waits for the program's threads: no other is the rank's */
}
