/* Locks of windows: exclusive ones exclude, shared ones don't, nobody starves, locks of several
   targets and of all don't wait for each other in a ring. */
#include "window.h"

static int rank, size;

static void exclusive(const Window* window, int rounds) {
    for (int i = 0; i < rounds; i++) {
        int64_t seen[2];
        const int target = i % size;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window->win);
        MPI_Get(seen, 2, MPI_INT64_T, target, window_at(window, target, 0), 2, MPI_INT64_T,
                window->win);
        MPI_Win_flush(target, window->win);
        CHECK(seen[0] == seen[1], "two words of one lock differ: %ld, %ld", (long)seen[0],
              (long)seen[1]);
        seen[0]++;
        MPI_Put(&seen[0], 1, MPI_INT64_T, target, window_at(window, target, 0), 1, MPI_INT64_T,
                window->win);
        MPI_Win_flush(target, window->win);
        MPI_Put(&seen[0], 1, MPI_INT64_T, target, window_at(window, target, 1), 1, MPI_INT64_T,
                window->win);
        MPI_Win_unlock(target, window->win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t sum = 0;
    MPI_Allreduce(window->words, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == (int64_t)rounds * size, "%ld increments of %ld", (long)sum, (long)rounds * size);
    MPI_Barrier(MPI_COMM_WORLD);
    window->words[0] = window->words[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* All hold the lock of rank 0 at once. */
static void together(const Window* window) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window->win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock(0, window->win);
    MPI_Win_lock_all(0, window->win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(window->win);
}

/* Readers and writers, locks of single targets and of all. */
static void mixed(const Window* window, int rounds) {
    unsigned state = (unsigned)rank * 77 + 1;
    for (int i = 0; i < rounds; i++) {
        state = state * 1103515245u + 12345u;
        const int way = (int)(state >> 16) % 3;
        const int target = (int)(state >> 20) % size;
        if (way == 0) {
            MPI_Win_lock_all(0, window->win);
        } else {
            MPI_Win_lock(way == 1 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, window->win);
        }
        int64_t seen[2];
        MPI_Get(seen, 2, MPI_INT64_T, target, window_at(window, target, 0), 2, MPI_INT64_T,
                window->win);
        MPI_Win_flush(target, window->win);
        CHECK(seen[0] == seen[1], "two words of one lock differ: %ld, %ld", (long)seen[0],
              (long)seen[1]);
        if (way == 2) {
            seen[0]++;
            MPI_Put(&seen[0], 1, MPI_INT64_T, target, window_at(window, target, 1), 1, MPI_INT64_T,
                    window->win);
            MPI_Win_flush(target, window->win);
            MPI_Put(&seen[0], 1, MPI_INT64_T, target, window_at(window, target, 0), 1, MPI_INT64_T,
                    window->win);
        }
        if (way == 0) {
            MPI_Win_unlock_all(window->win);
        } else {
            MPI_Win_unlock(target, window->win);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    window->words[0] = window->words[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 holds two exclusive locks, the second taken while others want all. */
static void two_against_all(const Window* window, int rounds) {
    for (int i = 0; i < rounds && size > 1; i++) {
        if (rank == 0) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window->win);
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window->win);
            MPI_Win_unlock(1, window->win);
            MPI_Win_unlock(0, window->win);
        } else {
            MPI_Win_lock_all(0, window->win);
            MPI_Win_unlock_all(window->win);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Who waits for a lock takes part in messages: rank 0 sends what rank 1 waits for. */
static void waits_make_progress(const Window* window) {
    enum { bytes = 4 << 20 };
    if (size < 2)
        return;
    char* data = calloc(1, bytes);
    if (rank == 0) {
        MPI_Request request;
        MPI_Barrier(MPI_COMM_WORLD); /* rank 1 has the lock */
        MPI_Isend(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window->win);
        MPI_Win_unlock(0, window->win);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window->win);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_unlock(0, window->win);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(data);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    for (int flavour = 0; flavour < flavours; flavour++) {
        Window window = window_make(flavour, 4, MPI_COMM_WORLD);
        exclusive(&window, 300);
        together(&window);
        mixed(&window, 300);
        two_against_all(&window, 300);
        waits_make_progress(&window);
        window_free(&window);
    }
    MPI_Finalize();
    return 0;
}
