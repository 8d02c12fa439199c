/* What the tests of one-sided communication share: windows of every flavour, of 64-bit words. */
#ifndef WINDOW_H
#define WINDOW_H

#include <stdint.h>

#include "../point_to_point/check.h"

enum { created, allocated, shared, dynamic, flavours };
static const char* const flavour_names[flavours] = {"created", "allocated", "shared", "dynamic"};

typedef struct {
    MPI_Win win;
    MPI_Comm comm;
    int flavour;
    int64_t* words;      /* of this rank */
    int count;           /* of them, the same at all ranks */
    MPI_Aint* addresses; /* of the ranks' words in a dynamic window, else null */
} Window;

/* The ranks of a communicator that are on this one's node. */
static inline MPI_Comm window_node(MPI_Comm comm) {
    MPI_Comm here;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    return here;
}

/* Ranks of several nodes share no memory: there a shared window is an allocated one. */
static inline Window window_make(int flavour, int count, MPI_Comm comm) {
    int all, on_node;
    MPI_Comm here = window_node(comm);
    MPI_Comm_size(comm, &all);
    MPI_Comm_size(here, &on_node);
    MPI_Comm_free(&here);
    if (flavour == shared && on_node < all)
        flavour = allocated;
    Window made = {MPI_WIN_NULL, comm, flavour, NULL, count, NULL};
    MPI_Aint bytes = (MPI_Aint)count * 8;
    int size, rank;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    switch (flavour) {
    case created:
        made.words = malloc((size_t)bytes + 1);
        MPI_Win_create(made.words, bytes, 8, MPI_INFO_NULL, comm, &made.win);
        break;
    case allocated:
        MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, comm, &made.words, &made.win);
        break;
    case shared:
        MPI_Win_allocate_shared(bytes, 8, MPI_INFO_NULL, comm, &made.words, &made.win);
        break;
    default:
        made.words = malloc((size_t)bytes + 1);
        MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &made.win);
        MPI_Win_attach(made.win, made.words, bytes);
        made.addresses = malloc((size_t)size * sizeof(MPI_Aint));
        MPI_Get_address(made.words, &made.addresses[rank]);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_AINT, made.addresses, 1, MPI_AINT, comm);
    }
    for (int i = 0; i < count; i++)
        made.words[i] = 0;
    MPI_Barrier(comm);
    return made;
}

/* The displacement of a word. */
static inline MPI_Aint window_at(const Window* window, int target, int word) {
    return window->addresses != NULL ? window->addresses[target] + (MPI_Aint)word * 8 : word;
}

static inline void window_free(Window* window) {
    if (window->addresses != NULL) {
        MPI_Barrier(window->comm); /* nobody accesses it any more */
        MPI_Win_detach(window->win, window->words);
    }
    MPI_Win_free(&window->win);
    CHECK(window->win == MPI_WIN_NULL, "the handle is still there");
    if (window->flavour == created || window->flavour == dynamic)
        free(window->words);
    free(window->addresses);
}

#endif
