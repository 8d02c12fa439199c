/* A rank has its own handlers, and gets what it sends itself; ranks that are threads have timers of
   their own, too. The argument is the kind of ranks. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "expect.h"

static volatile sig_atomic_t calls, value;

static void count(int number) {
    calls += number == SIGUSR1 ? 1 : 100;
}

static void note(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)context;
    value = information->si_value.sival_int;
    ++calls;
}

static void wait_for(int wanted) {
    for (int i = 0; i < 5000 && calls < wanted; ++i) {
        usleep(1000);
    }
}

static void handle(int number, void (*with_information)(int, siginfo_t*, void*)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = with_information;
    action.sa_flags = SA_SIGINFO;
    expect(sigaction(number, &action, NULL) == 0);
}

/* Ranks 0, 2, … have a handler, the others ignore the signal. */
static void own_handlers(void) {
    const int handles = world_rank % 2 == 0;
    expect(signal(SIGUSR1, handles ? count : SIG_IGN) == SIG_DFL);
    together();
    for (int i = 0; i <= world_rank; ++i) {
        raise(SIGUSR1);
        kill(getpid(), SIGUSR1);
    }
    expect(calls == (handles ? 2 * (world_rank + 1) : 0));
    struct sigaction now;
    expect(sigaction(SIGUSR1, NULL, &now) == 0);
    expect(now.sa_handler == (handles ? count : SIG_IGN) && (now.sa_flags & SA_RESTART) != 0);
    expect(siginterrupt(SIGUSR1, 1) == 0 && sigaction(SIGUSR1, NULL, &now) == 0);
    expect((now.sa_flags & SA_RESTART) == 0);
    const sighandler_t former = now.sa_handler; /* handlers to come end calls, too */
    expect(signal(SIGUSR1, former) == former && sigaction(SIGUSR1, NULL, &now) == 0);
    expect((now.sa_flags & SA_RESTART) == 0);
    expect(siginterrupt(SIGUSR1, 0) == 0 && signal(SIGUSR1, former) == former);
    expect(sigaction(SIGUSR1, NULL, &now) == 0 && (now.sa_flags & SA_RESTART) != 0);
    together();
}

static void values_of_signals(void) {
    calls = 0;
    handle(SIGRTMIN + 1, note);
    together();
    union sigval sent;
    sent.sival_int = 70 + world_rank;
    expect(sigqueue(getpid(), SIGRTMIN + 1, sent) == 0);
    expect(calls == 1 && value == 70 + world_rank);
    together();
}

static void handlers_for_once(void) {
    calls = 0;
    sysv_signal(SIGUSR2, count);
    together();
    raise(SIGUSR2);
    expect(calls == 100);
    expect(signal(SIGUSR2, SIG_IGN) == SIG_DFL);
    together();
    raise(SIGUSR2);
    expect(calls == 100);
    together();
}

static void leave(int number) {
    (void)number;
    _exit(9);
}

/* A child of a rank without a handler dies of what another rank handles. */
static void defaults_in_children(void) {
    if (world_rank == 1) {
        signal(SIGTERM, leave);
    }
    together();
    const pid_t child = fork();
    if (child == 0) {
        raise(SIGTERM);
        _exit(1);
    }
    int status = 0;
    expect(waitpid(child, &status, 0) == child);
    expect(world_rank == 1 ? WIFEXITED(status) && WEXITSTATUS(status) == 9
                           : WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    together();
}

static sigjmp_buf place;

static void jump(int number) {
    siglongjmp(place, number);
}

/* abort() leaves a handler where it is that doesn't return. */
static void handlers_that_jump(void) {
    signal(SIGABRT, jump);
    together();
    for (int i = 0; i < 3; ++i) {
        const int number = sigsetjmp(place, 1);
        if (number == 0) {
            if (i == 1) {
                raise(SIGABRT);
            }
            abort();
        }
        expect(number == SIGABRT);
    }
    expect(signal(SIGABRT, SIG_DFL) == jump);
    together();
}

static int ends[2];
static pthread_t reader;

static void* interrupt(void* unused) {
    while (calls == 0) { /* until the reader is in its call */
        usleep(20000);
        pthread_kill(reader, SIGUSR1);
    }
    usleep(20000);
    const ssize_t written = write(ends[1], "x", 1);
    return written == 1 ? unused : NULL;
}

/* Ranks 0, 2, … want calls to go on that a handler interrupts, the others want to know. */
static void interrupted_calls(void) {
    calls = 0;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = count;
    action.sa_flags = world_rank % 2 == 0 ? SA_RESTART : 0;
    for (int rank = 0; rank < world_size; ++rank) {
        if (rank == world_rank) {
            expect(sigaction(SIGUSR1, &action, NULL) == 0);
        }
        together();
    }
    expect(pipe(ends) == 0);
    reader = pthread_self();
    pthread_t thread;
    expect(pthread_create(&thread, NULL, interrupt, &thread) == 0);
    char text;
    errno = 0;
    const ssize_t bytes = read(ends[0], &text, 1);
    expect(world_rank % 2 == 0 ? bytes == 1 : bytes == -1 && errno == EINTR);
    void* result = NULL;
    expect(pthread_join(thread, &result) == 0 && result == &thread && calls >= 1);
    close(ends[0]);
    close(ends[1]);
    together();
}

static sigset_t only(int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    return set;
}

static void blocked_signals(void) {
    calls = 0;
    signal(SIGUSR1, count);
    const sigset_t set = only(SIGUSR1);
    sigset_t now, former;
    if (world_rank % 2 == 0) {
        expect(sigprocmask(SIG_BLOCK, &set, &former) == 0 && !sigismember(&former, SIGUSR1));
    }
    together();
    raise(SIGUSR1);
    raise(SIGUSR1);
    expect(calls == (world_rank % 2 == 0 ? 0 : 2));
    expect(sigpending(&now) == 0 && sigismember(&now, SIGUSR1) == (world_rank % 2 == 0));
    expect(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0);
    expect(sigismember(&now, SIGUSR1) == (world_rank % 2 == 0));
    const pid_t child = fork(); /* it blocks the same, and has nothing pending */
    if (child == 0) {
        calls = 0;
        raise(SIGUSR1);
        _exit(calls == (world_rank % 2 == 0 ? 0 : 1) ? 5 : 6);
    }
    int status = 0;
    expect(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
    expect(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
    expect(calls == (world_rank % 2 == 0 ? 1 : 2));
    together();
}

static void waits_for_signals(void) {
    const sigset_t set = only(SIGUSR2);
    const sigset_t queued = only(SIGRTMIN + 2);
    sigset_t former;
    int number = 0;
    siginfo_t information;
    expect(sigprocmask(SIG_BLOCK, &set, &former) == 0);
    expect(sigprocmask(SIG_BLOCK, &queued, NULL) == 0);
    together();
    raise(SIGUSR2);
    together();
    expect(sigwait(&set, &number) == 0 && number == SIGUSR2);
    const struct timespec short_time = {0, 20000000};
    errno = 0;
    expect(sigtimedwait(&set, &information, &short_time) == -1 && errno == EAGAIN);
    union sigval sent;
    for (int i = 0; i < 3; ++i) {
        sent.sival_int = 10 * world_rank + i;
        expect(sigqueue(getpid(), SIGRTMIN + 2, sent) == 0);
    }
    together();
    for (int i = 0; i < 3; ++i) {
        memset(&information, 0, sizeof information);
        expect(sigwaitinfo(&queued, &information) == SIGRTMIN + 2);
        expect(information.si_value.sival_int == 10 * world_rank + i);
    }
    expect(sigprocmask(SIG_SETMASK, &former, NULL) == 0);
    together();
}

/* Every rank waits for its own child's end, and for its own timer. (Threads hear of the ends of all
   ranks' children.) */
static void waits_for_handlers(int has_own) {
    calls = 0;
    value = 0;
    const sigset_t set = only(SIGCHLD);
    sigset_t former;
    expect(sigprocmask(SIG_BLOCK, &set, &former) == 0);
    signal(SIGCHLD, count);
    together();
    const pid_t child = fork();
    if (child == 0) {
        usleep(world_rank * 1000);
        _exit(0);
    }
    while (calls == 0) {
        errno = 0;
        expect(sigsuspend(&former) == -1 && errno == EINTR);
    }
    expect(waitpid(child, NULL, 0) == child);
    expect(sigprocmask(SIG_SETMASK, &former, NULL) == 0);
    expect(has_own ? calls == 100 : calls >= 100);
    const pid_t other = fork();
    if (other == 0) {
        _exit(0);
    }
    expect(waitpid(other, NULL, 0) == other);
    expect(has_own ? calls == 200 : calls >= 200); /* the handler comes before the answer */
    if (has_own && calls != 200) {
        dprintf(2, "%d calls\n", (int)calls);
    }
    signal(SIGCHLD, SIG_DFL);
    together();
    calls = 0;
    handle(SIGALRM, note);
    struct itimerval times;
    memset(&times, 0, sizeof times);
    times.it_value.tv_usec = times.it_interval.tv_usec = 20000 + 1000 * world_rank;
    expect(setitimer(ITIMER_REAL, &times, NULL) == 0);
    errno = 0;
    expect(pause() == -1 && errno == EINTR && calls >= 1);
    memset(&times, 0, sizeof times);
    expect(setitimer(ITIMER_REAL, &times, NULL) == 0);
    together();
}

static void own_timers(void) {
    calls = 0;
    handle(SIGALRM, note);
    together();
    struct itimerval times;
    memset(&times, 0, sizeof times);
    times.it_value.tv_usec = 10000;
    times.it_interval.tv_usec = 10000 + 1000 * world_rank;
    expect(setitimer(ITIMER_REAL, &times, NULL) == 0);
    wait_for(2);
    expect(calls >= 2);
    struct itimerval left;
    expect(getitimer(ITIMER_REAL, &left) == 0);
    expect(left.it_interval.tv_usec == times.it_interval.tv_usec);
    memset(&times, 0, sizeof times);
    expect(setitimer(ITIMER_REAL, &times, NULL) == 0);
    together();
    calls = 0;
    expect(alarm(world_rank == 0 ? 0 : 100) == 0);
    together();
    const unsigned seconds = alarm(0);
    expect(world_rank == 0 ? seconds == 0 : seconds > 50 && seconds <= 100);
    expect(calls == 0);
}

static void timers_that_are_made(void) {
    calls = 0;
    handle(SIGRTMIN + 1, note);
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGRTMIN + 1;
    event.sigev_value.sival_int = 90 + world_rank;
    timer_t timer;
    expect(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    together();
    const struct itimerspec once = {{0, 0}, {0, 10000000}};
    expect(timer_settime(timer, 0, &once, NULL) == 0);
    wait_for(1);
    expect(calls == 1 && value == 90 + world_rank);
    timer_delete(timer);
    together();
}

/* Some of these a rank may raise itself; then they end the job. */
static void crash_signals_of_children(void) {
    const int also[] = {SIGPIPE, SIGABRT, SIGTERM, SIGSEGV};
    for (int i = 0; i < 4; ++i) {
        calls = 0;
        signal(also[i], count);
        const pid_t one = fork();
        if (one == 0) {
            _exit(kill(getppid(), also[i]));
        }
        wait_for(100);
        expect(calls == 100);
        expect(waitpid(one, NULL, 0) == one && signal(also[i], SIG_DFL) == count);
        together();
    }
}

/* Children mean their parent, which is a rank. */
static void signals_of_children(void) {
    calls = 0;
    signal(SIGUSR1, count);
    together();
    for (int i = 1; i <= 20; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(kill(getppid(), SIGUSR1));
        }
        int status = 1;
        expect(waitpid(child, &status, 0) == child && status == 0);
        expect(calls == i);
    }
    together();
    /* The kernel keeps one signal of those that other programs send at once, so they take turns. */
    for (int rank = 0; rank < world_size; ++rank) {
        if (rank == world_rank) {
            const pid_t child = fork();
            if (child == 0) {
                execl("/bin/sh", "sh", "-c", "kill -USR1 $PPID", NULL);
                _exit(1);
            }
            wait_for(21);
            expect(waitpid(child, NULL, 0) == child);
        }
        together();
    }
    expect(calls == 21);
    calls = 0;
    value = 0;
    handle(SIGRTMIN + 3, note);
    together();
    const pid_t child = fork();
    if (child == 0) {
        union sigval sent;
        sent.sival_int = 50 + world_rank;
        _exit(sigqueue(getppid(), SIGRTMIN + 3, sent));
    }
    wait_for(1);
    expect(calls == 1 && value == 50 + world_rank);
    expect(waitpid(child, NULL, 0) == child);
    together();
    const sigset_t set = only(SIGUSR2);
    sigset_t former;
    siginfo_t information;
    expect(sigprocmask(SIG_BLOCK, &set, &former) == 0);
    together();
    const pid_t other = fork();
    if (other == 0) {
        _exit(kill(getppid(), SIGUSR2));
    }
    expect(sigwaitinfo(&set, &information) == SIGUSR2 && information.si_pid == other);
    expect(information.si_code == SI_USER && information.si_uid == getuid());
    expect(waitpid(other, NULL, 0) == other);
    together();
    expect(sigprocmask(SIG_SETMASK, &former, NULL) == 0);
    together();
}

/* What comes from another process, which is no child, comes to all. */
static void signals_from_outside(void) {
    calls = 0;
    signal(SIGUSR1, count);
    together();
    if (world_rank == 0 || value == -1) {
        char command[80];
        snprintf(command, sizeof command, "(kill -USR1 %d; true)", (int)getpid());
        expect(system(command) == 0);
    }
    wait_for(1);
    expect(calls == 1);
    together();
}

static volatile sig_atomic_t ready;

static void note_descriptor(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)context;
    ready = information->si_fd;
    ++calls;
}

/* A rank that owns a descriptor hears when that is ready, and no other rank does. */
static void signals_of_descriptors(int by_device_calls) {
    int pair[2];
    expect(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    int owner = getpid(), on = 1;
    if (by_device_calls) {
        expect(ioctl(pair[0], FIOSETOWN, &owner) == 0 && ioctl(pair[0], FIOASYNC, &on) == 0);
        owner = 0;
        expect(ioctl(pair[0], FIOGETOWN, &owner) == 0 && owner == getpid());
    } else {
        expect(fcntl(pair[0], F_SETOWN, getpid()) == 0 && fcntl(pair[0], F_GETOWN) == getpid());
        expect(fcntl(pair[0], F_SETFL, O_ASYNC | O_NONBLOCK) == 0);
    }
    expect(fcntl(pair[0], F_GETSIG) == 0);
    signal(SIGIO, count);
    handle(SIGRTMIN + 4, note_descriptor);
    for (int rank = 0; rank < world_size; ++rank) {
        for (int named = 0; named < 2; ++named) {
            const int number = named ? SIGRTMIN + 4 : 0;
            expect(fcntl(pair[0], F_SETSIG, number) == 0 && fcntl(pair[0], F_GETSIG) == number);
            calls = 0;
            ready = -1;
            together();
            char byte = 0;
            if (rank == world_rank) {
                expect(write(pair[1], &byte, 1) == 1);
                wait_for(1);
            }
            together();
            expect(calls == (rank == world_rank ? (named ? 1 : 100) : 0));
            expect(ready == (rank == world_rank && named ? pair[0] : -1));
            expect(rank != world_rank || read(pair[0], &byte, 1) == 1);
            together();
        }
    }
    /* Its child sees it as the owner, and may become that, by another descriptor, too. */
    expect(fcntl(pair[0], F_SETSIG, 0) == 0);
    calls = 0;
    const pid_t child = fork();
    if (child == 0) {
        const int other = dup(pair[0]);
        const int known = fcntl(other, F_GETOWN) == getppid() && fcntl(other, F_GETSIG) == 0;
        const int set = fcntl(other, F_SETOWN, getpid()) == 0 && fcntl(other, F_GETOWN) == getpid();
        char byte = 0;
        expect(write(pair[1], &byte, 1) == 1);
        wait_for(1);
        _exit(known && set && calls == 100 ? 5 : 6);
    }
    int status = 0;
    expect(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    together();
    expect(calls == 0);
    expect(fcntl(pair[0], F_SETSIG, SIGRTMIN + 4) == 0);
    expect(fcntl(pair[0], F_SETOWN, 0) == 0 && fcntl(pair[0], F_GETOWN) == 0);
    expect(fcntl(pair[0], F_GETSIG) == SIGRTMIN + 4);
    close(pair[0]);
    close(pair[1]);
    together();
}

/* A rank that signals itself by the kernel's calls means itself, as by kill. */
static void signals_by_other_calls(void) {
    handle(SIGRTMIN + 5, note);
    for (int rank = 0; rank < world_size; ++rank) {
        calls = 0;
        together();
        if (rank == world_rank) {
            const int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
            siginfo_t information;
            memset(&information, 0, sizeof information);
            information.si_signo = SIGRTMIN + 5;
            information.si_code = SI_QUEUE;
            expect(process >= 0);
            expect(syscall(SYS_kill, getpid(), SIGRTMIN + 5) == 0);
            expect(syscall(SYS_rt_sigqueueinfo, getpid(), SIGRTMIN + 5, &information) == 0);
            expect(syscall(SYS_pidfd_send_signal, process, SIGRTMIN + 5, NULL, 0) == 0);
            expect(syscall(SYS_pidfd_send_signal, process, SIGRTMIN + 5, &information, 0) == 0);
            expect(syscall(SYS_pidfd_send_signal, process, 0, NULL, 0) == 0);
            errno = 0;
            expect(syscall(SYS_pidfd_send_signal, process, SIGUSR1, &information, 0) == -1);
            expect(errno == EINVAL);
            close(process);
            expect(syscall(SYS_pidfd_send_signal, process, SIGUSR1, NULL, 0) == -1);
            expect(errno == EBADF);
            expect(calls == 4);
        }
        together();
        expect(calls == (rank == world_rank ? 4 : 0));
        together();
    }
}

/* sigset changes the calling rank's action and mask. */
static void handlers_with_masks(void) {
    signal(SIGUSR2, SIG_DFL);
    expect(sigset(SIGUSR2, world_rank % 2 ? count : SIG_IGN) == SIG_DFL);
    together();
    expect(sigset(SIGUSR2, SIG_HOLD) == (world_rank % 2 ? count : SIG_IGN));
    calls = 0;
    raise(SIGUSR2);
    expect(calls == 0);
    together();
    expect(sigset(SIGUSR2, count) == SIG_HOLD);
    together();
    expect(calls == 100); /* it was pending, as it was blocked */
    expect(sigset(SIGUSR2, SIG_DFL) == count);
    together();
}

/* A rank has its own stack for handlers, as far as it is told. */
static void stacks_of_signals(void) {
    stack_t own = {0}, now = {0};
    own.ss_size = 65536 + 4096 * (size_t)world_rank;
    own.ss_sp = malloc(own.ss_size);
    expect(sigaltstack(&own, NULL) == 0);
    together();
    expect(sigaltstack(NULL, &now) == 0);
    expect(now.ss_sp == own.ss_sp && now.ss_size == own.ss_size && now.ss_flags == 0);
    own.ss_flags = SS_DISABLE;
    expect(sigaltstack(&own, NULL) == 0 && sigaltstack(NULL, &now) == 0);
    expect(now.ss_flags == SS_DISABLE);
    together();
    free(own.ss_sp);
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    own_handlers();
    values_of_signals();
    handlers_for_once();
    handlers_with_masks();
    stacks_of_signals();
    defaults_in_children();
    handlers_that_jump();
    blocked_signals();
    waits_for_signals();
    waits_for_handlers(strcmp(argv[1], "threads") != 0);
    own_timers();
    signals_of_children();
    crash_signals_of_children();
    signals_of_descriptors(0);
    signals_of_descriptors(1);
    signals_by_other_calls();
    if (strcmp(argv[1], "fibres") != 0) {
        interrupted_calls();
        timers_that_are_made();
        value = strcmp(argv[1], "processes") == 0 ? -1 : 0;
        signals_from_outside();
    }
    return finish();
}
