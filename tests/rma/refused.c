/* Where the kernel lets no process copy another one's memory (run behind refuse_cma): windows whose
   memory is mapped work; those of the program's own memory fail with a class that says why. */
#include "window.h"

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    const int target = (rank + 1) % size;
    const int64_t value = rank;
    int64_t result = -1;
    for (int flavour = 0; flavour < flavours; flavour++) {
        Window window = window_make(flavour, 4, MPI_COMM_WORLD);
        const int expected =
            flavour == created || flavour == dynamic ? MPI_ERR_UNSUPPORTED_OPERATION : MPI_SUCCESS;
        const MPI_Aint at = window_at(&window, target, 1);
        MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
        MPI_Win_fence(0, window.win);
        int code = MPI_Put(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, window.win);
        CHECK(check_class(code) == expected, "%s: put gave class %d", flavour_names[flavour],
              check_class(code));
        code = MPI_Get(&result, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, window.win);
        CHECK(check_class(code) == expected, "%s: get gave class %d", flavour_names[flavour],
              check_class(code));
        code = MPI_Fetch_and_op(&value, &result, MPI_INT64_T, target, at, MPI_SUM, window.win);
        CHECK(check_class(code) == expected, "%s: fetch_and_op gave class %d",
              flavour_names[flavour], check_class(code));
        /* What a failed operation held is free again. */
        code = MPI_Accumulate(&value, 1, MPI_INT64_T, rank, window_at(&window, rank, 2), 1,
                              MPI_INT64_T, MPI_SUM, window.win);
        CHECK(code == MPI_SUCCESS, "%s: own memory gave class %d", flavour_names[flavour],
              check_class(code));
        MPI_Win_fence(0, window.win);
        CHECK(window.words[2] == rank, "%ld was added", (long)window.words[2]);
        window_free(&window);
    }
    MPI_Finalize();
    return 0;
}
