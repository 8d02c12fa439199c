/* Where the kernel lets no process copy another one's memory (run behind refuse_cma): operations on
   windows of the program's own memory go by messages, of any size and layout, and say no when their
   place is outside of the window. */
#include "window.h"

enum { many = 200000 }; /* words: several requests */

static void check_large(const Window* window, int target, int rank) {
    int64_t* words = malloc(many * sizeof *words);
    MPI_Datatype spread;
    MPI_Type_vector(many / 2, 1, 2, MPI_INT64_T, &spread);
    MPI_Type_commit(&spread);
    for (int i = 0; i < many; i++)
        words[i] = i + rank;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window->win);
    MPI_Put(words, many / 2, MPI_INT64_T, target, window_at(window, target, 0), 1, spread,
            window->win);
    MPI_Accumulate(words, 1, spread, target, window_at(window, target, 1), 1, spread, MPI_REPLACE,
                   window->win);
    memset(words, 0, many * sizeof *words);
    MPI_Get(words, many, MPI_INT64_T, target, window_at(window, target, 0), many, MPI_INT64_T,
            window->win);
    MPI_Win_unlock(target, window->win);
    for (int i = 0; i < many; i++) {
        int64_t expected = (i % 2 == 0 ? i / 2 : i - 1) + rank;
        if (words[i] != expected) {
            CHECK(0, "%s: word %d is %ld, not %ld", flavour_names[window->flavour], i,
                  (long)words[i], (long)expected);
            break;
        }
    }
    MPI_Type_free(&spread);
    free(words);
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    const int target = (rank + 1) % size, before = (rank + size - 1) % size;
    const int64_t value = rank + 1;
    for (int flavour = 0; flavour < flavours; flavour++) {
        Window window = window_make(flavour, many, MPI_COMM_WORLD);
        const MPI_Aint at = window_at(&window, target, 1);
        int64_t result = -1;
        MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
        MPI_Win_fence(0, window.win);
        CHECK(MPI_Put(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, window.win) == 0,
              "%s: put", flavour_names[flavour]);
        CHECK(MPI_Fetch_and_op(&value, &result, MPI_INT64_T, target, at, MPI_SUM, window.win) == 0,
              "%s: fetch_and_op", flavour_names[flavour]);
        CHECK(result == value, "%s: %ld was there", flavour_names[flavour], (long)result);
        MPI_Win_fence(0, window.win);
        CHECK(window.words[1] == 2 * (before + 1), "%s: %ld was put", flavour_names[flavour],
              (long)window.words[1]);
        if (flavour == dynamic) {
            int code = MPI_Put(&value, 1, MPI_INT64_T, target, window_at(&window, target, many), 1,
                               MPI_INT64_T, window.win);
            CHECK(check_class(code) == MPI_ERR_RMA_RANGE, "outside gave class %d",
                  check_class(code));
        }
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
        check_large(&window, target, rank);
        window_free(&window);
    }
    MPI_Finalize();
    return 0;
}
