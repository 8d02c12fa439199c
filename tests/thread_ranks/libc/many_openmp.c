/* An OpenMP team in each of many ranks. */
#include <omp.h>

#include "expect.h"

int main(int argc, char** argv) {
    int sum = 0, all = 0;
    begin(&argc, &argv);
#pragma omp parallel reduction(+ : sum)
    sum += 1;
    expect(sum == omp_get_max_threads());
    MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(all == world_size * omp_get_max_threads());
    return finish();
}
