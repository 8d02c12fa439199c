/* Put and get in windows of every flavour, under every synchronisation: sizes, derived types on
   both sides, all targets; the forms with requests and with large counts. */
#include "window.h"

enum { by_fence, by_lock, by_lock_all, by_groups, synchronisations };
enum { words = 40000 };

static int rank, size;

/* Opens an epoch in which all ranks access all; `target`: or only this one. */
static void begin(const Window* window, int how, int target, MPI_Group all) {
    switch (how) {
    case by_fence:
        MPI_Win_fence(0, window->win);
        break;
    case by_lock:
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window->win);
        break;
    case by_lock_all:
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(0, window->win);
        break;
    default:
        MPI_Win_post(all, 0, window->win);
        MPI_Win_start(all, 0, window->win);
    }
}

static void end(const Window* window, int how, int target) {
    switch (how) {
    case by_fence:
        MPI_Win_fence(0, window->win);
        break;
    case by_lock:
        MPI_Win_unlock(target, window->win);
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case by_lock_all:
        MPI_Win_flush_local(target, window->win);
        MPI_Win_flush_all(window->win);
        MPI_Win_unlock_all(window->win);
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    default:
        MPI_Win_complete(window->win);
        MPI_Win_wait(window->win);
        MPI_Barrier(MPI_COMM_WORLD); /* the words are read by their owner next */
    }
}

static int64_t value(int origin, int round, int i) {
    return ((int64_t)origin << 40) + ((int64_t)round << 20) + i;
}

/* Every rank puts into the one `distance` further, then gets that back. */
static void exchange(const Window* window, int how, int distance, int count, MPI_Group all) {
    static int64_t *sent, *received;
    if (sent == NULL) {
        sent = malloc(words * sizeof *sent);
        received = malloc(words * sizeof *received);
    }
    const int target = (rank + distance) % size;
    const int source = (rank + size - distance) % size;
    for (int i = 0; i < count; i++) {
        sent[i] = value(rank, how, i);
        received[i] = -1;
    }
    begin(window, how, target, all);
    MPI_Put(sent, count, MPI_INT64_T, target, window_at(window, target, 3), count, MPI_INT64_T,
            window->win);
    end(window, how, target);
    for (int i = 0; i < count; i++)
        CHECK(window->words[3 + i] == value(source, how, i), "%s, way %d: word %d of %d is %lx",
              flavour_names[window->flavour], how, i, count, (long)window->words[3 + i]);
    CHECK(window->words[2] == 0 && window->words[3 + count] == 0, "words around it changed");
    begin(window, how, target, all);
    MPI_Get(received, count, MPI_INT64_T, target, window_at(window, target, 3), count, MPI_INT64_T,
            window->win);
    end(window, how, target);
    for (int i = 0; i < count; i++)
        CHECK(received[i] == value(rank, how, i), "%s, way %d: got %lx at %d of %d",
              flavour_names[window->flavour], how, (long)received[i], i, count);
    for (int i = 0; i < count; i++)
        window->words[3 + i] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Every second word here, every third there; with requests, one put split in two. */
static void with_gaps(const Window* window, int count) {
    MPI_Datatype here, there;
    MPI_Type_vector(count, 1, 2, MPI_INT64_T, &here);
    MPI_Type_vector(count, 1, 3, MPI_INT64_T, &there);
    MPI_Type_commit(&here);
    MPI_Type_commit(&there);
    int64_t* own = malloc((size_t)count * 2 * sizeof *own);
    for (int i = 0; i < 2 * count; i++)
        own[i] = value(rank, 9, i);
    const int target = (rank + 1) % size, source = (rank + size - 1) % size;
    MPI_Request request;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window->win);
    MPI_Rput_c(own, 1, here, target, window_at(window, target, 5), 1, there, window->win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(target, window->win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3 * count; i++)
        CHECK(window->words[5 + i] == (i % 3 == 0 ? value(source, 9, i / 3 * 2) : 0),
              "word %d is %lx", i, (long)window->words[5 + i]);
    for (int i = 0; i < 2 * count; i++)
        own[i] = -7;
    MPI_Rget(own, 1, here, target, window_at(window, target, 5), 1, there, window->win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2 * count; i++)
        CHECK(own[i] == (i % 2 == 0 ? value(rank, 9, i) : -7), "got %lx at %d", (long)own[i], i);
    /* What has gaps there has none here. */
    MPI_Get_c(own, count, MPI_INT64_T, target, window_at(window, target, 5), 1, there, window->win);
    for (int i = 0; i < count; i++)
        CHECK(own[i] == value(rank, 9, 2 * i), "got %lx at %d", (long)own[i], i);
    MPI_Win_unlock_all(window->win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3 * count; i++)
        window->words[5 + i] = 0;
    free(own);
    MPI_Type_free(&here);
    MPI_Type_free(&there);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Nothing goes to nobody. */
static void to_nobody(const Window* window) {
    int64_t word = 5;
    MPI_Win_fence(0, window->win);
    MPI_Put(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, window->win);
    MPI_Get(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, window->win);
    MPI_Accumulate(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, MPI_SUM, window->win);
    MPI_Win_fence(0, window->win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, MPI_PROC_NULL, 0, window->win);
    MPI_Win_unlock(MPI_PROC_NULL, window->win);
    CHECK(word == 5, "nobody gave %ld", (long)word);
}

int main(int argc, char** argv) {
    static const int counts[] = {0, 1, 2, 5, 64, 511, 512, 513, 8192, 33333};
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int flavour = 0; flavour < flavours; flavour++) {
        Window window = window_make(flavour, words, MPI_COMM_WORLD);
        for (int how = 0; how < synchronisations; how++) {
            for (int c = 0; c < (int)(sizeof counts / sizeof counts[0]); c++)
                exchange(&window, how, c % 3 % size, counts[c], all);
        }
        with_gaps(&window, 10);
        with_gaps(&window, 12000);
        to_nobody(&window);
        window_free(&window);
    }
    MPI_Group_free(&all);
    MPI_Finalize();
    return 0;
}
