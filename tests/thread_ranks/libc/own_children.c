/* A rank waits for its own children only, from each of its threads, hears of their ends and stops
   alone, and system() changes what this rank does about signals, and no other. */
#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "handled.h"

extern char** environ;

enum { many = 8, rounds = 10 };

static volatile sig_atomic_t interrupts, last_child, last_code, last_status;

static void note(int number, siginfo_t* information, void* context) {
    (void)context;
    (void)number;
    last_child = information->si_pid;
    last_code = information->si_code;
    last_status = information->si_status;
    ++calls;
}

static void count(int number) {
    (void)number;
    ++interrupts;
}

static pid_t make(int how, const char* command) {
    char* arguments[] = {"sh", "-c", (char*)command, NULL};
    pid_t child = -1;
    int master = -1;
    switch (how) {
    case 0:
        child = fork();
        break;
    case 1:
        child = vfork();
        break;
    case 2:
        expect(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
        return child;
    case 3:
        expect(posix_spawnp(&child, "sh", NULL, NULL, arguments, environ) == 0);
        return child;
    default:
        child = forkpty(&master, NULL, NULL, NULL);
    }
    if (child == 0) {
        execv("/bin/sh", arguments);
        _exit(1);
    }
    return child;
}

static pid_t make_child(int status, int sleeps_us) {
    const pid_t child = fork();
    if (child == 0) {
        usleep(sleeps_us);
        _exit(status);
    }
    expect(child > 0);
    return child;
}

/* Each rank makes other numbers of children; none waits for another's. */
static void own_children(void) {
    for (int how = 0; how < 5; ++how) {
        pid_t all[many];
        const int own = 1 + world_rank % (many - 1);
        char command[20];
        snprintf(command, sizeof command, "exit %d", 10 + world_rank);
        together();
        for (int i = 0; i < own; ++i) {
            all[i] = make(how, command);
        }
        together();
        int seen = 0;
        for (int i = 0; i < own; ++i) {
            int status = 0;
            siginfo_t information;
            memset(&information, 0, sizeof information);
            pid_t child = -1;
            if (i % 2 == 0) {
                child = waitpid(-1, &status, 0);
                expect(WIFEXITED(status) && WEXITSTATUS(status) == 10 + world_rank);
            } else {
                expect(waitid(P_ALL, 0, &information, WEXITED) == 0);
                expect(information.si_status == 10 + world_rank);
                child = information.si_pid;
            }
            for (int j = 0; j < own; ++j) {
                seen += all[j] == child;
            }
        }
        expect(seen == own);
        errno = 0;
        expect(wait(NULL) == -1 && errno == ECHILD);
        expect(waitid(P_ALL, 0, NULL, WEXITED) == -1 && errno == ECHILD);
        together();
    }
}

/* Nobody hears of another's children, which there are. */
static void children_of_others(void) {
    pid_t child = -1;
    if (world_rank == 0) {
        child = make_child(3, 0);
        siginfo_t information;
        expect(waitid(P_PID, (id_t)child, &information, WEXITED | WNOWAIT) == 0);
    }
    MPI_Bcast(&child, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (world_rank != 0) {
        siginfo_t information;
        errno = 0;
        expect(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
        errno = 0;
        expect(waitpid(child, NULL, WNOHANG) == -1 && errno == ECHILD);
        errno = 0;
        expect(waitid(P_PID, (id_t)child, &information, WEXITED | WNOHANG) == -1 &&
               errno == ECHILD);
    }
    together();
    int status = 0;
    expect(world_rank != 0 || (waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3));
    together();
}

struct family {
    pid_t child, told;
    int status;
};

static void* wait_in_thread(void* argument) {
    struct family* own = argument;
    own->told = waitpid(-1, &own->status, 0);
    return own;
}

static void* make_in_thread(void* argument) {
    struct family* own = argument;
    own->child = make_child(20 + world_rank, 2000);
    return own;
}

/* A thread makes what another one waits for. */
static void children_of_threads(void) {
    for (int waits = 0; waits < 2; ++waits) {
        together();
        struct family own = {0};
        pthread_t thread;
        if (waits) {
            own.child = make_child(20 + world_rank, 2000);
        }
        expect(pthread_create(&thread, NULL, waits ? wait_in_thread : make_in_thread, &own) == 0);
        expect(pthread_join(thread, NULL) == 0);
        if (!waits) {
            own.told = waitpid(-1, &own.status, 0);
        }
        expect(own.told == own.child && WEXITSTATUS(own.status) == 20 + world_rank);
        together();
    }
}

/* A second child, of another thread, ends while the first one is waited for. */
static void* make_later(void* argument) {
    usleep(5000);
    return make_in_thread(argument);
}

static void children_made_during_a_wait(void) {
    together();
    struct family own = {0};
    const pid_t first = make_child(1, 10000000);
    pthread_t thread;
    expect(pthread_create(&thread, NULL, make_later, &own) == 0);
    own.told = waitpid(-1, &own.status, 0);
    expect(pthread_join(thread, NULL) == 0);
    expect(own.told == own.child && WEXITSTATUS(own.status) == 20 + world_rank);
    kill(first, SIGKILL);
    int status = 0;
    expect(waitpid(-1, &status, 0) == first && WIFSIGNALED(status));
    together();
}

/* Who asks for stops alone leaves ends to others. */
static void ends_beside_stops(void) {
    siginfo_t information;
    const pid_t child = make_child(9, 0);
    expect(waitid(P_PID, (id_t)child, &information, WEXITED | WNOWAIT) == 0);
    expect(waitid(P_ALL, 0, &information, WSTOPPED | WCONTINUED | WNOHANG) == -1 &&
           errno == ECHILD);
    int status = 0;
    expect(waitpid(-1, &status, 0) == child && WEXITSTATUS(status) == 9);
    together();
}

/* The signal reaches the parent alone. */
static void signals_of_ends(void) {
    handle(SIGCHLD, note, SA_RESTART);
    for (int rank = 0; rank < world_size; ++rank) {
        calls = 0;
        together();
        if (rank == world_rank) {
            for (int i = 1; i <= 3; ++i) {
                const pid_t child = make_child(30 + i, 1000);
                await_calls(i);
                expect(calls == i && last_child == child && last_code == CLD_EXITED &&
                       last_status == 30 + i);
                expect(waitpid(-1, NULL, 0) == child);
                expect(calls == i);
            }
            const pid_t killed = make_child(0, 10000000);
            kill(killed, SIGKILL);
            await_calls(4);
            expect(last_code == CLD_KILLED && last_status == SIGKILL);
            expect(waitpid(killed, NULL, 0) == killed);
        } else {
            const struct timespec time = {0, 20000000};
            expect(nanosleep(&time, NULL) == 0);
        }
        together();
        expect(calls == (rank == world_rank ? 4 : 0));
    }
}

/* Blocked, it is pending for the parent alone, who may wait for it. */
static void pending_signals_of_ends(const sigset_t* set) {
    sigset_t pending;
    calls = 0;
    for (int rank = 0; rank < world_size; ++rank) {
        together();
        pid_t child = -1;
        if (rank == world_rank) {
            siginfo_t information;
            child = make_child(7, 0);
            expect(waitid(P_PID, (id_t)child, &information, WEXITED | WNOWAIT) == 0);
        }
        together();
        for (int look = 0; look < looks && rank == world_rank; ++look) {
            expect(sigpending(&pending) == 0);
            if (sigismember(&pending, SIGCHLD)) {
                break;
            }
            usleep(500);
        }
        expect(sigpending(&pending) == 0 && sigismember(&pending, SIGCHLD) == (rank == world_rank));
        together();
        siginfo_t information;
        const struct timespec limit = {rank == world_rank ? 20 : 0, 5000000};
        memset(&information, 0, sizeof information);
        const int number = sigtimedwait(set, &information, &limit);
        expect(rank == world_rank ? number == SIGCHLD && information.si_pid == child
                                  : number == -1 && errno == EAGAIN);
        expect(child < 0 || waitpid(child, NULL, 0) == child);
        together();
    }
}

/* Of all ranks at once. */
static void awaited_signals_of_ends(const sigset_t* set, const sigset_t* former) {
    for (int round = 0; round < rounds; ++round) {
        const pid_t child = make_child(0, 500 * (world_rank + 1));
        siginfo_t information;
        memset(&information, 0, sizeof information);
        expect(sigwaitinfo(set, &information) == SIGCHLD && information.si_pid == child);
        expect(waitpid(child, NULL, 0) == child);
    }
    together();
    for (int round = 0; round < rounds; ++round) {
        calls = 0;
        const pid_t child = make_child(0, 500 * (world_rank + 1));
        while (calls == 0) {
            expect(sigsuspend(former) == -1 && errno == EINTR && calls == 1);
        }
        expect(last_child == child && waitpid(child, NULL, 0) == child && calls == 1);
    }
}

static void blocked_signals_of_ends(void) {
    sigset_t set, former;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    expect(pthread_sigmask(SIG_BLOCK, &set, &former) == 0);
    pending_signals_of_ends(&set);
    awaited_signals_of_ends(&set, &former);
    expect(pthread_sigmask(SIG_SETMASK, &former, NULL) == 0);
    set_default(SIGCHLD, 0);
    together();
}

static void* sigwait_in_thread(void* argument) {
    struct family* own = argument;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    siginfo_t information;
    own->told = sigwaitinfo(&set, &information) == SIGCHLD ? information.si_pid : -1;
    return own;
}

/* A thread waits for the signals of ends, all others have them blocked. */
static void threads_that_wait_for_ends(void) {
    sigset_t set, former;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    expect(pthread_sigmask(SIG_BLOCK, &set, &former) == 0);
    for (int round = 0; round < rounds; ++round) {
        together();
        struct family own = {0};
        pthread_t thread;
        expect(pthread_create(&thread, NULL, sigwait_in_thread, &own) == 0);
        own.child = make_child(0, round % 2 * 2000);
        expect(pthread_join(thread, NULL) == 0 && own.told == own.child);
        expect(waitpid(own.child, NULL, 0) == own.child);
        together();
    }
    expect(pthread_sigmask(SIG_SETMASK, &former, NULL) == 0);
}

static void stop_and_end(pid_t child, int told) {
    int status = 0;
    calls = 0;
    kill(child, SIGSTOP);
    expect(waitpid(-1, &status, WUNTRACED) == child && WIFSTOPPED(status));
    for (int look = 0; look < 100 && told && calls < 1; ++look) {
        usleep(2000);
    }
    expect(told ? calls == 1 && last_code == CLD_STOPPED && last_child == child : calls == 0);
    kill(child, SIGCONT);
    expect(waitpid(-1, &status, WCONTINUED) == child && WIFCONTINUED(status));
    kill(child, SIGKILL);
    expect(waitpid(-1, &status, 0) == child && WIFSIGNALED(status));
    await_calls(1);
}

static void stops(void) {
    together();
    for (int rank = 0; rank < world_size; ++rank) {
        handle(SIGCHLD, note, SA_RESTART | (rank % 2 == 0 ? SA_NOCLDSTOP : 0));
        calls = 0;
        together();
        if (rank == world_rank) {
            stop_and_end(make_child(0, 10000000), rank % 2 != 0);
            calls = 0;
        }
        together();
        expect(calls == 0);
    }
    set_default(SIGCHLD, 0);
}

/* Of children of all ranks at once, whose signals the system merges. */
static void stops_at_once(void) {
    handle(SIGCHLD, note, SA_RESTART);
    const pid_t child = fork();
    if (child == 0) {
        while (1) {
            pause();
        }
    }
    int status = 0;
    for (int round = 0; round < 3 * rounds; ++round) {
        together();
        calls = 0;
        kill(child, SIGSTOP);
        expect(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
        await_calls(1);
        expect(calls == 1 && last_code == CLD_STOPPED && last_child == child);
        together();
        calls = 0;
        kill(child, SIGCONT);
        expect(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
        await_calls(1);
        expect(calls == 1 && last_code == CLD_CONTINUED && last_child == child);
    }
    set_default(SIGCHLD, 0);
    kill(child, SIGKILL);
    expect(waitpid(child, &status, 0) == child);
    together();
}

static int open_pidfd(pid_t child) {
    return (int)syscall(SYS_pidfd_open, child, 0);
}

static void descriptors_of_children(void) {
    together();
    const pid_t child = make_child(40 + world_rank, 2000);
    struct pollfd one = {open_pidfd(child), POLLIN, 0};
    siginfo_t information;
    memset(&information, 0, sizeof information);
    expect(one.fd >= 0 && poll(&one, 1, 20000) == 1);
    expect(waitid((idtype_t)3, (id_t)one.fd, &information, WEXITED) == 0); /* P_PIDFD */
    expect(information.si_pid == child && information.si_status == 40 + world_rank);
    close(one.fd);
    errno = 0;
    expect(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    together();
}

static void pipes(void) {
    together();
    const pid_t other = make_child(4, 0);
    char text[20] = "", command[40];
    snprintf(command, sizeof command, "echo %d; exit 6", world_rank);
    FILE* stream = popen(command, "r");
    expect(stream != NULL && fgets(text, sizeof text, stream) != NULL && atoi(text) == world_rank);
    int status = pclose(stream);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 6);
    expect(waitpid(-1, &status, 0) == other && WEXITSTATUS(status) == 4);
    stream = popen("exit 5", "r"); /* any wait may take a command's end */
    expect(waitpid(-1, &status, 0) > 0 && WEXITSTATUS(status) == 5);
    errno = 0;
    expect(pclose(stream) == -1 && errno == ECHILD);
    together();
}

static void* interrupt_process(void* unused) {
    usleep(20000);
    kill(getpid(), SIGINT);
    kill(getpid(), SIGQUIT);
    return unused;
}

static int handles(int number) {
    struct sigaction now;
    expect(sigaction(number, NULL, &now) == 0);
    return now.sa_handler == count;
}

/* Odd ranks run a command, the others handle the signal meanwhile. */
static void commands(void) {
    signal(SIGINT, count);
    signal(SIGQUIT, count);
    handle(SIGCHLD, note, SA_RESTART);
    const int odd = world_rank % 2;
    together();
    interrupts = calls = 0;
    pthread_t thread;
    expect(pthread_create(&thread, NULL, interrupt_process, NULL) == 0);
    if (odd) {
        const int status = system("sleep 1; exit 8");
        expect(WIFEXITED(status) && WEXITSTATUS(status) == 8 && calls <= 1);
    } else {
        usleep(100000);
    }
    expect(pthread_join(thread, NULL) == 0);
    expect(interrupts == (odd ? 0 : 2));
    expect(handles(SIGINT) && handles(SIGQUIT));
    together();
    /* The command has the defaults, unless the rank ignores the signals. */
    int status = system("kill -INT $$; exit 8");
    expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    signal(SIGQUIT, odd ? SIG_IGN : SIG_DFL);
    together();
    status = system("kill -QUIT $$; exit 8");
    expect(odd ? WIFEXITED(status) && WEXITSTATUS(status) == 8
               : WIFSIGNALED(status) && WTERMSIG(status) == SIGQUIT);
    expect(handles(SIGINT) && signal(SIGQUIT, count) == (odd ? SIG_IGN : SIG_DFL));
    together();
}

static void* run_command(void* result) {
    usleep(1000 * (world_rank + 1));
    *(int*)result = system("sleep 1; kill -INT $$; exit 8");
    return result;
}

/* Two at once in a rank, and in all ranks. */
static void commands_at_once(void) {
    interrupts = 0;
    together();
    int other = 0;
    pthread_t thread, interrupter;
    expect(pthread_create(&thread, NULL, run_command, &other) == 0);
    expect(pthread_create(&interrupter, NULL, interrupt_process, NULL) == 0);
    const int status = system("sleep 0.9; kill -INT $$; exit 8");
    expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    expect(pthread_join(thread, NULL) == 0 && pthread_join(interrupter, NULL) == 0);
    expect(WIFSIGNALED(other) && WTERMSIG(other) == SIGINT);
    expect(handles(SIGINT) && handles(SIGQUIT) && interrupts == 0);
    kill(getpid(), SIGINT);
    expect(interrupts == 1);
    set_default(SIGCHLD, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    together();
}

/* Rank 0 changes its actions all the time, the others ignore the signals: their commands, too. */
static void commands_beside_changes(void) {
    volatile int* running = NULL;
    MPI_Win window;
    MPI_Win_allocate_shared(world_rank == 0 ? sizeof(int) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                            (void*)&running, &window);
    MPI_Aint bytes;
    int unit;
    MPI_Win_shared_query(window, 0, &bytes, &unit, (void*)&running);
    *running = world_size - 1;
    together();
    if (world_rank == 0) {
        for (int round = 0; __atomic_load_n(running, __ATOMIC_ACQUIRE) != 0; ++round) {
            signal(SIGINT, round % 2 ? SIG_IGN : SIG_DFL);
            signal(SIGQUIT, round % 2 ? SIG_IGN : SIG_DFL);
            if (round % 64 == 0) {
                usleep(1);
            }
        }
    } else {
        signal(SIGINT, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
        for (int round = 0; round < 40; ++round) {
            const int status = system(round % 2 ? "kill -INT $$; exit 8" : "kill -QUIT $$; exit 8");
            expect(WIFEXITED(status) && WEXITSTATUS(status) == 8);
        }
        __atomic_fetch_sub(running, 1, __ATOMIC_RELEASE);
    }
    together();
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    MPI_Win_free(&window);
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    own_children();
    children_of_others();
    children_of_threads();
    children_made_during_a_wait();
    ends_beside_stops();
    signals_of_ends();
    blocked_signals_of_ends();
    threads_that_wait_for_ends();
    stops();
    stops_at_once();
    descriptors_of_children();
    pipes();
    commands();
    commands_at_once();
    commands_beside_changes();
    return finish();
}
