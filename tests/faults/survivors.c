/* mpiexec --keep-going: the last rank kills itself, and the others' calls that wait for it end with
   MPI_ERR_PROC_ABORTED, each after what the rank has sent before. They go on with each other. The
   argument names the call. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

enum { long_message = 1 << 22 };

static int rank, size, lost;
static char data[long_message];

static void expect(int holds, const char* what) {
    if (!holds) {
        printf("rank %d: %s\n", rank, what);
        exit(3);
    }
}

static void is_aborted(int code, const char* what) {
    int error_class;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_class(code, &error_class);
    MPI_Error_string(code, text, &length);
    if (error_class != MPI_ERR_PROC_ABORTED) {
        printf("rank %d: %s gave \"%s\"\n", rank, what, text);
        exit(3);
    }
}

/* What the lost rank sends before its end. */
static void last_words(void) {
    for (int other = 0; other < lost; ++other) {
        int value = 100 + other;
        MPI_Send(&value, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
    }
}

static void hear_last_words(void) {
    int value = 0;
    expect(MPI_Recv(&value, 1, MPI_INT, lost, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS,
           "the last words are an error");
    expect(value == 100 + rank, "other last words");
}

/* Calls that wait for one operation. */
static int wait_for_one(const char* call) {
    MPI_Request requests[1];
    MPI_Status status;
    MPI_Message message;
    int value, flag = 0;
    if (strcmp(call, "recv") == 0) {
        is_aborted(MPI_Recv(&value, 1, MPI_INT, lost, 2, MPI_COMM_WORLD, &status), call);
    } else if (strcmp(call, "wait") == 0) {
        MPI_Irecv(data, long_message, MPI_CHAR, lost, 2, MPI_COMM_WORLD, requests);
        is_aborted(MPI_Wait(requests, &status), call);
        expect(requests[0] == MPI_REQUEST_NULL, "the request is still there");
    } else if (strcmp(call, "test") == 0) {
        MPI_Irecv(&value, 1, MPI_INT, lost, 2, MPI_COMM_WORLD, requests);
        int code = MPI_SUCCESS;
        while (flag == 0 && code == MPI_SUCCESS) {
            code = MPI_Test(requests, &flag, &status);
        }
        is_aborted(code, call);
    } else if (strcmp(call, "ssend") == 0) {
        is_aborted(MPI_Ssend(&rank, 1, MPI_INT, lost, 2, MPI_COMM_WORLD), call);
    } else if (strcmp(call, "send") == 0) { /* too much for what lies between the ranks */
        is_aborted(MPI_Send(data, long_message, MPI_CHAR, lost, 2, MPI_COMM_WORLD), call);
    } else if (strcmp(call, "many_sends") == 0) {
        int code = MPI_SUCCESS;
        for (int i = 0; i < 1000000 && code == MPI_SUCCESS; ++i) {
            code = MPI_Send(data, 100, MPI_CHAR, lost, 2, MPI_COMM_WORLD);
        }
        is_aborted(code, call);
    } else if (strcmp(call, "probe") == 0) {
        is_aborted(MPI_Probe(lost, 2, MPI_COMM_WORLD, &status), call);
    } else if (strcmp(call, "iprobe") == 0) {
        int code = MPI_SUCCESS;
        while (flag == 0 && code == MPI_SUCCESS) {
            code = MPI_Iprobe(lost, 2, MPI_COMM_WORLD, &flag, &status);
        }
        is_aborted(code, call);
    } else if (strcmp(call, "freed") == 0) { /* MPI_Finalize doesn't wait for it */
        MPI_Irecv(data, 1, MPI_CHAR, lost, 3, MPI_COMM_WORLD, requests);
        MPI_Request_free(requests);
        is_aborted(MPI_Recv(&value, 1, MPI_INT, lost, 2, MPI_COMM_WORLD, &status), call);
    } else if (strcmp(call, "precv") == 0) {
        MPI_Precv_init(data, 4, 1, MPI_INT, lost, 2, MPI_COMM_WORLD, MPI_INFO_NULL, requests);
        MPI_Start(requests);
        is_aborted(MPI_Wait(requests, &status), call);
        MPI_Request_free(requests);
    } else if (strcmp(call, "psend") == 0) {
        MPI_Psend_init(data, 1, long_message, MPI_CHAR, lost, 2, MPI_COMM_WORLD, MPI_INFO_NULL,
                       requests);
        MPI_Start(requests);
        MPI_Pready(0, requests[0]);
        is_aborted(MPI_Wait(requests, &status), call);
        MPI_Request_free(requests);
    } else if (strcmp(call, "mprobe") == 0) {
        is_aborted(MPI_Mprobe(lost, 2, MPI_COMM_WORLD, &message, &status), call);
    } else {
        return 0;
    }
    return 1;
}

/* Calls that wait for several operations, or for several ranks. */
static void wait_for_several(const char* call) {
    MPI_Request requests[3];
    MPI_Status statuses[3];
    MPI_Status status;
    int value, index;
    if (strcmp(call, "waitall") == 0) {
        const int next = (rank + 1) % lost, before = (rank + lost - 1) % lost;
        int got = -1;
        MPI_Irecv(&value, 1, MPI_INT, lost, 2, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&got, 1, MPI_INT, before, 3, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(&rank, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[2]);
        expect(MPI_Waitall(3, requests, statuses) == MPI_ERR_IN_STATUS, "waitall is no error");
        is_aborted(statuses[0].MPI_ERROR, call);
        expect(statuses[1].MPI_ERROR == MPI_SUCCESS && got == before,
               "a message of others is lost");
    } else if (strcmp(call, "waitany") == 0) {
        MPI_Irecv(&value, 1, MPI_INT, lost, 2, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&value, 1, MPI_INT, lost, 3, MPI_COMM_WORLD, &requests[1]);
        is_aborted(MPI_Waitany(2, requests, &index, &status), call);
        is_aborted(MPI_Waitany(2, requests, &index, &status), call);
    } else if (strcmp(call, "sendrecv") == 0) {
        is_aborted(MPI_Sendrecv(&rank, 1, MPI_INT, rank, 2, &value, 1, MPI_INT, lost, 2,
                                MPI_COMM_WORLD, &status),
                   call);
        MPI_Recv(&value, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, &status);
    } else if (strcmp(call, "persistent") == 0) {
        MPI_Recv_init(&value, 1, MPI_INT, lost, 2, MPI_COMM_WORLD, requests);
        for (int i = 0; i < 2; ++i) {
            MPI_Start(requests);
            is_aborted(MPI_Wait(requests, &status), call);
        }
        MPI_Request_free(requests);
    } else if (strcmp(call, "any_source") == 0) { /* somebody is left who sends */
        if (rank != 0) {
            usleep(300000);
            MPI_Send(&rank, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
            return;
        }
        for (int i = 1; i < lost; ++i) {
            expect(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &status) ==
                       MPI_SUCCESS,
                   "a message of others is an error");
        }
        if (lost == 1) {
            is_aborted(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &status),
                       call);
        }
    } else if (strcmp(call, "ibarrier") == 0) {
        MPI_Ibarrier(MPI_COMM_WORLD, requests);
        int error_class;
        MPI_Error_class(MPI_Wait(requests, &status), &error_class);
        expect(error_class != MPI_SUCCESS, "a barrier with a lost rank is over");
    } else {
        expect(0, "unknown call");
    }
}

int main(int argc, char** argv) {
    MPI_Comm left;
    int sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    lost = size - 1;
    MPI_Comm_split(MPI_COMM_WORLD, rank == lost, 0, &left);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == lost) {
        last_words();
        usleep(argc > 2 ? (useconds_t)atoi(argv[2]) : 0);
        raise(SIGKILL);
    }
    if (!wait_for_one(argv[1])) {
        wait_for_several(argv[1]);
    }
    hear_last_words();
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, left);
    expect(sum == lost * (lost - 1) / 2, "a wrong sum");
    if (rank == 0) {
        printf("all go on\n");
    }
    MPI_Finalize();
    return 0;
}
