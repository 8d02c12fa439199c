/* Ranks whose work differs: what balancing them is worth.

       mpiexec --ranks fibres -n N imbalance [lambda=200] [moves=0] [steps=200] [work=50]
   [workers=2] [hint=0]

   Each step is work, an exchange with both neighbours, and an allreduce. A bump, half as wide as
   all ranks, makes the work of its middle `lambda` per cent more than the mean; with moves=K it
   goes once round in K steps, as the refined part of an adaptive mesh does. `work`: microseconds of
   a step's mean rank; `workers`: that share all work in the ideal case. With hint=1 ranks call
   warren_rank_migrate between steps. Prints in one line: the time; the ideal, which is what all
   ranks' work took, as it was done, shared by the workers (so a machine that is slower now than a
   second ago makes both longer; nothing else than arithmetic in registers is in it); the ideal at
   the best speed that one rank alone had before; and the largest load above the mean. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warren/ranks.h"

static double option(int argc, char** argv, const char* name, double value) {
    const size_t length = strlen(name);
    for (int i = 1; i < argc; ++i) {
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') {
            value = atof(argv[i] + length + 1);
        }
    }
    return value;
}

/* Instructions, not time: whoever else has the processor meanwhile is not counted. */
static double turn(double turns) {
    double value = 1.0;
    for (long i = 0, end = (long)turns; i < end; ++i) {
        value = value * 0.999999 + 1e-6;
        __asm__ volatile("" : "+x"(value));
    }
    return value;
}

/* Of a bump in the middle of `middle`, at this rank: 1 there, 0 at half its width. */
static double bump(double rank, double middle, int ranks) {
    double distance = fabs(rank - middle);
    distance = distance > ranks / 2.0 ? ranks - distance : distance;
    const double half = ranks / 4.0 > 1 ? ranks / 4.0 : 1;
    return distance >= half ? 0 : pow(cos(distance / half * acos(0.0)), 2);
}

/* The work of a rank, 1 on average: so high that the middle's is (1 + lambda). */
static double weight(int rank, double middle, int ranks, double lambda) {
    double mean = 0;
    for (int other = 0; other < ranks; ++other) {
        mean += bump(other, middle, ranks) / ranks;
    }
    const double height = lambda / (1 - (1 + lambda) * mean);
    return (1 + height * bump(rank, middle, ranks)) / (1 + height * mean);
}

/* How many turns take a microsecond: by one rank, while all others wait; the quickest of some. */
static double measure_turns(int rank) {
    double turns_per_us = 0;
    if (rank == 0) {
        for (int attempt = 0; attempt < 20; ++attempt) {
            const double begin = MPI_Wtime();
            turn(1e6);
            const double speed = 1 / (MPI_Wtime() - begin);
            turns_per_us = speed > turns_per_us ? speed : turns_per_us;
        }
    }
    MPI_Bcast(&turns_per_us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return turns_per_us;
}

/* What each step's work is, before the clock runs: it takes longer the more ranks there are. After
   `moves` steps all is as in the beginning. */
static double* make_shares(int turns, int moves, int rank, int ranks, double lambda) {
    double* const shares = malloc((size_t)turns * sizeof(double));
    if (shares == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int step = 0; step < turns; ++step) {
        const double middle =
            fmod(ranks / 4.0 + (moves > 0 ? (double)step * ranks / moves : 0), ranks);
        shares[step] = weight(rank, middle, ranks, lambda);
    }
    return shares;
}

static void report(int rank, int ranks, int workers, double time, double done, double worked) {
    double all = 0, most = 0, all_worked = 0;
    MPI_Reduce(&done, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&worked, &all_worked, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&done, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        const double ideal = all_worked / workers;
        const double quickest = all * 1e-6 / workers;
        printf("ranks %d time %.4f ideal %.4f ratio %.3f quickest %.4f ratio %.3f lambda %.1f\n",
               ranks, time, ideal, time / ideal, quickest, time / quickest,
               100 * (most * ranks / all - 1));
    }
}

int main(int argc, char** argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const double lambda = option(argc, argv, "lambda", 200) / 100;
    const int moves = (int)option(argc, argv, "moves", 0);
    const int steps = (int)option(argc, argv, "steps", 200);
    const double work_us = option(argc, argv, "work", 50);
    const int workers = (int)option(argc, argv, "workers", 2);
    const int hint = (int)option(argc, argv, "hint", 0);
    if (ranks < 4 || lambda < 0 || (1 + lambda) / 4 >= 1) {
        if (rank == 0) {
            fprintf(stderr, "imbalance: needs 4 ranks, and lambda from 0 to 299\n");
        }
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const double turns_per_us = measure_turns(rank);
    const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    double halo[128] = {0}, from_left[128], from_right[128], sum = 0;
    double done = 0, worked = 0; /* microseconds as asked for; seconds as they passed */
    const int turns = moves > 0 && steps > 0 ? (moves < steps ? moves : steps) : 1;
    double* const shares = make_shares(turns, moves, rank, ranks, lambda);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int step = 0; step < steps; ++step) {
        const double share = shares[step % turns];
        const double start = MPI_Wtime();
        halo[0] = turn(share * work_us * turns_per_us);
        worked += MPI_Wtime() - start;
        done += share * work_us;
        MPI_Sendrecv(halo, 128, MPI_DOUBLE, left, 0, from_right, 128, MPI_DOUBLE, right, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(halo, 128, MPI_DOUBLE, right, 1, from_left, 128, MPI_DOUBLE, left, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const double own = halo[0] + from_left[0] + from_right[0];
        if (hint) {
            warren_rank_migrate();
        }
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    const double time = MPI_Wtime() - begin;
    report(rank, ranks, workers, time, done, worked);
    free(shares);
    MPI_Finalize();
    return 0;
}
