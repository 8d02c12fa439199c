/*
 * Launch: the time from starting the launcher to its exit, for a program that only initialises and
 * finalises MPI.
 *
 * The same program is both sides. As a job it is MPI_Init and MPI_Finalize and prints nothing:
 *     mpiexec -n 64 launch
 * With --time it is the stopwatch, no MPI process itself, and runs the command after -- that often:
 *     launch --time 5 [--human] [--limit 60] -- mpiexec -n 64 launch
 * A run that fails or exceeds the limit (seconds) is reported and ends the program with an error.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { max_runs = 1000 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static pid_t child;

static void kill_child(int signal_number) {
    (void)signal_number;
    kill(-child, SIGKILL);
}

/* Seconds that the command took, or -1. `cpu` grows by the CPU time of all its processes. */
static double run_once(char** command, unsigned limit, double* cpu) {
    double start = now();
    child = fork();
    if (child == 0) {
        setpgid(0, 0); /* so that the limit can end the whole job */
        execvp(command[0], command);
        fprintf(stderr, "launch: %s: %s\n", command[0], strerror(errno));
        _exit(127);
    }
    if (child < 0) {
        perror("launch: fork");
        return -1;
    }
    setpgid(child, child);
    alarm(limit);
    int status = 0;
    struct rusage usage;
    pid_t ended;
    do
        ended = wait4(child, &status, 0, &usage);
    while (ended < 0 && errno == EINTR);
    double seconds = now() - start;
    alarm(0);
    *cpu += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
            1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    if (ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return seconds;
    if (WIFSIGNALED(status))
        fprintf(stderr, "launch: the command ended by signal %d after %.1f s\n", WTERMSIG(status),
                seconds);
    else
        fprintf(stderr, "launch: the command ended with code %d after %.1f s\n",
                WEXITSTATUS(status), seconds);
    return -1;
}

static int compare_times(const void* a, const void* b) {
    double x = *(const double*)a;
    double y = *(const double*)b;
    return (x > y) - (x < y);
}

static int stopwatch(int runs, unsigned limit, int human, char** command) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = kill_child;
    sigaction(SIGALRM, &action, NULL);
    double times[max_runs];
    double cpu = 0;
    for (int i = 0; i < runs; i++)
        if ((times[i] = run_once(command, limit, &cpu)) < 0)
            return 1;
    qsort(times, (size_t)runs, sizeof times[0], compare_times);
    double median = runs % 2 != 0 ? times[runs / 2] : (times[runs / 2 - 1] + times[runs / 2]) / 2;
    if (human)
        printf("launch %31s %10.4g ms (best %.4g)\n", "", 1e3 * median, 1e3 * times[0]);
    else
        printf("{\"program\":\"launch\",\"figure\":\"launch\",\"mode\":\"\",\"unit\":\"s\","
               "\"median\":%.6g,\"best\":%.6g,\"batches\":%d,\"cpu\":%.4g}\n",
               median, times[0], runs, cpu / runs);
    return 0;
}

int main(int argc, char** argv) {
    if (argc < 2) {
        MPI_Init(&argc, &argv);
        MPI_Finalize();
        return 0;
    }
    int runs = 1;
    int limit = 120;
    int human = 0;
    int at = 1;
    for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
        if (strcmp(argv[at], "--time") == 0 && at + 1 < argc)
            runs = atoi(argv[++at]);
        else if (strcmp(argv[at], "--limit") == 0 && at + 1 < argc)
            limit = atoi(argv[++at]);
        else if (strcmp(argv[at], "--human") == 0)
            human = 1;
        else
            break;
    }
    if (at + 1 >= argc || strcmp(argv[at], "--") != 0 || runs < 1 || runs > max_runs || limit < 1) {
        fprintf(stderr, "usage: launch [--time RUNS] [--limit SECONDS] [--human] -- COMMAND…\n");
        return 2;
    }
    return stopwatch(runs, (unsigned)limit, human, argv + at + 1);
}
