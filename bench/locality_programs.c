// Programs that bench/locality_overhead records, with 2 threads that each have their own part:
//     locality_programs stencil [STEPS]     7 points of 256³ numbers, 2 × 128 MiB, from memory
//     locality_programs matmul [TIMES]      48 × 48 numbers, which stay in the first cache
//     locality_programs branches [N]        Fibonacci number N by two calls each: short blocks

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { threads = 2, points = 256, rows = 48 };

static long times;
static double* grids[2];
static pthread_barrier_t barrier;

static size_t at(int z, int y, int x) {
    return ((size_t)z * points + (size_t)y) * points + (size_t)x;
}

static void sweep(const double* restrict from, double* restrict to, int begin, int end) {
    for (int z = begin; z < end; ++z) {
        for (int y = 1; y < points - 1; ++y) {
            for (int x = 1; x < points - 1; ++x) {
                to[at(z, y, x)] =
                    from[at(z, y, x)] +
                    0.1 * (from[at(z - 1, y, x)] + from[at(z + 1, y, x)] + from[at(z, y - 1, x)] +
                           from[at(z, y + 1, x)] + from[at(z, y, x - 1)] + from[at(z, y, x + 1)] -
                           6 * from[at(z, y, x)]);
            }
        }
    }
}

static void* stencil(void* argument) {
    const int self = *(const int*)argument;
    const int begin = self == 0 ? 1 : points / 2;
    const int end = self == 0 ? points / 2 : points - 1;
    for (int z = self * points / threads; z < (self + 1) * points / threads; ++z) {
        for (size_t index = at(z, 0, 0); index < at(z + 1, 0, 0); ++index) {
            grids[0][index] = (double)(index % 17);
            grids[1][index] = 0;
        }
    }
    for (long step = 0; step < times; ++step) {
        pthread_barrier_wait(&barrier);
        sweep(grids[step % 2], grids[(step + 1) % 2], begin, end);
    }
    return NULL;
}

static void multiply(const double* restrict left, const double* restrict right,
                     double* restrict product) {
    for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < rows; ++column) {
            double sum = 0;
            for (int index = 0; index < rows; ++index) {
                sum += left[row * rows + index] * right[index * rows + column];
            }
            product[row * rows + column] = sum;
        }
    }
}

static void* matmul(void* argument) {
    double* const matrices = malloc(3 * rows * rows * sizeof(double));
    if (matrices == NULL) {
        abort();
    }
    for (int index = 0; index < 3 * rows * rows; ++index) {
        matrices[index] = index % 13 + *(const int*)argument;
    }
    double* const left = matrices;
    double* const right = matrices + rows * rows;
    double* const product = right + rows * rows;
    for (long time = 0; time < times; ++time) {
        multiply(left, right, product);
        left[time % (rows * rows)] = product[0] / 1e6;
    }
    grids[*(const int*)argument] = matrices;
    return NULL;
}

__attribute__((noinline)) static long fibonacci(long number) {
    return number < 2 ? number : fibonacci(number - 1) + fibonacci(number - 2);
}

static void* branches(void* argument) {
    double* const result = malloc(2 * sizeof(double));
    if (result == NULL) {
        abort();
    }
    result[0] = result[1] = (double)fibonacci(times);
    grids[*(const int*)argument] = result;
    return NULL;
}

int main(int count, char** words) {
    const char* const what = count > 1 ? words[1] : "";
    const int is_stencil = strcmp(what, "stencil") == 0;
    const int is_branches = strcmp(what, "branches") == 0;
    if (!is_stencil && !is_branches && strcmp(what, "matmul") != 0) {
        fputs("usage: locality_programs stencil|matmul|branches [TIMES]\n", stderr);
        return 2;
    }
    times = count > 2 ? atol(words[2]) : is_stencil ? 60 : is_branches ? 38 : 15000;
    if (is_stencil) {
        for (int grid = 0; grid < 2; ++grid) {
            grids[grid] = malloc(at(points, 0, 0) * sizeof(double));
            if (grids[grid] == NULL) {
                return 1;
            }
        }
    }
    pthread_barrier_init(&barrier, NULL, threads);
    pthread_t ids[threads];
    int numbers[threads];
    for (int thread = 0; thread < threads; ++thread) {
        numbers[thread] = thread;
        pthread_create(&ids[thread], NULL,
                       is_stencil    ? stencil
                       : is_branches ? branches
                                     : matmul,
                       &numbers[thread]);
    }
    for (int thread = 0; thread < threads; ++thread) {
        pthread_join(ids[thread], NULL);
    }
    printf("%g\n", grids[0][1] + grids[1][1]);
    return 0;
}
