/* What handlers see of the mask of signals and do to it, and in which order pending signals come:
   as in a process of its own. */
#define _GNU_SOURCE

#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "handled.h"

static char seen[400];
static volatile size_t length;

static void note(const char* text, int number) {
    length += (size_t)snprintf(seen + length, sizeof seen - length, text, number);
}

static void expect_seen(const char* wanted) {
    if (strcmp(seen, wanted) != 0) {
        dprintf(2, "seen: %s\n", seen);
    }
    expect(strcmp(seen, wanted) == 0);
    length = 0;
    seen[0] = '\0';
}

static const int few[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, SIGWINCH};

static void note_mask(const char* name, const sigset_t* mask) {
    note(name, 0);
    for (size_t i = 0; i < sizeof few / sizeof few[0]; ++i) {
        if (sigismember(mask, few[i]) == 1) {
            note("%d,", few[i]);
        }
    }
}

/* Each raises the next, of which the last one comes by kill. */
static void raise_next(int number, siginfo_t* information, void* context) {
    (void)information;
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    note_mask(" in ", &now);
    note_mask(" back ", &((ucontext_t*)context)->uc_sigmask);
    if (number == SIGUSR1) {
        raise(SIGUSR2);
    } else if (number == SIGUSR2) {
        kill(getpid(), SIGWINCH);
    }
}

static void nested_handlers(void) {
    handle(SIGUSR1, raise_next, 0);
    handle(SIGUSR2, raise_next, 0);
    handle(SIGWINCH, raise_next, 0);
    together();
    const char* wanted = " in 10, back  in 10,12, back 10, in 10,12,28, back 10,12,";
    raise(SIGUSR1);
    expect_seen(wanted);
    kill(getpid(), SIGUSR1);
    expect_seen(wanted);
    together();
    handle(SIGUSR1, raise_next, SA_NODEFER);
    handle(SIGUSR2, raise_next, SA_NODEFER);
    raise(SIGUSR1);
    expect_seen(" in  back  in  back  in 28, back ");
    together();
}

static void change(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)information;
    sigset_t* mask = &((ucontext_t*)context)->uc_sigmask;
    sigaddset(mask, SIGTERM);
    sigdelset(mask, SIGHUP);
}

static void count(int number) {
    note(" %d", number);
}

/* A handler blocks SIGTERM for the code that it has interrupted, and lets SIGHUP through. */
static void changed_masks(void) {
    sigset_t set, former, now;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    signal(SIGHUP, count);
    signal(SIGTERM, count);
    handle(SIGUSR1, change, 0);
    together();
    for (int i = 0; i < 2; ++i) {
        expect(sigprocmask(SIG_BLOCK, &set, &former) == 0);
        kill(getpid(), SIGHUP);
        kill(getpid(), SIGTERM);
        expect_seen(" 15");
        i == 0 ? kill(getpid(), SIGUSR1) : raise(SIGUSR1);
        raise(SIGTERM);
        expect(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
        note_mask(" now ", &now);
        expect_seen(" 1 now 15,");
        expect(sigprocmask(SIG_SETMASK, &former, NULL) == 0);
        expect_seen(" 15");
    }
    together();
}

/* The kernel has handlers of several signals that come at once interrupt each other. */
static void order_of_signals(void) {
    const int order[] = {SIGTERM, SIGUSR1, SIGRTMIN + 2, SIGHUP, SIGRTMIN + 2};
    sigset_t set, none, former;
    sigemptyset(&set);
    sigemptyset(&none);
    for (int i = 0; i < 5; ++i) {
        sigaddset(&set, order[i]);
        signal(order[i], count);
    }
    const int realtime = SIGRTMIN + 2;
    char wanted[40];
    snprintf(wanted, sizeof wanted, " %d %d 15 10 1", realtime, realtime);
    for (int way = 0; way < 4; ++way) {
        together();
        expect(sigprocmask(SIG_BLOCK, &set, &former) == 0);
        for (int i = 0; i < 5; ++i) {
            way == 0 ? raise(order[i]) : kill(getpid(), order[i]);
        }
        if (way < 2) {
            sigprocmask(SIG_SETMASK, &former, NULL);
            expect_seen(wanted);
        } else if (way == 2) {
            sigsuspend(&none);
            expect_seen(wanted);
        } else {
            const int lowest[] = {SIGHUP, SIGUSR1, SIGTERM, realtime, realtime};
            for (int i = 0; i < 5; ++i) {
                int number = 0;
                expect(sigwait(&set, &number) == 0 && number == lowest[i]);
            }
        }
        expect(sigprocmask(SIG_SETMASK, &former, NULL) == 0);
    }
    together();
}

/* A handler that blocks another signal runs before that one's. */
static void order_by_masks(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = count;
    sigaddset(&action.sa_mask, SIGUSR2);
    expect(sigaction(SIGUSR1, &action, NULL) == 0);
    signal(SIGUSR2, count);
    sigset_t set, former;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    for (int way = 0; way < 2; ++way) {
        expect(sigprocmask(SIG_BLOCK, &set, &former) == 0);
        way == 0 ? raise(SIGUSR2) : kill(getpid(), SIGUSR2);
        way == 0 ? raise(SIGUSR1) : kill(getpid(), SIGUSR1);
        expect(sigprocmask(SIG_SETMASK, &former, NULL) == 0);
        expect_seen(" 10 12");
        together();
    }
}

/* sigsuspend ends after what has run under its mask. */
static void signals_of_waits(void) {
    const int realtime = SIGRTMIN + 2;
    sigset_t set, none, former;
    sigemptyset(&none);
    sigemptyset(&set);
    sigaddset(&set, realtime);
    signal(realtime, count);
    expect(sigprocmask(SIG_BLOCK, &set, &former) == 0);
    const union sigval value = {0};
    for (int i = 0; i < 3; ++i) {
        expect(sigqueue(getpid(), realtime, value) == 0);
    }
    for (int i = 0; i < 3; ++i) {
        char wanted[20];
        snprintf(wanted, sizeof wanted, " %d", realtime);
        expect(sigsuspend(&none) == -1);
        expect_seen(wanted);
    }
    expect(sigprocmask(SIG_SETMASK, &former, NULL) == 0);
    together();
}

static sigjmp_buf place;
static sem_t never;

static void jump_away(int number) {
    siglongjmp(place, number);
}

static void wait_below(int depth) {
    volatile char more[4096];
    more[0] = (char)depth;
    if (depth > 0) {
        wait_below(depth - 1);
    } else {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        while (sem_wait(&never) != 0) {
        }
    }
    more[1] = more[0];
}

/* Handlers that leave a wait do so however often, each from further below than the one before. */
static void jumps_from_below(void) {
    sigset_t set, former;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    signal(SIGUSR1, jump_away);
    expect(sem_init(&never, 0, 0) == 0 && sigprocmask(SIG_BLOCK, &set, &former) == 0);
    together();
    for (volatile int depth = 0; depth < 40; ++depth) {
        const pid_t child = fork();
        if (child == 0) {
            usleep(2000);
            _exit(kill(getppid(), SIGUSR1));
        }
        if (sigsetjmp(place, 1) == 0) {
            wait_below(depth);
        }
        expect(waitpid(child, NULL, 0) == child);
    }
    expect(sigprocmask(SIG_SETMASK, &former, NULL) == 0);
    together();
}

/* Also a default action keeps its mask and flags. */
static void masks_of_actions(void) {
    struct sigaction action, now;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    action.sa_flags = SA_RESTART;
    sigaddset(&action.sa_mask, SIGHUP + world_rank);
    expect(sigaction(SIGXFSZ, &action, NULL) == 0 && sigaction(SIGXFSZ, NULL, &now) == 0);
    expect(sigismember(&now.sa_mask, SIGHUP + world_rank) == 1);
    expect((now.sa_flags & SA_RESTART) != 0 && now.sa_handler == SIG_DFL);
    together();
}

static void where(int number) {
    (void)number;
    char here = 0;
    stack_t stack;
    sigaltstack(NULL, &stack);
    const char* begin = stack.ss_sp;
    note(" %d", &here >= begin && &here < begin + stack.ss_size);
}

/* A handler that doesn't ask for the stack of signals doesn't get it, also where one before it did.
   (A fibre's handlers run on its own stack always.) */
static void handlers_on_stacks(int is_fibre) {
    stack_t stack = {0};
    stack.ss_size = 65536;
    stack.ss_sp = malloc(stack.ss_size);
    expect(sigaltstack(&stack, NULL) == 0);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = where;
    for (int i = 0; i < 2; ++i) {
        action.sa_flags = i == 0 ? SA_ONSTACK : 0;
        expect(sigaction(SIGXCPU, &action, NULL) == 0);
        together();
        raise(SIGXCPU);
        together();
    }
    expect_seen(is_fibre ? " 0 0" : " 1 0");
    stack.ss_flags = SS_DISABLE;
    expect(sigaltstack(&stack, NULL) == 0);
    free(stack.ss_sp);
}

static ucontext_t outside, inside;
static char stack_of_inside[65536];
static volatile sig_atomic_t entered;

static void leave_for_context(int number) {
    (void)number;
    if (++entered == 1) {
        swapcontext(&inside, &outside);
    }
}

static void run_inside(void) {
    raise(SIGUSR1);
    swapcontext(&inside, &outside);
}

/* A program may leave a handler for another context: there the signal isn't blocked, also when
   somebody else sends it. (`warren image check` says that fibres can't.) */
static void contexts_of_handlers(void) {
    signal(SIGUSR1, leave_for_context);
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack_of_inside;
    inside.uc_stack.ss_size = sizeof stack_of_inside;
    inside.uc_link = NULL;
    makecontext(&inside, run_inside, 0);
    expect(swapcontext(&outside, &inside) == 0 && entered == 1);
    const pid_t child = fork();
    if (child == 0) {
        _exit(kill(getppid(), SIGUSR1));
    }
    for (int i = 0; i < 5000 && entered < 2; ++i) {
        usleep(1000);
    }
    expect(entered == 2 && waitpid(child, NULL, 0) == child);
    expect(swapcontext(&outside, &inside) == 0 && entered == 2);
    together();
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    nested_handlers();
    changed_masks();
    order_of_signals();
    order_by_masks();
    signals_of_waits();
    jumps_from_below();
    masks_of_actions();
    if (strcmp(argv[1], "fibres") != 0) {
        contexts_of_handlers();
    }
    handlers_on_stacks(strcmp(argv[1], "fibres") == 0);
    return finish();
}
