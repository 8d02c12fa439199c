/* Handlers of a rank end its waits, and only its own: sleeps, waits for descriptors, with masks or
   without, reads and waits for children. The argument is the kind of ranks. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "expect.h"

enum { period_us = 20000, left_status = 7, commands = 5 };

static const struct timespec long_time = {20, 0};
static volatile sig_atomic_t calls;
static sigjmp_buf place;

static void count(int number) {
    (void)number;
    ++calls;
}

static void jump(int number) {
    siglongjmp(place, number);
}

static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    expect(sigaction(number, &action, NULL) == 0);
}

/* Again and again: one signal may come before the wait. 0: no more. */
static void start_timer(long us) {
    const struct itimerval times = {{0, us}, {0, us}};
    expect(setitimer(ITIMER_REAL, &times, NULL) == 0);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

#define expect_interrupted(call)                                                                   \
    do {                                                                                           \
        calls = 0;                                                                                 \
        errno = 0;                                                                                 \
        start_timer(period_us);                                                                    \
        const int interrupted = (call) == -1 && errno == EINTR;                                    \
        start_timer(0);                                                                            \
        expect(interrupted&& calls >= 1);                                                          \
    } while (0)

static void sleeps(void) {
    handle(SIGALRM, count, SA_RESTART);
    struct timespec left = {0, 0};
    expect_interrupted(nanosleep(&long_time, &left));
    expect(left.tv_sec >= 1 && left.tv_sec < long_time.tv_sec);
    expect_interrupted(usleep(20000000));
    expect_interrupted(
        (errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &long_time, &left)) == EINTR ? -1 : 0);
    start_timer(period_us);
    const unsigned seconds = sleep(20);
    start_timer(0);
    expect(seconds >= 1 && seconds < 20);
    /* Others' signals end no sleep. */
    together();
    if (world_rank == 0) {
        start_timer(1000);
    }
    const double begin = now();
    const struct timespec short_time = {0, 50000000};
    const int result = nanosleep(&short_time, &left);
    expect(world_rank == 0 ? result == -1 : result == 0 && now() - begin >= 0.05);
    start_timer(0);
    together();
}

static void descriptors(void) {
    int ends[2];
    expect(pipe(ends) == 0);
    struct pollfd one = {ends[0], POLLIN, 0};
    expect_interrupted(poll(&one, 1, 20000));
    expect_interrupted(poll(NULL, 0, 20000));
    fd_set set;
    struct timeval time = {20, 0};
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    expect_interrupted(select(ends[0] + 1, &set, NULL, NULL, &time));
    const int watcher = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {EPOLLIN, {0}};
    expect(epoll_ctl(watcher, EPOLL_CTL_ADD, ends[0], &event) == 0);
    expect_interrupted(epoll_wait(watcher, &event, 1, 20000));
    handle(SIGALRM, count, 0);
    char text;
    expect_interrupted((int)read(ends[0], &text, 1));
    /* Others' signals end no wait. */
    together();
    if (world_rank == 0) {
        start_timer(1000);
    } else {
        expect(poll(&one, 1, 50) == 0);
        expect(epoll_wait(watcher, &event, 1, 50) == 0);
    }
    together();
    start_timer(0);
    expect(write(ends[1], "x", 1) == 1);
    expect(poll(&one, 1, 20000) == 1 && (one.revents & POLLIN) != 0);
    expect(epoll_wait(watcher, &event, 1, 20000) == 1);
    close(watcher);
    close(ends[0]);
    close(ends[1]);
}

static void fill(int end) {
    static char text[4096];
    const int flags = fcntl(end, F_GETFL);
    expect(fcntl(end, F_SETFL, flags | O_NONBLOCK) == 0);
    while (write(end, text, sizeof text) > 0) {
    }
    expect(fcntl(end, F_SETFL, flags) == 0);
}

static void waits_for_pipes(void) {
    handle(SIGALRM, count, 0);
    char name[60], byte = 0;
    snprintf(name, sizeof name, "/tmp/a-warren-fifo.%d.%d", (int)getpid(), world_rank);
    expect(mkfifo(name, 0600) == 0);
    expect_interrupted(open(name, O_RDONLY));
    expect_interrupted(open(name, O_WRONLY));
    expect(unlink(name) == 0);
    int empty[2], full[2];
    struct iovec part = {&byte, 1};
    expect(pipe(empty) == 0 && pipe(full) == 0);
    expect_interrupted((int)splice(empty[0], NULL, full[1], NULL, 1, 0));
    expect_interrupted((int)tee(empty[0], full[1], 1, 0));
    expect_interrupted((int)readv(empty[0], &part, 1));
    expect_interrupted((int)preadv2(empty[0], &part, 1, -1, 0));
    fill(full[1]);
    expect_interrupted((int)writev(full[1], &part, 1));
    expect_interrupted((int)pwritev2(full[1], &part, 1, -1, 0));
    expect_interrupted((int)vmsplice(full[1], &part, 1, 0));
    const int file = open("/etc/passwd", O_RDONLY);
    expect_interrupted((int)sendfile(full[1], file, NULL, 1));
    close(file);
    for (int i = 0; i < 2; ++i) {
        close(empty[i]);
        close(full[i]);
    }
}

/* A pending signal ends a wait whose mask lets it through. */
#define expect_let_through(call)                                                                   \
    do {                                                                                           \
        calls = 0;                                                                                 \
        raise(SIGUSR1);                                                                            \
        expect(calls == 0);                                                                        \
        errno = 0;                                                                                 \
        expect((call) == -1 && errno == EINTR && calls == 1);                                      \
    } while (0)

static void masks(void) {
    signal(SIGUSR1, count);
    sigset_t set, former, current;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGALRM);
    expect(sigprocmask(SIG_BLOCK, &set, &former) == 0);
    int ends[2];
    expect(pipe(ends) == 0);
    struct pollfd one = {ends[0], POLLIN, 0};
    fd_set read_set;
    FD_ZERO(&read_set);
    FD_SET(ends[0], &read_set);
    const int watcher = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {EPOLLIN, {0}};
    expect(epoll_ctl(watcher, EPOLL_CTL_ADD, ends[0], &event) == 0);
    expect_let_through(ppoll(&one, 1, &long_time, &former));
    expect_let_through(ppoll(NULL, 0, NULL, &former));
    expect_let_through(pselect(ends[0] + 1, &read_set, NULL, NULL, &long_time, &former));
    expect_let_through(epoll_pwait(watcher, &event, 1, 20000, &former));
    expect(sigprocmask(SIG_BLOCK, NULL, &current) == 0 && sigismember(&current, SIGUSR1) == 1);
    /* It comes during the wait. */
    expect_interrupted(ppoll(&one, 1, &long_time, &former));
    expect_interrupted(epoll_pwait(watcher, &event, 1, -1, &former));
    /* One that stays blocked ends no wait. */
    calls = 0;
    raise(SIGUSR1);
    const struct timespec short_time = {0, 20000000};
    expect(ppoll(&one, 1, &short_time, &set) == 0 && calls == 0);
    expect(sigprocmask(SIG_SETMASK, &former, NULL) == 0 && calls == 1);
    close(watcher);
    close(ends[0]);
    close(ends[1]);
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

static void jumps(void) {
    handle(SIGALRM, jump, 0);
    for (int i = 0; i < 3; ++i) {
        if (sigsetjmp(place, 1) == 0) {
            start_timer(period_us);
            sleep(20);
            expect(0);
        }
        start_timer(0);
    }
    /* Out of a wait for a child, whose end is told afterwards, too. */
    const pid_t child = make_child_that_waits();
    if (sigsetjmp(place, 1) == 0) {
        start_timer(period_us);
        waitpid(child, NULL, 0);
        expect(0);
    }
    start_timer(0);
    calls = 0;
    handle(SIGCHLD, count, SA_RESTART);
    kill(child, SIGKILL);
    for (int i = 0; i < 5000 && calls == 0; ++i) {
        usleep(1000);
    }
    expect(calls >= 1);
    int status = 0;
    expect(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    signal(SIGCHLD, SIG_DFL);
}

static void waits_for_children(void) {
    const pid_t child = make_child_that_waits();
    handle(SIGALRM, count, 0);
    expect_interrupted((int)waitpid(child, NULL, 0));
    handle(SIGALRM, count, SA_RESTART);
    calls = 0;
    start_timer(period_us);
    const pid_t other = fork();
    if (other == 0) {
        usleep(3 * period_us);
        _exit(left_status);
    }
    int status = 0;
    expect(waitpid(other, &status, 0) == other && WEXITSTATUS(status) == left_status);
    start_timer(0);
    expect(calls >= 1);
    kill(child, SIGKILL);
    expect(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

static void reap(int number) {
    (void)number;
    const int error = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    ++calls;
    errno = error;
}

/* The handler comes after the command's end has been told. */
static void commands_and_handlers_that_reap(int has_own) {
    together();
    calls = 0;
    handle(SIGCHLD, reap, SA_RESTART);
    for (int i = 0; i < commands; ++i) {
        const int status = system("exit 7");
        expect(WIFEXITED(status) && WEXITSTATUS(status) == left_status);
        for (int look = 0; look < 5000 && !has_own && calls <= i; ++look) {
            usleep(1000); /* another rank's thread passes the signal on */
        }
        expect(has_own ? calls == i + 1 : calls > i);
    }
    signal(SIGCHLD, SIG_DFL);
    FILE* stream = popen("exit 7", "r");
    const int status = pclose(stream);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == left_status);
    together();
}

static void* wait_for_alarm(void* result) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    return sigwait(&set, result) == 0 ? result : NULL;
}

static void alarms_for_a_thread(void) {
    together();
    handle(SIGALRM, count, SA_RESTART);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    expect(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    calls = 0;
    int number = 0;
    pthread_t thread;
    expect(pthread_create(&thread, NULL, wait_for_alarm, &number) == 0);
    start_timer(2 * period_us);
    expect(pthread_join(thread, NULL) == 0 && number == SIGALRM);
    start_timer(0);
    expect(calls == 0);
    signal(SIGALRM, SIG_IGN); /* what is pending */
    expect(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    together();
}

static void sleep_for_a_while(int number) {
    (void)number;
    usleep(5 * period_us);
    ++calls;
}

/* Rank 0's handler sleeps while the others get signals. */
static void handlers_that_sleep(void) {
    signal(SIGUSR1, world_rank == 0 ? sleep_for_a_while : count);
    calls = 0;
    together();
    if (world_rank != 0) {
        usleep(2 * period_us);
    }
    raise(SIGUSR1);
    expect(calls == 1);
    usleep(5 * period_us);
    raise(SIGUSR1);
    expect(calls == 2);
    together();
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    sleeps();
    descriptors();
    waits_for_pipes();
    masks();
    jumps();
    waits_for_children();
    commands_and_handlers_that_reap(strcmp(argv[1], "threads") != 0);
    alarms_for_a_thread();
    handlers_that_sleep();
    return finish();
}
