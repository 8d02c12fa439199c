/* Commands that a rank starts ignore the signals that it ignores, and no others; a child that
   shares its parent's memory changes nothing there. A rank that shares its process can't become a
   command. The argument is the kind of ranks. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "expect.h"

extern char** environ;

static int status_of(pid_t child) {
    int status = 0;
    expect(waitpid(child, &status, 0) == child);
    return status;
}

static int is_as_expected(int status, int ignores, int number) {
    return ignores ? WIFEXITED(status) && WEXITSTATUS(status) == 5
                   : WIFSIGNALED(status) && WTERMSIG(status) == number;
}

/* A shell signals itself. */
static void start_in_all_ways(int ignores, int number) {
    char command[60];
    snprintf(command, sizeof command, "kill -%d $$; exit 5", number);
    expect(is_as_expected(system(command), ignores, number));
    FILE* stream = popen(command, "r");
    expect(stream != NULL && is_as_expected(pclose(stream), ignores, number));
    for (int shares = 0; shares < 2; ++shares) {
        const pid_t child = shares ? vfork() : fork();
        if (child == 0) {
            execl("/bin/sh", "sh", "-c", command, (char*)NULL);
            _exit(1);
        }
        expect(is_as_expected(status_of(child), ignores, number));
    }
}

static void signals_of_one(void) {
    const int ignores = world_rank % 2;
    if (ignores) {
        signal(SIGUSR1, SIG_IGN);
    }
    together();
    start_in_all_ways(ignores, SIGUSR1);
    together();
    signal(SIGUSR1, SIG_DFL);
    together();
    start_in_all_ways(0, SIGUSR1);
    together();
}

/* One that writes to a closed pipe among them, which Python's programs ignore. */
static void signals_of_all(void) {
    const int numbers[] = {SIGUSR2, SIGPIPE};
    for (int i = 0; i < 2; ++i) {
        signal(numbers[i], SIG_IGN);
        together();
        start_in_all_ways(1, numbers[i]);
        char command[60];
        snprintf(command, sizeof command, "kill -%d $$; exit 5", numbers[i]);
        char* arguments[] = {"sh", "-c", command, NULL};
        pid_t child;
        expect(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
        expect(is_as_expected(status_of(child), 1, numbers[i]));
        together();
        if (world_rank == 1) {
            signal(numbers[i], SIG_DFL);
        }
        together();
        start_in_all_ways(world_rank != 1, numbers[i]);
        together();
    }
    int ends[2];
    expect(pipe(ends) == 0 && close(ends[0]) == 0);
    if (world_rank != 1) {
        expect(write(ends[1], "x", 1) == -1);
    }
    close(ends[1]);
    together();
}

static volatile sig_atomic_t calls;

static void count(int number) {
    (void)number;
    ++calls;
}

static void children_in_parents_memory(void) {
    signal(SIGHUP, count);
    together();
    const pid_t child = vfork();
    if (child == 0) {
        signal(SIGHUP, world_rank % 2 ? SIG_IGN : SIG_DFL);
        execl("/bin/sh", "sh", "-c", "kill -HUP $$; exit 5", (char*)NULL);
        _exit(1);
    }
    expect(is_as_expected(status_of(child), world_rank % 2, SIGHUP));
    expect(raise(SIGHUP) == 0 && calls == 1);
    together();
}

/* Who ignores the ends of children hears of none, and the others do. */
static void ends_of_children(void) {
    const int ignores = world_rank % 2;
    signal(SIGCHLD, ignores ? SIG_IGN : SIG_DFL);
    together();
    const pid_t child = fork();
    if (child == 0) {
        _exit(3);
    }
    int status = 0;
    errno = 0;
    const pid_t told = waitpid(child, &status, 0);
    expect(ignores ? told == -1 && errno == ECHILD : told == child && WEXITSTATUS(status) == 3);
    errno = 0;
    const int result = system("exit 4");
    expect(ignores ? result == -1 && errno == ECHILD : WEXITSTATUS(result) == 4);
    FILE* command = popen("exit 5", "r");
    errno = 0;
    const int ended = pclose(command);
    expect(ignores ? ended == -1 && errno == ECHILD : WEXITSTATUS(ended) == 5);
    together();
    signal(SIGCHLD, SIG_DFL);
    together();
}

static void refusals(void) {
    char* arguments[] = {"true", NULL};
    const int file = open("/bin/true", O_RDONLY | O_CLOEXEC);
    errno = 0;
    expect(fexecve(file, arguments, environ) == -1 && errno == ENOTSUP);
    errno = 0;
    expect(execveat(AT_FDCWD, "/bin/true", arguments, environ, 0) == -1 && errno == ENOTSUP);
    errno = 0;
    expect(execv("/bin/true", arguments) == -1 && errno == ENOTSUP);
    close(file);
    together();
}

/* By a descriptor, in a child. */
static void open_commands(void) {
    char* arguments[] = {"sh", "-c", "exit 5", NULL};
    const int file = open("/bin/sh", O_RDONLY | O_CLOEXEC);
    const pid_t child = fork();
    if (child == 0) {
        fexecve(file, arguments, environ);
        _exit(1);
    }
    expect(is_as_expected(status_of(child), 1, 0));
    close(file);
    together();
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    open_commands();
    ends_of_children();
    if (strcmp(argv[1], "processes") != 0) {
        refusals();
    }
    signals_of_one();
    signals_of_all();
    children_in_parents_memory();
    return finish();
}
