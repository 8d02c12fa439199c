/*
 * A solver of fixed total work on any number of ranks: the heat equation on a square of points by
 * the five-point stencil, or on a cube by the seven-point one. The square is divided into blocks, a
 * block per rank; each takes the faces of its neighbours before each step (nonblocking, by subarray
 * types), and all sum up the change of the last step every tenth one.
 *
 *   --points 1024    along an edge of the square or cube
 *   --dimensions 2   or 3
 *   --steps 500
 *   --blocks N       as many blocks, in order, instead of one per rank: a rank takes its own one
 *                    after the other, and faces straight from its other blocks, without MPI. What
 *                    division into N blocks costs if ranks cost nothing.
 *
 * The figure is the time of the whole solution, from a barrier to the last sum. The sum of all
 * points, which doesn't depend on the number of ranks but for rounding, is in the line.
 */
#include "bench.h"

#include <stddef.h>

enum { dimensions_most = 3, faces = 2 * dimensions_most, sides = 2 };

/* A box of points in a block, with ghost points around it: plane, row, column. */
typedef struct {
    int first[dimensions_most];
    int count[dimensions_most];
} Box;

typedef struct {
    int extent[dimensions_most]; /* points of its own */
    int begin[dimensions_most];  /* of them, in the whole */
    size_t row, plane;           /* pitches, with the ghosts */
    int neighbour[faces];        /* blocks, -1: none */
    Box inner[faces];            /* points that a neighbour wants */
    Box ghost[faces];            /* where a neighbour's go */
    MPI_Datatype inner_type[faces];
    MPI_Datatype ghost_type[faces];
    double* field[2]; /* by the parity of the step */
} Block;

typedef struct {
    int dimensions, points, steps;
    int blocks;                /* in the whole */
    int grid[dimensions_most]; /* of blocks */
    int first, end;            /* of this rank's */
    Block* own;
    MPI_Request* requests;
} Solver;

static int begin_of(int points, int parts, int part) {
    return (int)((long long)points * part / parts);
}

static int first_block(const Bench* bench, const Solver* solver, int rank) {
    return begin_of(solver->blocks, bench->ranks, rank);
}

/* The rank that has a block. */
static int owner_of(const Bench* bench, const Solver* solver, int block) {
    int rank = (int)((long long)block * bench->ranks / solver->blocks);
    while (first_block(bench, solver, rank + 1) <= block)
        rank++;
    return rank;
}

static size_t place(const Block* block, int plane, int row, int column) {
    return (size_t)plane * block->plane + (size_t)row * block->row + (size_t)column;
}

static void make_block(const Bench* bench, const Solver* solver, int number, Block* block) {
    const int coordinate[dimensions_most] = {number / solver->grid[2] / solver->grid[1],
                                             number / solver->grid[2] % solver->grid[1],
                                             number % solver->grid[2]};
    const int stride[dimensions_most] = {solver->grid[1] * solver->grid[2], solver->grid[2], 1};
    const int flat = dimensions_most - solver->dimensions; /* dimensions that there aren't */
    int with_ghosts[dimensions_most];
    for (int d = 0; d < dimensions_most; d++) {
        const int points = d < flat ? 1 : solver->points;
        block->begin[d] = begin_of(points, solver->grid[d], coordinate[d]);
        block->extent[d] = begin_of(points, solver->grid[d], coordinate[d] + 1) - block->begin[d];
        with_ghosts[d] = block->extent[d] + 2 * (d >= flat);
    }
    for (int face = 0; face < faces; face++) {
        const int d = face / sides;
        const bool behind = face % sides;
        const int there = coordinate[d] + (behind ? 1 : -1);
        block->neighbour[face] = d < flat || there < 0 || there >= solver->grid[d]
                                     ? -1
                                     : number + (behind ? 1 : -1) * stride[d];
        if (block->neighbour[face] < 0)
            continue;
        Box* both[2] = {&block->inner[face], &block->ghost[face]};
        for (int ghost = 0; ghost < 2; ghost++) {
            for (int other = 0; other < dimensions_most; other++) {
                both[ghost]->first[other] = other >= flat;
                both[ghost]->count[other] = block->extent[other];
            }
            both[ghost]->first[d] = behind ? block->extent[d] + ghost : 1 - ghost;
            both[ghost]->count[d] = 1;
            MPI_Datatype* type = ghost ? &block->ghost_type[face] : &block->inner_type[face];
            MPI_Type_create_subarray(dimensions_most, with_ghosts, both[ghost]->count,
                                     both[ghost]->first, MPI_ORDER_C, MPI_DOUBLE, type);
            MPI_Type_commit(type);
        }
    }
    block->row = (size_t)with_ghosts[2];
    block->plane = block->row * (size_t)with_ghosts[1];
    /* Cold edges, and warmth that depends on the place. */
    const size_t bytes = block->plane * (size_t)with_ghosts[0] * sizeof(double);
    for (int parity = 0; parity < 2; parity++) {
        block->field[parity] = (double*)(void*)bench_buffer(bench, bytes);
        memset(block->field[parity], 0, bytes);
    }
    for (int plane = 0; plane < block->extent[0]; plane++)
        for (int row = 0; row < block->extent[1]; row++)
            for (int column = 0; column < block->extent[2]; column++)
                block->field[0][place(block, plane + (flat == 0), row + 1, column + 1)] =
                    (block->begin[2] + column) % 97 + (block->begin[1] + row) % 89 +
                    (block->begin[0] + plane) % 83;
}

/* Into the ghosts behind a face, from a neighbour of the same rank. */
static void copy_face(const Block* from, Block* to, int face, int parity) {
    const Box* there = &from->inner[face ^ 1];
    const Box* here = &to->ghost[face];
    for (int plane = 0; plane < here->count[0]; plane++)
        for (int row = 0; row < here->count[1]; row++) {
            const double* source =
                from->field[parity] +
                place(from, there->first[0] + plane, there->first[1] + row, there->first[2]);
            double* target = to->field[parity] + place(to, here->first[0] + plane,
                                                       here->first[1] + row, here->first[2]);
            for (int column = 0; column < here->count[2]; column++)
                target[column] = source[column];
        }
}

/* The faces that are other ranks', of all own blocks. */
static void exchange(const Bench* bench, const Solver* solver, int parity) {
    int count = 0;
    for (int receives = 1; receives >= 0; receives--)
        for (int number = solver->first; number < solver->end; number++) {
            const Block* block = &solver->own[number - solver->first];
            for (int face = 0; face < faces; face++) {
                const int other = block->neighbour[face];
                if (other < 0 || (other >= solver->first && other < solver->end))
                    continue;
                const int rank =
                    solver->blocks == bench->ranks ? other : owner_of(bench, solver, other);
                MPI_Request* request = &solver->requests[count++];
                /* Tagged with the receiving block and its face. */
                if (receives)
                    MPI_Irecv(block->field[parity], 1, block->ghost_type[face], rank,
                              number * faces + face, MPI_COMM_WORLD, request);
                else
                    MPI_Isend(block->field[parity], 1, block->inner_type[face], rank,
                              other * faces + (face ^ 1), MPI_COMM_WORLD, request);
            }
        }
    MPI_Waitall(count, solver->requests, MPI_STATUSES_IGNORE);
}

static void step_block(const Solver* solver, Block* block, int parity) {
    for (int face = 0; face < faces; face++) {
        const int other = block->neighbour[face];
        if (other >= solver->first && other < solver->end)
            copy_face(&solver->own[other - solver->first], block, face, parity);
    }
    const ptrdiff_t row_pitch = (ptrdiff_t)block->row;
    const ptrdiff_t plane_pitch = (ptrdiff_t)block->plane;
    const bool flat = solver->dimensions == 2;
    for (int plane = 0; plane < block->extent[0]; plane++)
        for (int row = 1; row <= block->extent[1]; row++) {
            const size_t start = place(block, flat ? 0 : plane + 1, row, 1);
            const double* now = block->field[parity] + start;
            double* next = block->field[!parity] + start;
            if (flat)
                for (int column = 0; column < block->extent[2]; column++)
                    next[column] = now[column] + 0.2 * (now[column - 1] + now[column + 1] +
                                                        now[column - row_pitch] +
                                                        now[column + row_pitch] - 4 * now[column]);
            else
                for (int column = 0; column < block->extent[2]; column++)
                    next[column] =
                        now[column] +
                        0.125 * (now[column - 1] + now[column + 1] + now[column - row_pitch] +
                                 now[column + row_pitch] + now[column - plane_pitch] +
                                 now[column + plane_pitch] - 6 * now[column]);
        }
}

/* Of the whole: points now, or how much they differ from the step before. */
static double sum(const Solver* solver, int parity, bool change) {
    double own = 0;
    double all = 0;
    for (int number = solver->first; number < solver->end; number++) {
        const Block* block = &solver->own[number - solver->first];
        for (int plane = 0; plane < block->extent[0]; plane++)
            for (int row = 1; row <= block->extent[1]; row++) {
                const size_t start = place(block, solver->dimensions == 2 ? 0 : plane + 1, row, 1);
                const double* now = block->field[parity] + start;
                const double* before = block->field[!parity] + start;
                for (int column = 0; column < block->extent[2]; column++) {
                    const double difference = now[column] - before[column];
                    own += !change ? now[column] : difference < 0 ? -difference : difference;
                }
            }
    }
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void make_solver(Bench* bench, Solver* solver) {
    solver->dimensions = (int)bench_number(bench, "--dimensions", "2");
    solver->points = (int)bench_number(bench, "--points", "1024");
    solver->steps = (int)bench_number(bench, "--steps", "500");
    solver->blocks = (int)bench_number(bench, "--blocks", "0");
    bench_check_options(bench);
    if (solver->dimensions != 2 && solver->dimensions != 3)
        bench_die(bench, "dimensions are 2 or 3", "");
    if (solver->blocks == 0)
        solver->blocks = bench->ranks;
    if (solver->blocks < bench->ranks)
        bench_die(bench, "fewer blocks than ranks", "");
    solver->grid[0] = 1;
    MPI_Dims_create(solver->blocks, solver->dimensions,
                    &solver->grid[dimensions_most - solver->dimensions]);
    if (solver->points < solver->grid[0] || solver->points < solver->grid[1])
        bench_die(bench, "fewer points than blocks along an edge", "");
    solver->first = first_block(bench, solver, bench->rank);
    solver->end = first_block(bench, solver, bench->rank + 1);
    const size_t count = (size_t)(solver->end - solver->first);
    solver->own = calloc(count, sizeof *solver->own);
    solver->requests = malloc(count * faces * 2 * sizeof(MPI_Request));
    if (solver->own == NULL || solver->requests == NULL)
        bench_die(bench, "no memory for blocks", "");
    for (int number = solver->first; number < solver->end; number++)
        make_block(bench, solver, number, &solver->own[number - solver->first]);
}

static void free_solver(Solver* solver) {
    for (Block* block = solver->own; block < solver->own + (solver->end - solver->first); block++) {
        for (int face = 0; face < faces; face++)
            if (block->neighbour[face] >= 0) {
                MPI_Type_free(&block->inner_type[face]);
                MPI_Type_free(&block->ghost_type[face]);
            }
        free(block->field[0]);
        free(block->field[1]);
    }
    free(solver->own);
    free(solver->requests);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Bench bench;
    Solver solver = {.grid = {0}};
    bench_start(&bench, "stencil", argc, argv);
    make_solver(&bench, &solver);
    bench_find_pinning(&bench);
    exchange(&bench, &solver, 0); /* who talks to whom is known from now on */
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = bench_now();
    for (int step = 0; step < solver.steps; step++) {
        exchange(&bench, &solver, step & 1);
        for (Block* block = solver.own; block < solver.own + (solver.end - solver.first); block++)
            step_block(&solver, block, step & 1);
        if (step % 10 == 9)
            sum(&solver, (step + 1) & 1, true);
    }
    const double total = sum(&solver, solver.steps & 1, false);
    const double taken = bench_now() - start;
    char more[128];
    snprintf(more, sizeof more, "\"dimensions\":%d,\"points\":%d,\"blocks\":%d,\"sum\":%.10g",
             solver.dimensions, solver.points, solver.blocks, total);
    bench_report(&bench, "stencil", "", -1, "s", taken, taken, 1, more);
    free_solver(&solver);
    MPI_Finalize();
    return 0;
}
