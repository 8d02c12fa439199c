/* Windows that come and go, and that live at once: neither memory nor descriptors nor mappings
   grow; and what is freed is given back. Argument: how many come and go. */
#include "../support/resources.h"
#include "window.h"

static void come_and_go(int count, int rank, int size) {
    for (int i = 0; i < count; i++) {
        Window window = window_make(i % flavours, 1 + i % 700, MPI_COMM_WORLD);
        const int64_t value = i;
        const int target = (rank + 1) % size;
        MPI_Win_fence(0, window.win);
        MPI_Put(&value, 1, MPI_INT64_T, target, window_at(&window, target, i % 700 / 2), 1,
                MPI_INT64_T, window.win);
        MPI_Win_fence(0, window.win);
        CHECK(window.words[i % 700 / 2] == i, "window %d has %ld", i,
              (long)window.words[i % 700 / 2]);
        window_free(&window);
    }
}

static void live_together(int rank, int size) {
    enum { count = 200 };
    static Window windows[count];
    for (int i = 0; i < count; i++)
        windows[i] = window_make(i % flavours, 10 + i, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        const int64_t value = i + 1;
        const int target = (rank + 1) % size;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, windows[i].win);
        MPI_Put(&value, 1, MPI_INT64_T, target, window_at(&windows[i], target, i), 1, MPI_INT64_T,
                windows[i].win);
        MPI_Win_unlock(target, windows[i].win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        const int k = (i * 77) % count; /* in another order */
        CHECK(windows[k].words[k] == k + 1, "window %d has %ld", k, (long)windows[k].words[k]);
        window_free(&windows[k]);
    }
}

/* Memory of a freed window is the node's again: many large ones in turn fit. */
static void large_in_turn(int rank) {
    enum { bytes = 32 << 20 };
    const long before = file_number("/proc/meminfo", "Shmem:");
    for (int i = 0; i < 20; i++) {
        char* base;
        MPI_Win win;
        MPI_Win_allocate(rank == 0 ? bytes : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        if (rank == 0) {
            CHECK(base[0] == 0 && base[bytes - 1] == 0, "memory of another window is seen");
            memset(base, 1, bytes);
        }
        MPI_Win_free(&win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const long grown = file_number("/proc/meminfo", "Shmem:") - before;
    CHECK(before < 0 || grown < 10 * (bytes >> 10), "shared memory grew by %ld kB", grown);
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    const int count = argc > 1 ? atoi(argv[1]) : 1000;
    come_and_go(count / 10 + 4, rank, size);
    live_together(rank, size);
    MPI_Barrier(MPI_COMM_WORLD);
    const long memory = file_number("/proc/self/status", "VmRSS:");
    const int maps = mappings();
    MPI_Barrier(MPI_COMM_WORLD);
    come_and_go(count, rank, size);
    MPI_Barrier(MPI_COMM_WORLD);
    const long grown = file_number("/proc/self/status", "VmRSS:") - memory;
#ifdef __SANITIZE_ADDRESS__
    const long most = 100000; /* the sanitizer keeps what was freed for a while */
#else
    const long most = 2000;
#endif
    CHECK(grown < most, "%d windows that are gone left %ld kB", count, grown);
    CHECK(mappings() <= maps + 20, "%d mappings became %d", maps, mappings());
    MPI_Barrier(MPI_COMM_WORLD);
    large_in_turn(rank);
    MPI_Finalize();
    return 0;
}
