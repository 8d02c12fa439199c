/*
 * Calls that translate most in the libraries of other ABIs: two short queries, a message to
 * oneself, 64 requests with statuses, and the half round trip of 8 B. Built for each ABI from this
 * source; `abi_cost` runs them in turn and compares.
 *
 * Prints one line per figure: name, nanoseconds of the best batch. `calls NAME N` makes N calls of
 * one kind and prints nothing, for tools that count instructions.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { batches = 60, many = 64, tag = 3 };

static int rank;
static int sink;

static void comm_rank(void) {
    MPI_Comm_rank(MPI_COMM_WORLD, &sink);
}

static void type_size(void) {
    MPI_Type_size(MPI_DOUBLE, &sink);
}

static void message(void) {
    double in;
    double out = 1;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Irecv(&in, 1, MPI_DOUBLE, rank, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&out, 1, MPI_DOUBLE, rank, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[1], &status);
    MPI_Wait(&requests[0], &status);
}

static void waitall(void) {
    static double in[many / 2];
    static double out[many / 2];
    MPI_Request requests[many];
    MPI_Status statuses[many];
    for (int i = 0; i < many / 2; ++i) {
        MPI_Irecv(&in[i], 1, MPI_DOUBLE, rank, tag, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(&out[i], 1, MPI_DOUBLE, rank, tag, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    MPI_Waitall(many, requests, statuses);
}

static void half_round_trip(void) {
    double value = 1;
    if (rank == 0) {
        MPI_Send(&value, 1, MPI_DOUBLE, 1, tag, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&value, 1, MPI_DOUBLE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0) {
        MPI_Recv(&value, 1, MPI_DOUBLE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&value, 1, MPI_DOUBLE, 0, tag, MPI_COMM_WORLD);
    }
}

static const struct Kind {
    const char* name;
    void (*call)(void);
    int repetitions; /* in a batch */
    int per_call;    /* what a call does so many times */
    int together;    /* both ranks take part */
} kinds[] = {
    {"Comm_rank", comm_rank, 20000, 1, 0},
    {"Type_size", type_size, 20000, 1, 0},
    {"Irecv+Isend+Wait", message, 2000, 1, 0},
    {"Waitall(64)", waitall, 100, 1, 0},
    {"half_round_trip", half_round_trip, 2000, 2, 1},
};
enum { number_of_kinds = sizeof kinds / sizeof kinds[0] };

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static double best_batch_ns(const struct Kind* kind) {
    double best = 1e18;
    for (int batch = 0; batch < batches; ++batch) {
        const double begin = now_ns();
        for (int i = 0; i < kind->repetitions; ++i) {
            kind->call();
        }
        const double time = (now_ns() - begin) / kind->repetitions / kind->per_call;
        best = time < best ? time : best;
    }
    return best;
}

int main(int argc, char** argv) {
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int known = argc != 3;
    for (int k = 0; k < number_of_kinds; ++k) {
        const struct Kind* kind = &kinds[k];
        const int takes_part = kind->together ? ranks == 2 : rank == 0;
        if (argc == 3 && strcmp(argv[1], kind->name) == 0) {
            known = 1;
            for (int i = atoi(argv[2]); takes_part && i > 0; --i) {
                kind->call();
            }
        } else if (argc != 3 && takes_part) {
            const double best = best_batch_ns(kind);
            if (rank == 0) {
                printf("%s %.2f\n", kind->name, best);
            }
        }
    }
    MPI_Finalize();
    return known ? 0 : 2;
}
