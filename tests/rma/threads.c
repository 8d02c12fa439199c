/* Several threads of each rank use one window at once: sums under one epoch, and locks of different
   targets, for which more than one thread of a rank waits.

       threads [ROUNDS]     (a multiple of 4)
*/
#include <pthread.h>
#include <stdlib.h>

#include "window.h"

enum { threads = 3 };

static int rank, size, rounds = 300;
static Window window;

static void* add(void* argument) {
    (void)argument;
    for (int i = 0; i < rounds; i++) {
        const int64_t one = 1;
        int64_t before;
        const int target = i % size;
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, window_at(&window, target, 0), MPI_SUM,
                         window.win);
        MPI_Accumulate(&one, 1, MPI_INT64_T, target, window_at(&window, target, 1), 1, MPI_INT64_T,
                       MPI_SUM, window.win);
        MPI_Win_flush(target, window.win);
    }
    return NULL;
}

/* Thread t locks only targets t, t + threads, …, so no two threads of a rank lock the same. */
static void* lock(void* argument) {
    const int first = *(int*)argument;
    for (int i = 0; i < rounds; i++) {
        for (int target = first; target < size; target += threads) {
            int64_t value;
            MPI_Win_lock(i % 4 == 3 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, window.win);
            MPI_Get(&value, 1, MPI_INT64_T, target, window_at(&window, target, 2), 1, MPI_INT64_T,
                    window.win);
            MPI_Win_flush(target, window.win);
            value++;
            if (i % 4 != 3)
                MPI_Put(&value, 1, MPI_INT64_T, target, window_at(&window, target, 2), 1,
                        MPI_INT64_T, window.win);
            MPI_Win_unlock(target, window.win);
        }
    }
    return NULL;
}

static void run(void* (*work)(void*)) {
    pthread_t made[threads];
    int numbers[threads];
    for (int t = 0; t < threads; t++) {
        numbers[t] = t;
        pthread_create(&made[t], NULL, work, &numbers[t]);
    }
    for (int t = 0; t < threads; t++)
        pthread_join(made[t], NULL);
}

int main(int argc, char** argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    check_ranks(&rank, &size, 1);
    CHECK(level == MPI_THREAD_MULTIPLE, "level %d", level);
    if (argc > 1)
        rounds = atoi(argv[1]);
    for (int flavour = 0; flavour < flavours; flavour++) {
        window = window_make(flavour, 8, MPI_COMM_WORLD);
        MPI_Win_lock_all(0, window.win);
        run(add);
        MPI_Win_unlock_all(window.win);
        MPI_Barrier(MPI_COMM_WORLD);
        int64_t sums[2] = {0, 0};
        MPI_Allreduce(window.words, sums, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        const int64_t all = (int64_t)size * threads * rounds;
        CHECK(sums[0] == all && sums[1] == all, "%ld and %ld of %ld", (long)sums[0], (long)sums[1],
              (long)all);
        run(lock);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(window.words[2] == (int64_t)size * rounds / 4 * 3, "%ld under the lock",
              (long)window.words[2]);
        MPI_Barrier(MPI_COMM_WORLD);
        window_free(&window);
    }
    MPI_Finalize();
    return 0;
}
