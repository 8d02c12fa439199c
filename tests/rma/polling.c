/* Programs that poll memory of a window by one-sided operations, on more ranks than processors: who
   polls lets others run. A token goes round; each rank polls its own memory for it. */
#include "window.h"

enum { rounds = 100, ways = 4 };

static int64_t look(int way, const Window* window, int rank) {
    int64_t value = -1;
    MPI_Request request;
    switch (way) {
    case 0:
        MPI_Get(&value, 1, MPI_INT64_T, rank, window_at(window, rank, 0), 1, MPI_INT64_T,
                window->win);
        MPI_Win_flush(rank, window->win);
        break;
    case 1:
        MPI_Win_sync(window->win);
        value = *(volatile int64_t*)window->words;
        break;
    case 2:
        MPI_Fetch_and_op(NULL, &value, MPI_INT64_T, rank, window_at(window, rank, 0), MPI_NO_OP,
                         window->win);
        MPI_Win_flush_local_all(window->win);
        break;
    default:
        MPI_Rget(&value, 1, MPI_INT64_T, rank, window_at(window, rank, 0), 1, MPI_INT64_T,
                 window->win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return value;
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    for (int flavour = 0; flavour < flavours; flavour++) {
        Window window = window_make(flavour, 1, MPI_COMM_WORLD);
        MPI_Win_lock_all(0, window.win);
        int64_t token = 1;
        for (int way = 0; way < ways; way++) {
            for (int round = 0; round < rounds; round++) {
                if (rank != 0 || round + way > 0) {
                    while ((token = look(way, &window, rank)) !=
                           (way * rounds + round) * size + rank)
                        ;
                    token++;
                }
                const int next = (rank + 1) % size;
                MPI_Accumulate(&token, 1, MPI_INT64_T, next, window_at(&window, next, 0), 1,
                               MPI_INT64_T, MPI_REPLACE, window.win);
                MPI_Win_flush(next, window.win);
            }
        }
        CHECK(token == (int64_t)ways * rounds * size - size + rank + 1, "the token is %ld",
              (long)token);
        MPI_Win_unlock_all(window.win);
        window_free(&window);
    }
    MPI_Finalize();
    return 0;
}
