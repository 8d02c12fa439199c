/* No signal of a rank gets lost or comes twice: its only taker may be busy or about to end, it may
   wait in a long queue, or be a timer's that comes faster than it is taken. Signals of other ranks
   end no wait. */
#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "handled.h"

enum {
    sent = 30,
    long_queue = 300,
    low_limit = 100,
    many_timers = 66000,
    wait_ms = 40,
    frame_bytes = 65536
};

static volatile int last_value, first_overruns, shown_overruns;
static volatile int may_end;
static sigjmp_buf place;
static timer_t timer;

static void note(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)context;
    last_value = information->si_value.sival_int;
    __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST);
}

static void note_overruns(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)context;
    if (calls++ == 0) {
        first_overruns = timer_getoverrun(timer);
        shown_overruns = information->si_overrun;
    }
}

static void jump(int number) {
    siglongjmp(place, number);
}

static void queue_one(int number, int value) {
    const union sigval its = {value};
    expect(sigqueue(getpid(), number, its) == 0);
}

static void await_exactly(int wanted) {
    await_calls(wanted);
    expect(calls == wanted);
}

static void* fork_and_take(void* number) {
    block((int)(long)number, SIG_UNBLOCK);
    while (!may_end) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        expect(waitpid(child, NULL, 0) == child);
    }
    await_exactly(sent);
    return number;
}

/* The only thread that takes it blocks all signals again and again, for a moment. */
static void takers_that_fork(void) {
    const int number = SIGRTMIN + 1;
    handle(number, note, SA_RESTART);
    block(number, SIG_BLOCK);
    calls = may_end = 0;
    together();
    pthread_t thread;
    expect(pthread_create(&thread, NULL, fork_and_take, (void*)(long)number) == 0);
    usleep(2000);
    for (int i = 0; i < sent; ++i) {
        queue_one(number, i);
        usleep(500);
    }
    may_end = 1;
    expect(pthread_join(thread, NULL) == 0 && calls == sent);
    block(number, SIG_UNBLOCK);
    expect(calls == sent);
    together();
}

static void* take_and_end(void* number) {
    block((int)(long)number, SIG_UNBLOCK);
    return number;
}

/* It ends meanwhile. */
static void takers_that_end(void) {
    const int number = SIGRTMIN + 1;
    block(number, SIG_BLOCK);
    calls = 0;
    together();
    for (int i = 0; i < sent; ++i) {
        pthread_t thread;
        expect(pthread_create(&thread, NULL, take_and_end, (void*)(long)number) == 0);
        queue_one(number, i);
        expect(pthread_join(thread, NULL) == 0);
    }
    block(number, SIG_UNBLOCK);
    await_exactly(sent);
    together();
}

static void set_alarm(long us) {
    const struct itimerval times = {{0, 0}, {0, us}};
    expect(setitimer(ITIMER_REAL, &times, NULL) == 0);
}

static void overwrite_stack(void) {
    volatile signed char frame[frame_bytes];
    for (int i = 0; i < frame_bytes; ++i) {
        frame[i] = -1;
    }
    expect(frame[0] == -1);
}

static void wait_by(int how, const sigset_t* open) {
    const sigset_t other = only(SIGUSR2);
    const struct timespec limit = {20, 0};
    siginfo_t information;
    switch (how) {
    case 0:
        sigsuspend(open);
        break;
    case 1:
        ppoll(NULL, 0, &limit, open);
        break;
    case 2:
        pselect(0, NULL, NULL, NULL, &limit, open);
        break;
    default:
        sigtimedwait(&other, &information, &limit);
    }
    expect(0);
}

/* A handler leaves the wait by a jump; later signals find nobody in it. */
static void* jump_out_of_waits(void* unused) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = jump;
    for (int how = 0; how < 4; ++how) {
        expect(sigaction(SIGALRM, &action, NULL) == 0);
        sigset_t open;
        expect(pthread_sigmask(SIG_BLOCK, NULL, &open) == 0);
        block(SIGUSR2, SIG_BLOCK);
        if (how != 3) {
            sigdelset(&open, SIGUSR2);
            block(SIGALRM, SIG_BLOCK);
        }
        sigdelset(&open, SIGALRM);
        if (sigsetjmp(place, 1) == 0) {
            set_alarm(3000);
            wait_by(how, &open);
        }
        overwrite_stack();
        calls = 0;
        handle(SIGALRM, note, SA_RESTART);
        block(SIGALRM, SIG_UNBLOCK);
        set_alarm(1000);
        await_exactly(1);
        expect(kill(getpid(), SIGUSR2) == 0);
        block(SIGUSR2, SIG_UNBLOCK);
        await_exactly(2);
    }
    return unused;
}

static void jumps(void) {
    handle(SIGUSR2, note, SA_RESTART);
    together();
    jump_out_of_waits(NULL);
    together();
    block(SIGALRM, SIG_BLOCK); /* for a thread of the rank's */
    block(SIGUSR2, SIG_BLOCK);
    pthread_t thread;
    expect(pthread_create(&thread, NULL, jump_out_of_waits, NULL) == 0);
    expect(pthread_join(thread, NULL) == 0);
    block(SIGALRM, SIG_UNBLOCK);
    block(SIGUSR2, SIG_UNBLOCK);
    together();
}

static void start_timer(int number, int value) {
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = number;
    event.sigev_value.sival_int = value;
    const struct itimerspec times = {{0, 1000000}, {0, 1000000}};
    expect(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    expect(timer_settime(timer, 0, &times, NULL) == 0);
}

static void let_it_run(void) {
    const struct timespec time = {0, 50000000};
    struct timespec left = time;
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) != 0) {
    }
}

/* One signal of a timer is pending; what comes meanwhile is counted. */
static void overruns(int number) {
    const struct itimerspec none = {{0, 0}, {0, 0}};
    const struct timespec at_once = {0, 0};
    const sigset_t set = only(number);
    siginfo_t information;
    together();
    block(number, SIG_BLOCK);
    start_timer(number, 17);
    let_it_run();
    expect(sigtimedwait(&set, &information, &at_once) == number);
    expect(information.si_code == SI_TIMER && information.si_value.sival_int == 17);
    expect(information.si_overrun >= 20 && timer_getoverrun(timer) == information.si_overrun);
    let_it_run();
    expect(timer_settime(timer, 0, &none, NULL) == 0);
    int more = 0;
    while (sigtimedwait(&set, &information, &at_once) == number) {
        ++more;
    }
    expect(more <= 2);
    expect(timer_delete(timer) == 0);
    handle(number, note_overruns, SA_RESTART);
    calls = 0;
    start_timer(number, 18);
    let_it_run();
    block(number, SIG_UNBLOCK);
    for (int look = 0; look < looks && calls == 0; ++look) {
        usleep(500);
    }
    expect(first_overruns >= 20 && first_overruns == shown_overruns);
    expect(timer_delete(timer) == 0);
    signal(number, SIG_IGN);
    together();
}

/* Their numbers are looked at, and what is kept of them goes with them. */
static void made_timers(void) {
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    const int wrong[] = {0, -1, 65, 1000};
    for (int i = 0; i < 4; ++i) {
        event.sigev_signo = wrong[i];
        errno = 0;
        expect(timer_create(CLOCK_MONOTONIC, &event, &timer) == -1 && errno == EINVAL);
    }
    event.sigev_signo = SIGRTMIN + 4;
    int made = 0;
    for (; made < many_timers; ++made) {
        event.sigev_value.sival_int = made;
        if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_delete(timer) != 0) {
            break;
        }
    }
    expect(made == many_timers);
    together();
}

/* The greatest number is the program's as well as others. */
static void signals_from_outside(void) {
    handle(SIGRTMAX, note, SA_RESTART);
    calls = 0;
    together();
    if (world_rank == 0) {
        const pid_t parent = getpid();
        const pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < sent; ++i) {
                kill(parent, SIGRTMAX);
            }
            _exit(0);
        }
        expect(waitpid(child, NULL, 0) == child);
    }
    int all = 0;
    for (int look = 0; look < looks && all < sent; ++look) {
        const int own = calls;
        MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        usleep(500);
    }
    expect(all >= sent);
    together();
}

/* As many as the limit of pending signals allows. */
static void long_queues(void) {
    const int number = SIGRTMIN + 2;
    handle(number, note, SA_RESTART);
    block(number, SIG_BLOCK);
    calls = 0;
    together();
    for (int i = 0; i < long_queue; ++i) {
        queue_one(number, i);
    }
    block(number, SIG_UNBLOCK);
    await_exactly(long_queue);
    expect(last_value == long_queue - 1);
    together();
    struct rlimit limit;
    expect(getrlimit(RLIMIT_SIGPENDING, &limit) == 0);
    const struct rlimit low = {low_limit, limit.rlim_max};
    expect(setrlimit(RLIMIT_SIGPENDING, &low) == 0);
    block(number, SIG_BLOCK);
    calls = 0;
    together();
    int accepted = 0;
    const union sigval value = {0};
    errno = 0;
    while (accepted <= low_limit && sigqueue(getpid(), number, value) == 0) {
        ++accepted;
    }
    expect(errno == EAGAIN);
    together();
    for (int rank = 0; rank < world_size; ++rank) {
        if (rank == world_rank) {
            block(number, SIG_UNBLOCK);
            await_exactly(accepted);
        }
        together();
    }
    expect(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
    together();
}

/* To the calling thread. */
static void signals_to_oneself(void) {
    const int number = SIGRTMIN + 2;
    const union sigval first = {71}, second = {72};
    calls = 0;
    expect(pthread_sigqueue(pthread_self(), number, first) == 0 && calls == 1 && last_value == 71);
    block(number, SIG_BLOCK);
    expect(pthread_sigqueue(pthread_self(), number, second) == 0 && calls == 1);
    block(number, SIG_UNBLOCK);
    expect(calls == 2 && last_value == 72);
    expect(pthread_sigqueue(pthread_self(), 0, first) == 0);
    together();
}

static void* send_later(void* queue) {
    const struct {
        long type;
        char text[4];
    } message = {1, "abc"};
    usleep(1000 * wait_ms);
    expect(msgsnd(*(int*)queue, &message, sizeof message.text, 0) == 0);
    return queue;
}

static void wait_for_time(void) {
    const struct timespec time = {0, 1000000 * wait_ms};
    struct timeval limit = {0, 1000 * wait_ms};
    struct timespec end;
    sem_t semaphore;
    expect(sem_init(&semaphore, 0, 0) == 0);
    expect(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL) == 0);
    int pipe_ends[2];
    expect(pipe(pipe_ends) == 0);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipe_ends[0], &set);
    expect(select(pipe_ends[0] + 1, &set, NULL, NULL, &limit) == 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 1000000 * wait_ms;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    errno = 0;
    expect(sem_timedwait(&semaphore, &end) == -1 && errno == ETIMEDOUT);
    const int semaphores = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf operation = {0, -1, 0};
    errno = 0;
    expect(semtimedop(semaphores, &operation, 1, &time) == -1 && errno == EAGAIN);
    semctl(semaphores, 0, IPC_RMID);
    int queue = msgget(IPC_PRIVATE, 0600);
    pthread_t thread;
    expect(pthread_create(&thread, NULL, send_later, &queue) == 0);
    struct {
        long type;
        char text[4];
    } message;
    expect(msgrcv(queue, &message, sizeof message.text, 0, 0) == (ssize_t)sizeof message.text);
    expect(pthread_join(thread, NULL) == 0);
    msgctl(queue, IPC_RMID, NULL);
}

/* One rank's children end, whose signals it has blocked, so that they come to others' threads. */
static void waits_beside_children(void) {
    handle(SIGCHLD, note, SA_RESTART);
    int done = 0;
    together();
    if (world_rank == 0) {
        block(SIGCHLD, SIG_BLOCK);
        MPI_Request request;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        while (!done) {
            const pid_t child = fork();
            if (child == 0) {
                _exit(0);
            }
            usleep(1000);
            expect(waitpid(child, NULL, 0) == child);
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        block(SIGCHLD, SIG_UNBLOCK);
    } else {
        calls = 0;
        wait_for_time();
        expect(calls == 0);
        MPI_Request request;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    signal(SIGCHLD, SIG_DFL);
    together();
}

static void alarm_every_ms(long ms) {
    const struct itimerval times = {{0, 1000 * ms}, {0, 1000 * ms}};
    expect(setitimer(ITIMER_REAL, &times, NULL) == 0);
}

/* Waits whose limits the system keeps end after any handler. (One that another rank's signal is on
   its way to may move elsewhere at the last moment.) */
static void sockets_beside_timers(void) {
    enum { rounds = 12 };
    const struct timeval limit = {0, 1000 * wait_ms};
    int ends[2], interrupted = 0, done = 0;
    char text;
    handle(SIGALRM, note, 0);
    calls = 0;
    together();
    MPI_Request request;
    if (world_rank == 0) {
        alarm_every_ms(1);
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        while (!done) {
            usleep(1000);
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        alarm_every_ms(0);
    } else {
        expect(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        expect(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
        for (int round = 0; round < rounds; ++round) {
            errno = 0;
            expect(recv(ends[0], &text, 1, 0) == -1 && (errno == EAGAIN || errno == EINTR));
            interrupted += errno == EINTR;
        }
        expect(interrupted <= rounds / 4 && calls == 0);
        close(ends[0]);
        close(ends[1]);
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    set_default(SIGALRM, 0);
    together();
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    takers_that_fork();
    takers_that_end();
    jumps();
    overruns(SIGRTMIN + 3);
    overruns(SIGUSR1);
    made_timers();
    signals_from_outside();
    long_queues();
    signals_to_oneself();
    waits_beside_children();
    sockets_beside_timers();
    return finish();
}
