/* Two profiling tools in a row, libraries that the program is linked to: each sees each call once,
   and of its own rank only, whatever ranks are. */
#include "../point_to_point/check.h"

void calls_of_first(int* sends, int* reductions);
void calls_of_second(int* sends, int* reductions);

static void expect_calls(const char* tool, void (*ask)(int*, int*), int sends, int reductions) {
    int seen_sends = -1;
    int seen_reductions = -1;
    ask(&seen_sends, &seen_reductions);
    CHECK(seen_sends == sends && seen_reductions == reductions,
          "the %s tool has seen %d sends and %d reductions, not %d and %d", tool, seen_sends,
          seen_reductions, sends, reductions);
}

int main(int argc, char** argv) {
    int rank = -1;
    int size = 0;
    int value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Every rank sends another number of messages: rank r sends r of them to rank 0. */
    for (int sent = 0; sent < rank; ++sent) {
        MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    for (int left = rank == 0 ? size * (size - 1) / 2 : 0; left > 0; --left) {
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int turn = 0; turn < 5; ++turn) {
        MPI_Allreduce(&rank, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    CHECK(value == size * (size - 1) / 2, "the sum of the ranks is %d", value);
    expect_calls("first", calls_of_first, rank, 5);
    expect_calls("second", calls_of_second, rank, 5);
    MPI_Finalize();
    return 0;
}
