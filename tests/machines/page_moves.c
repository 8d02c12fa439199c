/* Fibre ranks whose pages follow them, or stay: the kernel is asked where they are, before and
   after a balancer has moved ranks to other NUMA nodes. mpiexec --ranks fibres -n N --balance
   greedy --balance-at hints --no-stealing
               --migrate-pages page_moves follow
       … without --migrate-pages: page_moves stay */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <warren/ranks.h>

enum { page = 4096, blocks = 3000, block = 200, large = 1 << 20 };

static char zeros[64 * page];
static char values[32 * page] = {1};
static char* small[blocks];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int here(void) {
    unsigned node = 0;
    getcpu(NULL, &node);
    return (int)node;
}

/* Of the pages of a stretch of memory that are present: how many are not on this node. */
static int elsewhere(const void* begin, size_t bytes, int node) {
    enum { together = 256 };
    const size_t pages = (bytes + page - 1) / page;
    int count = 0;
    for (size_t done = 0; done < pages; done += together) {
        void* addresses[together];
        int status[together];
        const size_t some = pages - done < together ? pages - done : together;
        for (size_t at = 0; at < some; ++at) {
            addresses[at] = (void*)(((size_t)begin + (done + at) * page) & ~(size_t)(page - 1));
        }
        if (syscall(SYS_move_pages, 0, some, addresses, NULL, status, 0) != 0) {
            perror("move_pages");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        for (size_t at = 0; at < some; ++at) {
            count += status[at] >= 0 && status[at] != node;
        }
    }
    return count;
}

struct Where {
    int stack, zeros, values, small, large;
};

static int sum(const struct Where* where) {
    return where->stack + where->zeros + where->values + where->small + where->large;
}

static struct Where look(const char* stack, const char* big, int node) {
    struct Where where = {elsewhere(stack, 64 * page, node), elsewhere(zeros, sizeof zeros, node),
                          elsewhere(values, sizeof values, node), 0, elsewhere(big, large, node)};
    for (int index = 0; index < blocks; index += 20) {
        where.small += elsewhere(small[index], block, node);
    }
    return where;
}

/* They may take their time, those of one call of the kernel's after those of another. Who waits
   asks about a page of each: 32 ranks that ask about all their pages keep the emulated processors
   from moving them. */
static struct Where wait_for(const char* stack, const char* big, int node) {
    for (int turn = 0; turn < 200; ++turn) {
        if (elsewhere(big, 1, node) == 0 && elsewhere(stack, 1, node) == 0 &&
            elsewhere(zeros, 1, node) == 0) {
            break;
        }
        usleep(200000);
    }
    struct Where where = look(stack, big, node);
    for (int turn = 0; turn < 20 && sum(&where) != 0; ++turn) {
        usleep(500000);
        where = look(stack, big, node);
    }
    return where;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int follow = argc > 1 && strcmp(argv[1], "follow") == 0;
    char stack[64 * page];
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int first = here();
    memset(stack, rank, sizeof stack);
    memset(zeros, rank, sizeof zeros);
    for (size_t at = 0; at < sizeof values; at += page) {
        values[at] = (char)rank;
    }
    for (int index = 0; index < blocks; ++index) {
        small[index] = malloc(block);
        memset(small[index], rank, block);
    }
    char* big = malloc(large);
    memset(big, rank, large);
    const struct Where before = look(stack, big, first);
    if (sum(&before) != 0) {
        printf("rank %d: not on its first node %d: %d of the stack, %d and %d variables, %d small "
               "blocks, %d of a large one\n",
               rank, first, before.stack, before.zeros, before.values, before.small, before.large);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* The first quarter has most to do. */
    const double end = now() + (rank < ranks / 4 ? 0.12 : 0.01);
    while (now() < end) {
    }
    warren_rank_migrate();
    MPI_Barrier(MPI_COMM_WORLD);
    const int node = here();
    const int moved = node != first;
    struct Where after = moved && follow ? wait_for(stack, big, node) : look(stack, big, node);
    int wrong = moved && follow && sum(&after) != 0;
    if (moved && !follow) {
        after = look(stack, big, first);
        wrong = after.zeros != 0 || after.values != 0 || after.small != 0 || after.large != 0;
    }
    for (int index = 0; index < blocks; ++index) { /* what they hold moves with them */
        wrong |= small[index][block - 1] != (char)rank;
    }
    wrong |= zeros[rank] != (char)rank || big[large - 1] != (char)rank;
    if (wrong) {
        printf("rank %d went from node %d to %d; pages elsewhere: %d of the stack, %d and %d "
               "variables, %d small blocks, %d of a large one\n",
               rank, first, node, after.stack, after.zeros, after.values, after.small, after.large);
    }
    const int mine[2] = {moved, wrong};
    int all[2];
    MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d of %d ranks went to another node, with %s\n", all[0], ranks,
               all[1] != 0 ? "WRONG PAGES"
               : follow    ? "all their pages"
                           : "none of their pages");
    }
    MPI_Finalize();
    return all[0] == 0 || all[1] != 0;
}
