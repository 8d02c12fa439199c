/* Post, start, complete, wait and test: groups that differ from rank to rank, rings, one target of
   many origins, epochs that follow each other at once. */
#include "window.h"

static int rank, size;

static MPI_Group group_of(const int* ranks, int count) {
    MPI_Group all, made;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, count, ranks, &made);
    MPI_Group_free(&all);
    return made;
}

/* Each puts to the next one, which reads what came before it allows the next put. */
static void ring(const Window* window, int rounds, int tests) {
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Group to = group_of(&next, 1), from = group_of(&previous, 1);
    for (int i = 1; i <= rounds; i++) {
        const int64_t sent = (int64_t)rank * 1000000 + i;
        MPI_Win_post(from, 0, window->win);
        MPI_Win_start(to, 0, window->win);
        MPI_Put(&sent, 1, MPI_INT64_T, next, window_at(window, next, 1), 1, MPI_INT64_T,
                window->win);
        MPI_Win_complete(window->win);
        if (tests) {
            int over = 0;
            while (!over)
                MPI_Win_test(window->win, &over);
        } else {
            MPI_Win_wait(window->win);
        }
        CHECK(window->words[1] == (int64_t)previous * 1000000 + i, "round %d: %ld came", i,
              (long)window->words[1]);
    }
    MPI_Group_free(&to);
    MPI_Group_free(&from);
}

/* All others put into rank 0, which opens its window to half of them at a time. */
static void many_to_one(const Window* window, int rounds) {
    const int zero = 0;
    int half[2][64];
    int count[2] = {0, 0};
    MPI_Group target = group_of(&zero, 1);
    for (int other = 1; other < size; other++)
        half[other % 2][count[other % 2]++] = other;
    for (int i = 1; i <= rounds; i++) {
        for (int part = 0; part < 2; part++) {
            if (rank == 0) {
                MPI_Group origins = group_of(half[part], count[part]);
                MPI_Win_post(origins, 0, window->win);
                MPI_Group_free(&origins);
                MPI_Win_wait(window->win);
                for (int k = 0; k < count[part]; k++)
                    CHECK(window->words[2 + half[part][k]] == i, "rank %d put %ld, not %d",
                          half[part][k], (long)window->words[2 + half[part][k]], i);
            } else if (rank % 2 == part) {
                const int64_t round = i;
                MPI_Win_start(target, 0, window->win);
                MPI_Put(&round, 1, MPI_INT64_T, 0, window_at(window, 0, 2 + rank), 1, MPI_INT64_T,
                        window->win);
                MPI_Win_complete(window->win);
            }
        }
    }
    MPI_Group_free(&target);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Groups of nobody wait for nobody. */
static void empty(const Window* window) {
    MPI_Win_post(MPI_GROUP_EMPTY, 0, window->win);
    MPI_Win_start(MPI_GROUP_EMPTY, 0, window->win);
    MPI_Win_complete(window->win);
    MPI_Win_wait(window->win);
    int over = 0;
    MPI_Win_post(MPI_GROUP_EMPTY, MPI_MODE_NOCHECK, window->win);
    MPI_Win_test(window->win, &over);
    CHECK(over, "the exposure to nobody is not over");
}

/* Without checks: a barrier says that the window has been posted. */
static void unchecked(const Window* window) {
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int i = 1; i <= 20; i++) {
        const int64_t round = i;
        MPI_Win_post(all, MPI_MODE_NOCHECK, window->win);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_start(all, MPI_MODE_NOCHECK, window->win);
        const int next = (rank + 1) % size;
        MPI_Put(&round, 1, MPI_INT64_T, next, window_at(window, next, 0), 1, MPI_INT64_T,
                window->win);
        MPI_Win_complete(window->win);
        MPI_Win_wait(window->win);
        CHECK(window->words[0] == i, "%ld in round %d", (long)window->words[0], i);
    }
    MPI_Group_free(&all);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    for (int flavour = 0; flavour < flavours; flavour++) {
        Window window = window_make(flavour, 2 + size, MPI_COMM_WORLD);
        ring(&window, 300, 0);
        ring(&window, 100, 1);
        if (size <= 64)
            many_to_one(&window, 50);
        empty(&window);
        unchecked(&window);
        window_free(&window);
    }
    MPI_Finalize();
    return 0;
}
