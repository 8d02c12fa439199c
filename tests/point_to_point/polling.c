/*
 * Ranks that poll for a message let the one run that sends it, when one processor has to do for
 * all: a number goes round by each kind of look. Ranks that kept the processor until the kernel
 * takes it, 3 ms and more, would need half a minute, and not be done within the test's limit.
 * With "busy" a program that never gives the processor away wants it as well.
 */
#define _GNU_SOURCE
#include "check.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "one_processor.h"

enum { HOPS = 1200, TAG = 5 };

enum look { TEST, TESTANY, TESTALL, TESTSOME, STATUS, IPROBE, IMPROBE, PARRIVED, LOOKS };

static pid_t start_busy_program(void) {
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(120);
        for (volatile long turns = 0;; turns++) {
        }
    }
    CHECK(child > 0, "no child");
    return child;
}

static int found(enum look look, MPI_Request* request, int* number, int source) {
    int flag = 0;
    int index;
    MPI_Message message;
    switch (look) {
    case TEST:
        MPI_Test(request, &flag, MPI_STATUS_IGNORE);
        break;
    case TESTANY:
        MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE);
        break;
    case TESTALL:
        MPI_Testall(1, request, &flag, MPI_STATUSES_IGNORE);
        break;
    case TESTSOME:
        MPI_Testsome(1, request, &flag, &index, MPI_STATUSES_IGNORE);
        break;
    case STATUS:
        MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE);
        break;
    case PARRIVED:
        MPI_Parrived(*request, 0, &flag);
        break;
    case IPROBE:
        MPI_Iprobe(source, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        if (flag) {
            MPI_Recv(number, 1, MPI_INT, source, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        break;
    default:
        MPI_Improbe(source, TAG, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
        if (flag) {
            MPI_Mrecv(number, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        }
    }
    if (flag && (look == STATUS || look == PARRIVED)) {
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    return flag;
}

static void go_round(enum look look, int rank, int ranks) {
    const int next = (rank + 1) % ranks;
    const int before = (rank + ranks - 1) % ranks;
    int number = -1;
    int sent = 0;
    MPI_Request receive = MPI_REQUEST_NULL;
    MPI_Request send = MPI_REQUEST_NULL;
    if (look == PARRIVED) {
        MPI_Precv_init(&number, 1, 1, MPI_INT, before, TAG, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &receive);
        MPI_Psend_init(&sent, 1, 1, MPI_INT, next, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    }
    for (int round = 0; round < HOPS / ranks; round++) {
        if (look == PARRIVED) {
            MPI_Start(&receive);
        } else if (look != IPROBE && look != IMPROBE) {
            MPI_Irecv(&number, 1, MPI_INT, before, TAG, MPI_COMM_WORLD, &receive);
        }
        for (int turn = 0; turn < 2; turn++) {
            if (turn == (rank == 0)) {
                while (!found(look, &receive, &number, before)) {
                }
            } else {
                sent = rank == 0 ? round : number + 1;
                if (look == PARRIVED) {
                    MPI_Start(&send);
                    MPI_Pready(0, send);
                } else {
                    MPI_Send(&sent, 1, MPI_INT, next, TAG, MPI_COMM_WORLD);
                }
            }
        }
        if (look == PARRIVED) {
            MPI_Wait(&send, MPI_STATUS_IGNORE);
        }
        CHECK(number == round + (rank + ranks - 1) % ranks, "%d came in round %d, look %d", number,
              round, (int)look);
    }
    if (look == PARRIVED) {
        MPI_Request_free(&receive);
        MPI_Request_free(&send);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    int ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    share_one_processor();
    const int busy = argc > 1 && strcmp(argv[1], "busy") == 0 && rank == 0;
    const pid_t busy_program = busy ? start_busy_program() : 0;
    for (int look = 0; look < LOOKS; look++) {
        go_round((enum look)look, rank, ranks);
    }
    if (busy) {
        kill(busy_program, SIGKILL);
        waitpid(busy_program, NULL, 0);
    }
    MPI_Finalize();
    return 0;
}
