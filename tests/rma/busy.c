/* A target that computes and does not call MPI delays nobody: each operation and lock on its memory
   ends while it computes. With an argument, rank 1 prints what each took.
   (Not of memory that the kernel lets nobody copy: there targets serve operations.) */
#include "window.h"

enum { kinds = 8 };
static const char* const kind_names[kinds] = {
    "put",  "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap",
    "rput", "lock"};

static const double busy_s = 0.4, limit_s = 0.2; /* in spite of a loaded machine */

static void operate(int kind, const Window* window) {
    const int64_t one = 1;
    int64_t result = 0;
    const MPI_Aint at = window_at(window, 0, 0);
    const MPI_Win win = window->win;
    MPI_Request request;
    switch (kind) {
    case 0:
        MPI_Put(&one, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, win);
        break;
    case 1:
        MPI_Get(&result, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, win);
        break;
    case 2:
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, MPI_SUM, win);
        break;
    case 3:
        MPI_Get_accumulate(&one, 1, MPI_INT64_T, &result, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T,
                           MPI_SUM, win);
        break;
    case 4:
        MPI_Fetch_and_op(&one, &result, MPI_INT64_T, 0, at, MPI_SUM, win);
        break;
    case 5:
        MPI_Compare_and_swap(&one, &result, &result, MPI_INT64_T, 0, at, win);
        break;
    case 6:
        MPI_Rput(&one, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Win_unlock(0, win);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    }
    MPI_Win_flush(0, win);
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    for (int flavour = 0; flavour < flavours; flavour++) {
        Window window = window_make(flavour, 4, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            volatile double sum = 0;
            for (const double end = MPI_Wtime() + busy_s; MPI_Wtime() < end;)
                for (int i = 0; i < 100000; i++)
                    sum += i;
            (void)sum;
        } else if (rank == 1) {
            const double begin = MPI_Wtime();
            double longest = 0;
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
            for (int kind = 0; kind < kinds; kind++) {
                const double before = MPI_Wtime();
                operate(kind, &window);
                const double took = MPI_Wtime() - before;
                longest = took > longest ? took : longest;
                if (argc > 1)
                    printf("%s %s %.2f us\n", flavour_names[flavour], kind_names[kind], took * 1e6);
            }
            MPI_Win_unlock(0, window.win);
            CHECK(MPI_Wtime() - begin < limit_s, "%s: the target was waited for: %.3f s",
                  flavour_names[flavour], longest);
        }
        window_free(&window);
    }
    MPI_Finalize();
    return 0;
}
