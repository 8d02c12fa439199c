/* What must fail, with which class: epochs, displacements, bounds, types, assertions, sizes. */
#include "window.h"

static int rank, size;

#define FAILS(call, expected)                                                                      \
    do {                                                                                           \
        const int code = (call);                                                                   \
        CHECK(check_class(code) == (expected), "%s gave class %d, not %s", #call,                  \
              check_class(code), #expected);                                                       \
    } while (0)

static void epochs(MPI_Win win, MPI_Group all) {
    int64_t word = 0;
    int flag;
    /* Outside of all epochs. */
    FAILS(MPI_Put(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Get(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Accumulate(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win),
          MPI_ERR_RMA_SYNC);
    FAILS(MPI_Compare_and_swap(&word, &word, &word, MPI_INT64_T, 0, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
    MPI_Barrier(MPI_COMM_WORLD);
    /* In one of another kind. */
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_start(all, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    if (size > 1)
        FAILS(MPI_Put(&word, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, win), MPI_ERR_RMA_SYNC);
    MPI_Win_unlock(0, win);
    MPI_Win_lock_all(0, win);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    MPI_Win_unlock_all(win);
    MPI_Win_post(all, 0, win);
    FAILS(MPI_Win_post(all, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    MPI_Win_start(all, 0, win);
    FAILS(MPI_Win_start(all, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    /* A fence that nothing may follow. */
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    CHECK(MPI_Put(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win) == MPI_SUCCESS,
          "a put after a fence");
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    FAILS(MPI_Put(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_RMA_SYNC);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Operations with a request, which an epoch of the target's gives no right to. */
static void requests_fail(MPI_Win win) {
    int64_t word = 0, before = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    FAILS(MPI_Rput(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win, &request), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Rget(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win, &request), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Raccumulate(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win, &request),
          MPI_ERR_RMA_SYNC);
    FAILS(MPI_Rget_accumulate(&word, 1, MPI_INT64_T, &before, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T,
                              MPI_SUM, win, &request),
          MPI_ERR_RMA_SYNC);
    CHECK(request == MPI_REQUEST_NULL, "a request of an operation that was refused");
    CHECK(MPI_Rput(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win, &request) ==
              MPI_SUCCESS,
          "to nobody");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void request_epochs(MPI_Win win, MPI_Group all) {
    requests_fail(win);
    MPI_Win_fence(0, win);
    requests_fail(win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_post(all, 0, win);
    MPI_Win_start(all, 0, win);
    requests_fail(win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
}

static void assertions(MPI_Win win, MPI_Group all) {
    FAILS(MPI_Win_fence(MPI_MODE_NOCHECK, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_lock_all(MPI_MODE_NOSTORE, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_post(all, MPI_MODE_NOSUCCEED, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_start(all, MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_lock(7, 0, 0, win), MPI_ERR_LOCKTYPE);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), MPI_ERR_RANK);
}

static void user_sum(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)in, (void)inout, (void)count, (void)type;
}

static void places_and_types(MPI_Win win, int count) {
    int64_t words[4] = {0};
    double number = 0;
    MPI_Op own;
    MPI_Datatype spread, mixed;
    MPI_Op_create(user_sum, 1, &own);
    MPI_Type_vector(2, 1, count, MPI_INT64_T, &spread);
    MPI_Type_commit(&spread);
    const int lengths[2] = {1, 1};
    const MPI_Aint places[2] = {0, 8};
    const MPI_Datatype types[2] = {MPI_INT64_T, MPI_DOUBLE};
    MPI_Type_create_struct(2, lengths, places, types, &mixed);
    MPI_Type_commit(&mixed);
    MPI_Win_lock_all(0, win);
    FAILS(MPI_Put(words, 1, MPI_INT64_T, 0, -1, 1, MPI_INT64_T, win), MPI_ERR_DISP);
    FAILS(MPI_Put(words, 1, MPI_INT64_T, 0, count, 1, MPI_INT64_T, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Put(words, 2, MPI_INT64_T, 0, count - 1, 2, MPI_INT64_T, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Get(words, 1, MPI_INT64_T, 0, INT64_MAX / 4, 1, MPI_INT64_T, win), MPI_ERR_DISP);
    FAILS(MPI_Put(words, 2, MPI_INT64_T, 0, 0, 1, spread, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Accumulate(words, 1, MPI_INT64_T, 0, count, 1, MPI_INT64_T, MPI_SUM, win),
          MPI_ERR_RMA_RANGE);
    FAILS(MPI_Fetch_and_op(words, words + 1, MPI_INT64_T, 0, count, MPI_SUM, win),
          MPI_ERR_RMA_RANGE);
    const MPI_Count beyond = ((MPI_Count)1 << 61) + 1; /* 8 bytes, if 64 bits are to count them */
    FAILS(MPI_Put_c(words, 1, MPI_INT64_T, 0, 0, beyond, MPI_INT64_T, win), MPI_ERR_COUNT);
    FAILS(MPI_Get_c(words, 1, MPI_INT64_T, 0, 0, beyond, MPI_INT64_T, win), MPI_ERR_COUNT);
    FAILS(MPI_Accumulate_c(words, 0, MPI_INT64_T, 0, 0, beyond - 1, MPI_INT64_T, MPI_SUM, win),
          MPI_ERR_COUNT);
    FAILS(MPI_Get_accumulate_c(words, 1, MPI_INT64_T, words + 1, 1, MPI_INT64_T, 0, 0, beyond,
                               MPI_INT64_T, MPI_SUM, win),
          MPI_ERR_COUNT);
    FAILS(MPI_Put(words, 2, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_TRUNCATE);
    FAILS(MPI_Get(words, 1, MPI_INT64_T, 0, 0, 2, MPI_INT64_T, win), MPI_ERR_TRUNCATE);
    FAILS(MPI_Accumulate(&number, 1, MPI_DOUBLE, 0, 0, 1, MPI_INT64_T, MPI_SUM, win), MPI_ERR_TYPE);
    FAILS(MPI_Accumulate(words, 1, mixed, 0, 0, 1, mixed, MPI_SUM, win), MPI_ERR_TYPE);
    FAILS(MPI_Accumulate(&number, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_BAND, win), MPI_ERR_OP);
    FAILS(MPI_Accumulate(words, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, own, win), MPI_ERR_OP);
    FAILS(MPI_Accumulate(words, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_NO_OP, win), MPI_ERR_OP);
    FAILS(MPI_Compare_and_swap(&number, &number, &number, MPI_DOUBLE, 0, 0, win), MPI_ERR_TYPE);
    FAILS(MPI_Fetch_and_op(words, words + 1, spread, 0, 0, MPI_SUM, win), MPI_ERR_TYPE);
    /* Nothing fits anywhere, up to the end. */
    CHECK(MPI_Put(words, 0, MPI_INT64_T, 0, count, 0, MPI_INT64_T, win) == MPI_SUCCESS, "nothing");
    CHECK(MPI_Accumulate(words, 0, MPI_INT64_T, 0, 0, 0, mixed, MPI_SUM, win) == MPI_SUCCESS,
          "nothing of other types");
    CHECK(MPI_Put(words, 1, MPI_INT64_T, 0, count - 1, 1, MPI_INT64_T, win) == MPI_SUCCESS,
          "the last word");
    MPI_Win_unlock_all(win);
    MPI_Type_free(&spread);
    MPI_Type_free(&mixed);
    MPI_Op_free(&own);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void creation(MPI_Comm comm) {
    MPI_Win win = MPI_WIN_NULL;
    char memory[8];
    void* base;
    FAILS(MPI_Win_create(memory, -1, 1, MPI_INFO_NULL, comm, &win), MPI_ERR_SIZE);
    FAILS(MPI_Win_create(memory, 8, 0, MPI_INFO_NULL, comm, &win), MPI_ERR_DISP);
    FAILS(MPI_Win_create(NULL, 8, 1, MPI_INFO_NULL, comm, &win), MPI_ERR_BASE);
    FAILS(MPI_Win_allocate((MPI_Aint)1 << 60, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_NO_MEM);
    CHECK(win == MPI_WIN_NULL, "a handle of a window that was not made");
    /* One rank's mistake is told to all. */
    FAILS(MPI_Win_allocate(rank == 0 ? -5 : 8, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_SIZE);
    /* More than the node has: an error of all and no signal. */
    FAILS(MPI_Win_allocate((MPI_Aint)1 << 45, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_NO_MEM);
    CHECK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, comm, &base, &win) == MPI_SUCCESS,
          "a window after those that failed");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    FAILS(MPI_Win_attach(win, memory, 8), MPI_ERR_RMA_FLAVOR);
    FAILS(MPI_Win_detach(win, memory), MPI_ERR_RMA_FLAVOR);
    MPI_Win_free(&win);
}

/* Arguments that are wrong at the last rank only, and calls that don't match, are errors of all. */
static void creation_differs(MPI_Comm comm) {
    const int last = rank == size - 1;
    MPI_Info freed, info = MPI_INFO_NULL;
    MPI_Win win = MPI_WIN_NULL, *place = last ? NULL : &win;
    char memory[8];
    void* base;
    MPI_Info_create(&freed);
    if (last)
        info = freed;
    MPI_Info_free(&freed);
    FAILS(MPI_Win_create(memory, 8, 1, info, comm, &win), MPI_ERR_INFO);
    FAILS(MPI_Win_allocate(8, 1, info, comm, &base, &win), MPI_ERR_INFO);
    FAILS(MPI_Win_allocate_c(8, 1, info, comm, &base, &win), MPI_ERR_INFO);
    FAILS(MPI_Win_create_dynamic(info, comm, &win), MPI_ERR_INFO);
    FAILS(MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, comm, place), MPI_ERR_ARG);
    FAILS(MPI_Win_allocate(8, 1, MPI_INFO_NULL, comm, last ? NULL : &base, &win), MPI_ERR_ARG);
    FAILS(MPI_Win_create(last ? NULL : memory, 8, 1, MPI_INFO_NULL, comm, &win), MPI_ERR_BASE);
    if (size > 1)
        FAILS(last ? MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, comm, &win)
                   : MPI_Win_allocate(8, 1, MPI_INFO_NULL, comm, &base, &win),
              MPI_ERR_NOT_SAME);
    CHECK(win == MPI_WIN_NULL, "a handle of a window that was not made");
}

/* A fence or an end that is wrong at one rank is that rank's alone, which can call again. */
static void late_ends(MPI_Comm comm) {
    Window window = window_make(allocated, 1, comm);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    if (rank == 0) {
        FAILS(MPI_Win_fence(MPI_MODE_NOCHECK, window.win), MPI_ERR_ASSERT);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
        FAILS(MPI_Win_fence(0, window.win), MPI_ERR_RMA_SYNC);
        MPI_Win_unlock(0, window.win);
    }
    CHECK(MPI_Win_fence(0, window.win) == MPI_SUCCESS, "MPI_Win_fence");
    CHECK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win) == MPI_SUCCESS, "MPI_Win_fence");
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
        FAILS(MPI_Win_free(&window.win), MPI_ERR_RMA_SYNC);
        MPI_Win_unlock(0, window.win);
    }
    window_free(&window);
}

/* Handles of no window. */
static void handles(MPI_Comm comm) {
    int64_t word = 0, before;
    int flag;
    MPI_Request request;
    MPI_Group group;
    Window window = window_make(allocated, 1, comm);
    const MPI_Win wins[3] = {MPI_WIN_NULL, window.win, (MPI_Win)comm};
    window_free(&window);
    for (int i = 0; i < 3; i++) {
        MPI_Win win = wins[i];
        FAILS(MPI_Put(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_WIN);
        FAILS(MPI_Get(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_WIN);
        FAILS(MPI_Accumulate(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win),
              MPI_ERR_WIN);
        FAILS(MPI_Fetch_and_op(&word, &before, MPI_INT64_T, 0, 0, MPI_SUM, win), MPI_ERR_WIN);
        FAILS(MPI_Compare_and_swap(&word, &word, &before, MPI_INT64_T, 0, 0, win), MPI_ERR_WIN);
        FAILS(MPI_Rput(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win, &request), MPI_ERR_WIN);
        FAILS(MPI_Win_fence(0, win), MPI_ERR_WIN);
        FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_WIN);
        FAILS(MPI_Win_unlock(0, win), MPI_ERR_WIN);
        FAILS(MPI_Win_lock_all(0, win), MPI_ERR_WIN);
        FAILS(MPI_Win_flush(0, win), MPI_ERR_WIN);
        FAILS(MPI_Win_flush_all(win), MPI_ERR_WIN);
        FAILS(MPI_Win_complete(win), MPI_ERR_WIN);
        FAILS(MPI_Win_test(win, &flag), MPI_ERR_WIN);
        FAILS(MPI_Win_get_group(win, &group), MPI_ERR_WIN);
        FAILS(MPI_Win_attach(win, &word, 8), MPI_ERR_WIN);
        FAILS(MPI_Win_free(&win), MPI_ERR_WIN);
    }
}

static void attaching(MPI_Comm comm) {
    MPI_Win win;
    char memory[100];
    MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK(MPI_Win_attach(win, memory, 50) == MPI_SUCCESS, "attach");
    FAILS(MPI_Win_attach(win, memory + 49, 50), MPI_ERR_RMA_ATTACH);
    CHECK(MPI_Win_attach(win, memory + 50, 50) == MPI_SUCCESS, "attach");
    FAILS(MPI_Win_detach(win, memory + 1), MPI_ERR_RMA_ATTACH);
    CHECK(MPI_Win_detach(win, memory) == MPI_SUCCESS, "detach");
    CHECK(MPI_Win_detach(win, memory + 50) == MPI_SUCCESS, "detach");
    FAILS(MPI_Win_attach(win, memory, -1), MPI_ERR_SIZE);
    MPI_Win_free(&win);
}

enum { parts = 500, part_words = 4 }; /* more parts than have room beside the window */

/* Every second part of a rank's memory is attached, in an order of its own. */
static void attached_parts(MPI_Comm comm) {
    MPI_Win win;
    MPI_Datatype type;
    int64_t* words = calloc(parts * part_words, sizeof *words);
    int64_t value = 7;
    const int target = (rank + 1) % size;
    MPI_Aint its, own;
    MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Get_address(words, &own);
    MPI_Sendrecv(&own, 1, MPI_AINT, (rank + size - 1) % size, 0, &its, 1, MPI_AINT, target, 0, comm,
                 MPI_STATUS_IGNORE);
    MPI_Win_lock_all(0, win);
    FAILS(MPI_Put(&value, 1, MPI_INT64_T, target, its, 1, MPI_INT64_T, win), MPI_ERR_RMA_RANGE);
    MPI_Barrier(comm);
    for (int i = 0; i < parts / 2; i++) {
        const int part = i * 7 % (parts / 2) * 2;
        CHECK(MPI_Win_attach(win, words + part * part_words, part_words * 8) == MPI_SUCCESS,
              "attach");
    }
    MPI_Barrier(comm);
    for (int part = 0; part < parts; part++) {
        for (int word = 0; word < part_words; word++) {
            const MPI_Aint at = its + (part * part_words + word) * 8;
            const int code =
                MPI_Accumulate(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, MPI_SUM, win);
            CHECK(check_class(code) == (part % 2 == 0 ? MPI_SUCCESS : MPI_ERR_RMA_RANGE),
                  "part %d, word %d: class %d", part, word, check_class(code));
        }
    }
    /* Beyond a part's end, and a type whose gaps are not attached. */
    int64_t two[2] = {1, 1};
    FAILS(MPI_Put(two, 2, MPI_INT64_T, target, its + (part_words - 1) * 8, 2, MPI_INT64_T, win),
          MPI_ERR_RMA_RANGE);
    MPI_Type_vector(2, 1, 2 * part_words, MPI_INT64_T, &type);
    MPI_Type_commit(&type);
    CHECK(MPI_Get(two, 2, MPI_INT64_T, target, its, 1, type, win) == MPI_SUCCESS, "with gaps");
    MPI_Type_free(&type);
    MPI_Win_unlock_all(win);
    MPI_Barrier(comm);
    for (int i = 0; i < parts * part_words; i++)
        CHECK(words[i] == (i / part_words % 2 == 0 ? 7 : 0), "word %d is %ld", i, (long)words[i]);
    MPI_Win_free(&win);
    free(words);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    MPI_Group all;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_group(comm, &all);
    for (int flavour = 0; flavour < dynamic; flavour++) {
        Window window = window_make(flavour, 100, comm);
        MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
        epochs(window.win, all);
        request_epochs(window.win, all);
        assertions(window.win, all);
        places_and_types(window.win, 100);
        window_free(&window);
    }
    creation(comm);
    creation_differs(comm);
    late_ends(comm);
    /* (Errors of no window are MPI_COMM_SELF's.) */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    handles(comm);
    attaching(comm);
    attached_parts(comm);
    MPI_Group_free(&all);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
