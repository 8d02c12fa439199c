/* What a flush has completed at its target comes before each later operation: of two ranks that
   each store into one word, flush, and fetch the other one's, at least one sees the other's store.
 */
#include "window.h"

enum { rounds = 5000, storing = 3, loading = 3, words_apart = 64 };
static const double limit_s = 0.03; /* of each combination */

static void store(int how, const int64_t* value, int word, const Window* window) {
    const MPI_Aint at = window_at(window, 0, word);
    int64_t before;
    if (how == 0)
        MPI_Put(value, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, window->win);
    else if (how == 1)
        MPI_Accumulate(value, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, MPI_REPLACE, window->win);
    else
        MPI_Fetch_and_op(value, &before, MPI_INT64_T, 0, at, MPI_REPLACE, window->win);
    MPI_Win_flush(0, window->win);
}

static int64_t load(int how, int word, const Window* window) {
    const MPI_Aint at = window_at(window, 0, word);
    int64_t found[2] = {-1, -1};
    if (how == 0)
        MPI_Get(found, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, window->win);
    else if (how == 1)
        MPI_Fetch_and_op(NULL, found, MPI_INT64_T, 0, at, MPI_NO_OP, window->win);
    else /* too large for the short way */
        MPI_Get(found, 2, MPI_INT64_T, 0, at, 16, MPI_BYTE, window->win);
    MPI_Win_flush(0, window->win);
    return found[0];
}

/* The round in which both missed the other's store; 0: none. */
static int64_t missed_round(int rank, int how_stored, int how_loaded, const Window* into,
                            const Window* from) {
    const double end = MPI_Wtime() + limit_s;
    for (int64_t round = 1; round <= rounds; round++) {
        int over = MPI_Wtime() > end;
        MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (over)
            break;
        MPI_Barrier(MPI_COMM_WORLD);
        /* One of the two leaves it some instructions before the other, in each round others. */
        for (volatile int64_t i = rank == round % 2 ? round / 2 % 128 : 0; i > 0; i--) {
        }
        int64_t seen = round;
        if (rank < 2) {
            store(how_stored, &round, rank * words_apart, rank == 0 ? into : from);
            seen = load(how_loaded, (1 - rank) * words_apart, rank == 0 ? from : into);
        }
        MPI_Allreduce(MPI_IN_PLACE, &seen, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
        if (seen < round)
            return round;
    }
    return 0;
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    for (int other = 0; other < 2; other++) {
        Window into = window_make(allocated, 2 * words_apart, MPI_COMM_WORLD);
        Window second = window_make(allocated, 2 * words_apart, MPI_COMM_WORLD);
        /* Both ranks' words are in one window, or each in one of its own. */
        const Window* from = other ? &second : &into;
        MPI_Win_lock_all(0, into.win);
        MPI_Win_lock_all(0, second.win);
        for (int stored = 0; stored < storing; stored++)
            for (int loaded = 0; loaded < loading; loaded++) {
                if (rank == 0)
                    into.words[0] = into.words[words_apart] = second.words[0] =
                        second.words[words_apart] = 0;
                MPI_Barrier(MPI_COMM_WORLD);
                const int64_t round = missed_round(rank, stored, loaded, &into, from);
                CHECK(round == 0, "store %d, load %d, %d windows: both missed it in round %ld",
                      stored, loaded, 1 + other, (long)round);
            }
        MPI_Win_unlock_all(second.win);
        MPI_Win_unlock_all(into.win);
        window_free(&second);
        window_free(&into);
    }
    MPI_Finalize();
    return 0;
}
