/* Two processes join by a socket, but one is in a network of its own, where no other process finds
   it: both get an error, whichever of the two would have had to come, and nothing is left in the
   socket. Not of one job: each is started alone. Then the other side is one that comes too late,
   and one that is no MPI process. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../point_to_point/check.h"

enum { rounds = 6 }; /* who has to come is left to chance */

static void begin(void) {
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static int join_class(int socket) {
    MPI_Comm joined = MPI_COMM_WORLD;
    int found = MPI_SUCCESS;
    MPI_Error_class(MPI_Comm_join(socket, &joined), &found);
    CHECK(joined == MPI_COMM_NULL, "class %d", found);
    return found;
}

static void check_joins(int socket) {
    begin();
    for (int i = 0; i < rounds; i++) {
        const int found = join_class(socket);
        CHECK(found == MPI_ERR_PORT, "class %d", found);
        char letter = (char)('a' + i), other = 0;
        CHECK(write(socket, &letter, 1) == 1 && read(socket, &other, 1) == 1, "socket");
        CHECK(other == letter, "%d was left in the socket", other);
    }
}

/* What a side of the call writes: first who it is, last that it can't come. */
static const struct {
    char magic[8];
    uint64_t number; /* the smaller: the other side waits at its port */
    char port_name[128];
} word = {"arrJoin1", 0, "warren:1:2:3"};
static const char refusal[] = "arrJoin0";

static void* refuse_late(void* socket) {
    usleep(300000);
    CHECK(write(*(int*)socket, refusal, 8) == 8, "socket");
    return NULL;
}

static void ignore(int number) {
    (void)number;
}

/* Interrupts system calls of the main thread, or no longer. */
static void interrupt_each(int microseconds) {
    const struct sigaction action = {.sa_handler = ignore};
    const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* The refusal comes after this side has given up. */
static void check_late_refusal(int interrupted) {
    sigset_t alarms, former;
    int ends[2];
    char byte = 0;
    pthread_t other;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socket");
    setenv("WARREN_CONNECT_TIMEOUT", "0.05", 1);
    CHECK(write(ends[1], &word, sizeof word) == sizeof word, "socket");
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, &former);
    pthread_create(&other, NULL, refuse_late, &ends[1]);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    interrupt_each(interrupted ? 20000 : 0);
    const int found = join_class(ends[0]);
    interrupt_each(0);
    CHECK(found == MPI_ERR_PORT, "class %d", found);
    pthread_join(other, NULL);
    CHECK(recv(ends[0], &byte, 1, MSG_DONTWAIT) == -1, "%d was left in the socket", byte);
    unsetenv("WARREN_CONNECT_TIMEOUT");
    close(ends[0]);
    close(ends[1]);
}

/* Bytes that are no refusal come from another program. */
static void check_stranger(void) {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socket");
    CHECK(write(ends[1], &word, sizeof word) == sizeof word, "socket");
    CHECK(write(ends[1], "somebody", 8) == 8, "socket");
    const int found = join_class(ends[0]);
    CHECK(found == MPI_ERR_ARG, "class %d", found);
    close(ends[0]);
    close(ends[1]);
}

int main(void) {
    int ends[2], status = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return 1;
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
            printf("skipped: no network of its own\n");
            return 77;
        }
        check_joins(ends[1]);
        MPI_Finalize();
        return 0;
    }
    close(ends[1]);
    char byte;
    /* The child is there, or has skipped: it writes its first word only after unshare(). */
    if (recv(ends[0], &byte, 1, MSG_PEEK) == 1) {
        check_joins(ends[0]);
        check_late_refusal(0);
        check_late_refusal(1);
        check_stranger();
        MPI_Finalize();
    }
    waitpid(child, &status, 0);
    return status == 0 ? 0 : WEXITSTATUS(status);
}
