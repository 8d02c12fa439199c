/* Handlers of signals, by each way that the C library has of setting them, in children too, and
   children that they wait for. As fibres (an argument says so) no handler is the kernel's. */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

typedef void (*Handler)(int);
Handler __sysv_signal(int, Handler);
Handler sysv_signal(int, Handler);

static volatile sig_atomic_t handled;
static int wrong;

static void expect(int is_right, int line) {
    if (!is_right) {
        fprintf(stderr, "signals.c:%d: errno %d\n", line, errno);
        wrong = 1;
    }
}
#define EXPECT(condition) expect(condition, __LINE__)

static void handler(int number) {
    (void)number;
    ++handled;
}

static int kernel_has(Handler function) {
    struct {
        Handler handler;
        unsigned long flags;
        void* restorer;
        uint64_t mask;
    } action;
    syscall(SYS_rt_sigaction, SIGUSR1, NULL, &action, sizeof action.mask);
    return action.handler == function;
}

static int by_sigaction(int number, Handler function) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = function;
    return sigaction(number, &action, NULL);
}

static void set_by_each(int are_fibres) {
    Handler (*const ways[])(int, Handler) = {signal, ssignal, sysv_signal, __sysv_signal, sigset};
    for (unsigned way = 0; way <= sizeof ways / sizeof *ways; ++way) {
        struct sigaction found;
        const int is_once = way == 2 || way == 3;
        if (way == sizeof ways / sizeof *ways) {
            EXPECT(by_sigaction(SIGUSR1, handler) == 0);
        } else {
            EXPECT(ways[way](SIGUSR1, handler) == SIG_DFL);
            EXPECT(ways[way](SIGKILL, handler) == SIG_ERR && errno == EINVAL);
            EXPECT(ways[way](100, handler) == SIG_ERR && errno == EINVAL);
            EXPECT(ways[way](SIGUSR1, SIG_ERR) == SIG_ERR && errno == EINVAL);
        }
        EXPECT(kernel_has(handler) == !are_fibres);
        EXPECT(sigaction(SIGUSR1, NULL, &found) == 0 && found.sa_handler == handler);
        EXPECT(!(found.sa_flags & SA_RESTART) == (way >= 2));
        EXPECT(!(found.sa_flags & SA_NODEFER) == !is_once);
        EXPECT(!(found.sa_flags & (int)SA_RESETHAND) == !is_once);
        EXPECT(sigismember(&found.sa_mask, SIGUSR1) == (way < 2));
        handled = 0;
        raise(SIGUSR1);
        EXPECT(handled == 1);
        EXPECT(signal(SIGUSR1, SIG_DFL) == (is_once ? SIG_DFL : handler));
        EXPECT(kernel_has(SIG_DFL));
    }
    EXPECT(sigignore(SIGUSR1) == 0);
    raise(SIGUSR1);
    EXPECT(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
    EXPECT(sigignore(100) == -1 && errno == EINVAL);
}

static void hold(void) {
    handled = 0;
    EXPECT(sigset(SIGUSR1, handler) == SIG_DFL);
    EXPECT(sigset(SIGUSR1, SIG_HOLD) == handler);
    EXPECT(sigset(SIGUSR1, SIG_HOLD) == SIG_HOLD);
    raise(SIGUSR1);
    EXPECT(handled == 0);
    EXPECT(sigset(SIGUSR1, handler) == SIG_HOLD);
    EXPECT(handled == 1);
    EXPECT(sigset(SIGUSR1, SIG_DFL) == handler);
}

static int restarts(int number) {
    struct sigaction found;
    sigaction(number, NULL, &found);
    return (found.sa_flags & SA_RESTART) != 0;
}

static void interrupt(void) {
    EXPECT(siginterrupt(SIGUSR2, 1) == 0);
    EXPECT(signal(SIGUSR2, handler) == SIG_DFL && !restarts(SIGUSR2));
    EXPECT(siginterrupt(SIGUSR2, 0) == 0 && restarts(SIGUSR2));
    EXPECT(signal(SIGUSR2, handler) == handler && restarts(SIGUSR2));
    EXPECT(siginterrupt(SIGUSR2, 1) == 0 && !restarts(SIGUSR2));
    EXPECT(siginterrupt(SIGUSR2, 0) == 0);
    signal(SIGUSR2, SIG_DFL);
    EXPECT(siginterrupt(100, 1) == -1 && errno == EINVAL);
}

static sigjmp_buf place;

static void jump(int number) {
    siglongjmp(place, number);
}

/* What is no action is the caller's fault, and only its. */
static void survive(int number) {
    struct sigaction* volatile bad = (struct sigaction*)8;
    EXPECT(by_sigaction(SIGSEGV, jump) == 0);
    if (sigsetjmp(place, 1) == 0) {
        EXPECT(sigaction(number, bad, NULL) == -1);
    }
    if (sigsetjmp(place, 1) == 0) {
        EXPECT(sigaction(number, NULL, bad) == -1);
    }
    EXPECT(by_sigaction(SIGSEGV, SIG_DFL) == 0);
    handled = 0;
    EXPECT(by_sigaction(number, handler) == 0);
    raise(number);
    EXPECT(handled == 1);
    EXPECT(by_sigaction(number, SIG_DFL) == 0);
}

/* The other ranks set handlers meanwhile. */
static void set_in_children(void) {
    for (int made = 0; made < 300; ++made) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            signal(SIGUSR1, handler);
            signal(SIGINT, SIG_IGN);
            signal(SIGPIPE, handler);
            handled = 0;
            raise(SIGUSR1);
            raise(SIGPIPE);
            _exit(handled == 2 ? 0 : 1);
        }
        int status = -1;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
    }
}

static void reap(int number) {
    const int error = errno;
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
        ++handled;
    }
    errno = error;
}

/* Amid the making of others. */
static void wait_in_handler(int are_fibres) {
    EXPECT(by_sigaction(SIGCHLD, reap) == 0);
    for (int made = 0; made < 600; ++made) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        EXPECT(child > 0);
    }
    EXPECT(by_sigaction(SIGCHLD, SIG_DFL) == 0);
    while (wait(NULL) > 0) {
    }
    EXPECT(errno == ECHILD);
    EXPECT(handled > 0 || !are_fibres); /* else they are the rank's thread's own */
}

int main(int argc, char** argv) {
    int rank, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        set_by_each(argc > 1);
        hold();
        interrupt();
        survive(SIGUSR1);
        survive(SIGPIPE);
        handled = 0;
        wait_in_handler(argc > 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request done;
    if (rank == 0) {
        set_in_children();
        MPI_Ibarrier(MPI_COMM_WORLD, &done);
        MPI_Wait(&done, MPI_STATUS_IGNORE);
    } else {
        int is_done = 0;
        MPI_Ibarrier(MPI_COMM_WORLD, &done);
        while (!is_done) {
            for (int turn = 0; turn < 100; ++turn) {
                signal(SIGUSR2, handler);
                signal(SIGPIPE, handler);
            }
            MPI_Test(&done, &is_done, MPI_STATUS_IGNORE);
        }
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
    MPI_Finalize();
    return all;
}
