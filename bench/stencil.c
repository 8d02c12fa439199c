/*
 * A solver of fixed total work on any number of ranks: the heat equation on a square of points, by
 * the five-point stencil. Each rank has a block of the square, takes the edges of its neighbours'
 * blocks before each step (nonblocking, the columns by a vector type), and all sum up the change of
 * the last step every tenth one.
 *
 *   --points 1024   along an edge of the square
 *   --steps 500
 *
 * The figure is the time of the whole solution, from a barrier to the last sum. The sum of all
 * points, which doesn't depend on the number of ranks but for rounding, is in the line.
 */
#include "bench.h"

#include <stddef.h>

typedef struct {
    int columns, rows;         /* of the rank's block */
    int left, right, up, down; /* neighbours, or MPI_PROC_NULL */
    size_t pitch;
    double* now;
    double* next;
    MPI_Datatype column;
} Block;

static int begin_of(int points, int parts, int part) {
    return (int)((long long)points * part / parts);
}

static double* field(const Bench* bench, const Block* block) {
    return (double*)(void*)bench_buffer(bench,
                                        block->pitch * ((size_t)block->rows + 2) * sizeof(double));
}

static Block make_block(const Bench* bench, int points) {
    int across = 1;
    for (int width = 1; width * width <= bench->ranks; width++)
        if (bench->ranks % width == 0)
            across = width;
    const int deep = bench->ranks / across;
    const int x = bench->rank % across;
    const int y = bench->rank / across;
    Block block = {.columns = begin_of(points, across, x + 1) - begin_of(points, across, x),
                   .rows = begin_of(points, deep, y + 1) - begin_of(points, deep, y),
                   .left = x > 0 ? bench->rank - 1 : MPI_PROC_NULL,
                   .right = x + 1 < across ? bench->rank + 1 : MPI_PROC_NULL,
                   .up = y > 0 ? bench->rank - across : MPI_PROC_NULL,
                   .down = y + 1 < deep ? bench->rank + across : MPI_PROC_NULL};
    block.pitch = (size_t)block.columns + 2;
    block.now = field(bench, &block);
    block.next = field(bench, &block);
    /* Cold edges, and warmth that depends on the place in the square. */
    memset(block.now, 0, block.pitch * ((size_t)block.rows + 2) * sizeof(double));
    memset(block.next, 0, block.pitch * ((size_t)block.rows + 2) * sizeof(double));
    for (int row = 0; row < block.rows; row++)
        for (int column = 0; column < block.columns; column++)
            block.now[((size_t)row + 1) * block.pitch + (size_t)column + 1] =
                (begin_of(points, across, x) + column) % 97 +
                (begin_of(points, deep, y) + row) % 89;
    MPI_Type_vector(block.rows, 1, (int)block.pitch, MPI_DOUBLE, &block.column);
    MPI_Type_commit(&block.column);
    return block;
}

static void exchange(const Block* block) {
    double* at = block->now;
    const size_t pitch = block->pitch;
    const size_t below = ((size_t)block->rows + 1) * pitch;
    const int columns = block->columns;
    MPI_Request requests[8];
    MPI_Irecv(at + 1, columns, MPI_DOUBLE, block->up, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(at + below + 1, columns, MPI_DOUBLE, block->down, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(at + pitch, 1, block->column, block->left, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Irecv(at + pitch + columns + 1, 1, block->column, block->right, 3, MPI_COMM_WORLD,
              &requests[3]);
    MPI_Isend(at + below - pitch + 1, columns, MPI_DOUBLE, block->down, 0, MPI_COMM_WORLD,
              &requests[4]);
    MPI_Isend(at + pitch + 1, columns, MPI_DOUBLE, block->up, 1, MPI_COMM_WORLD, &requests[5]);
    MPI_Isend(at + pitch + columns, 1, block->column, block->right, 2, MPI_COMM_WORLD,
              &requests[6]);
    MPI_Isend(at + pitch + 1, 1, block->column, block->left, 3, MPI_COMM_WORLD, &requests[7]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
}

static void step(Block* block) {
    const size_t pitch = block->pitch;
    for (int row = 1; row <= block->rows; row++) {
        const double* now = block->now + (size_t)row * pitch;
        double* next = block->next + (size_t)row * pitch;
        for (int column = 1; column <= block->columns; column++)
            next[column] = now[column] + 0.2 * (now[column - 1] + now[column + 1] +
                                                now[column - (ptrdiff_t)pitch] +
                                                now[column + (ptrdiff_t)pitch] - 4 * now[column]);
    }
    double* former = block->now;
    block->now = block->next;
    block->next = former;
}

/* Of the whole square: points now, or how much they differ from the step before. */
static double sum(const Block* block, bool change) {
    double own = 0;
    double all = 0;
    for (int row = 1; row <= block->rows; row++)
        for (int column = 1; column <= block->columns; column++) {
            const size_t at = (size_t)row * block->pitch + (size_t)column;
            const double difference = block->now[at] - block->next[at];
            own += !change ? block->now[at] : difference < 0 ? -difference : difference;
        }
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Bench bench;
    bench_start(&bench, "stencil", argc, argv);
    const int points = (int)bench_number(&bench, "--points", "1024");
    const int steps = (int)bench_number(&bench, "--steps", "500");
    bench_check_options(&bench);
    bench_find_pinning(&bench);
    Block block = make_block(&bench, points);
    exchange(&block); /* who talks to whom is known from now on */
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = bench_now();
    for (int i = 1; i <= steps; i++) {
        exchange(&block);
        step(&block);
        if (i % 10 == 0)
            sum(&block, true);
    }
    const double total = sum(&block, false);
    const double taken = bench_now() - start;
    char more[64];
    snprintf(more, sizeof more, "\"sum\":%.10g", total);
    bench_report(&bench, "stencil", "", -1, "s", taken, taken, 1, more);
    MPI_Type_free(&block.column);
    free(block.now);
    free(block.next);
    MPI_Finalize();
    return 0;
}
