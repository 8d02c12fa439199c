/* Accumulate operations: results, types, what goes back to the origin; and that all ranks' are
   atomic to each other, small and bulk ones, with and without gaps. */
#include "window.h"

static int rank, size;

static void sums_of_all(const Window* window) {
    enum { rounds = 2000, bulk = 9000 };
    int64_t* ones = malloc(bulk * sizeof *ones);
    int64_t* before = malloc(bulk * sizeof *before);
    for (int i = 0; i < bulk; i++)
        ones[i] = 1;
    MPI_Datatype second;
    MPI_Type_vector(bulk / 2, 1, 2, MPI_INT64_T, &second);
    MPI_Type_commit(&second);
    int64_t got, last = -1;
    MPI_Win_lock_all(0, window->win);
    for (int i = 0; i < rounds; i++) {
        const int64_t one = 1;
        MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, window_at(window, 0, 0), MPI_SUM, window->win);
        CHECK(got > last, "the counter went from %ld to %ld", (long)last, (long)got);
        last = got;
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, window_at(window, 0, 1), 1, MPI_INT64_T, MPI_SUM,
                       window->win);
        if (i % 100 == 0) {
            MPI_Accumulate(ones, bulk, MPI_INT64_T, 0, window_at(window, 0, 0), bulk, MPI_INT64_T,
                           MPI_SUM, window->win);
            MPI_Get_accumulate(ones, bulk / 2, MPI_INT64_T, before, bulk / 2, MPI_INT64_T, 0,
                               window_at(window, 0, 0), 1, second, MPI_SUM, window->win);
        }
    }
    MPI_Win_unlock_all(window->win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        const int64_t bulks = (int64_t)size * (rounds / 100);
        const int64_t singles = (int64_t)size * rounds;
        CHECK(window->words[0] == singles + 2 * bulks, "word 0 is %ld", (long)window->words[0]);
        CHECK(window->words[1] == singles + bulks, "word 1 is %ld", (long)window->words[1]);
        for (int i = 2; i < bulk; i++)
            CHECK(window->words[i] == bulks * (i % 2 == 0 ? 2 : 1), "word %d is %ld", i,
                  (long)window->words[i]);
        for (int i = 0; i < bulk; i++)
            window->words[i] = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&second);
    free(ones);
    free(before);
}

/* A lock made of compare and swap, around a counter that is put and got. */
static void locked_by_swaps(const Window* window) {
    enum { rounds = 50 };
    const int home = size - 1;
    MPI_Win_lock_all(0, window->win);
    for (int i = 0; i < rounds; i++) {
        const int64_t mine = rank + 1, free_word = 0;
        int64_t found, counter;
        do {
            MPI_Compare_and_swap(&mine, &free_word, &found, MPI_INT64_T, home,
                                 window_at(window, home, 10), window->win);
            MPI_Win_flush(home, window->win);
        } while (found != 0);
        MPI_Get(&counter, 1, MPI_INT64_T, home, window_at(window, home, 11), 1, MPI_INT64_T,
                window->win);
        MPI_Win_flush(home, window->win);
        counter++;
        MPI_Put(&counter, 1, MPI_INT64_T, home, window_at(window, home, 11), 1, MPI_INT64_T,
                window->win);
        MPI_Win_flush(home, window->win);
        MPI_Fetch_and_op(&free_word, &found, MPI_INT64_T, home, window_at(window, home, 10),
                         MPI_REPLACE, window->win);
        CHECK(found == mine, "rank %ld had the lock", (long)found - 1);
    }
    MPI_Win_unlock_all(window->win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == home) {
        CHECK(window->words[11] == (int64_t)rounds * size, "counted %ld", (long)window->words[11]);
        window->words[10] = window->words[11] = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Each operation once, on the neighbour's words, compared with C's. */
static void operations(const Window* window) {
    const struct {
        MPI_Op op;
        int64_t result; /* of 12 and 10 */
    } table[] = {{MPI_SUM, 22}, {MPI_PROD, 120}, {MPI_MAX, 12},     {MPI_MIN, 10},
                 {MPI_BAND, 8}, {MPI_BOR, 14},   {MPI_BXOR, 6},     {MPI_LAND, 1},
                 {MPI_LOR, 1},  {MPI_LXOR, 0},   {MPI_REPLACE, 10}, {MPI_NO_OP, 12}};
    enum { count = sizeof table / sizeof table[0] };
    const int target = (rank + 1) % size;
    for (int form = 0; form < 3; form++) {
        for (int i = 0; i < count; i++)
            window->words[i] = 12;
        MPI_Win_fence(0, window->win);
        if (form == 2)
            MPI_Win_lock_all(0, window->win); /* requests are for such epochs */
        for (int i = 0; i < count; i++) {
            const int64_t ten = 10;
            int64_t before = 12;
            const MPI_Aint at = window_at(window, target, i);
            MPI_Request request;
            if (form == 0 && table[i].op == MPI_NO_OP) {
                continue; /* only calls that fetch take it */
            } else if (form == 0) {
                MPI_Accumulate(&ten, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, table[i].op,
                               window->win);
            } else if (form == 1) {
                MPI_Fetch_and_op(&ten, &before, MPI_INT64_T, target, at, table[i].op, window->win);
            } else {
                const int nothing = table[i].op == MPI_NO_OP;
                MPI_Rget_accumulate(nothing ? NULL : &ten, nothing ? 0 : 1,
                                    nothing ? MPI_DATATYPE_NULL : MPI_INT64_T, &before, 1,
                                    MPI_INT64_T, target, at, 1, MPI_INT64_T, table[i].op,
                                    window->win, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            CHECK(before == 12, "form %d, operation %d: %ld was there", form, i, (long)before);
        }
        if (form == 2)
            MPI_Win_unlock_all(window->win);
        MPI_Win_fence(0, window->win);
        for (int i = 0; i < count; i++) {
            CHECK(window->words[i] == table[i].result, "form %d, operation %d made %ld", form, i,
                  (long)window->words[i]);
            window->words[i] = 0;
        }
        MPI_Win_fence(0, window->win);
    }
}

/* One number of each type on the neighbour's word `at`: (3 + 4) * 4, then compared. */
#define NUMBERS_OF(C, TYPE)                                                                        \
    do {                                                                                           \
        const C three = 3, four = 4;                                                               \
        C sum = 0, product = 0;                                                                    \
        MPI_Accumulate(&three, 1, TYPE, target, at, 1, TYPE, MPI_REPLACE, window->win);            \
        MPI_Accumulate(&four, 1, TYPE, target, at, 1, TYPE, MPI_SUM, window->win);                 \
        MPI_Fetch_and_op(&four, &sum, TYPE, target, at, MPI_PROD, window->win);                    \
        MPI_Fetch_and_op(NULL, &product, TYPE, target, at, MPI_NO_OP, window->win);                \
        CHECK(sum == 7 && product == 28, #C ": %g, %g", (double)sum, (double)product);             \
    } while (0)

/* A swap that finds something else, and one that finds what it compares with. */
#define SWAPS_OF(C, TYPE)                                                                          \
    do {                                                                                           \
        const C one = 1, zero = 0;                                                                 \
        C found = 9, then = 9, last = 9;                                                           \
        MPI_Put(&one, 1, TYPE, target, at, 1, TYPE, window->win);                                  \
        MPI_Compare_and_swap(&zero, &zero, &found, TYPE, target, at, window->win);                 \
        MPI_Compare_and_swap(&zero, &one, &then, TYPE, target, at, window->win);                   \
        MPI_Get(&last, 1, TYPE, target, at, 1, TYPE, window->win);                                 \
        MPI_Win_flush(target, window->win);                                                        \
        CHECK(found == 1 && then == 1 && last == 0, #C ": %d, %d, %d", (int)found, (int)then,      \
              (int)last);                                                                          \
    } while (0)

static void single_elements(const Window* window) {
    const int target = (rank + 1) % size;
    const MPI_Aint at = window_at(window, target, 20);
    MPI_Win_lock_all(0, window->win);
    NUMBERS_OF(int8_t, MPI_INT8_T);
    NUMBERS_OF(int16_t, MPI_INT16_T);
    NUMBERS_OF(int32_t, MPI_INT32_T);
    NUMBERS_OF(uint32_t, MPI_UINT32_T);
    NUMBERS_OF(int64_t, MPI_INT64_T);
    NUMBERS_OF(uint64_t, MPI_UINT64_T);
    NUMBERS_OF(float, MPI_FLOAT);
    NUMBERS_OF(double, MPI_DOUBLE);
    NUMBERS_OF(long double, MPI_LONG_DOUBLE);
    SWAPS_OF(int8_t, MPI_INT8_T);
    SWAPS_OF(uint16_t, MPI_UINT16_T);
    SWAPS_OF(int32_t, MPI_INT32_T);
    SWAPS_OF(uint64_t, MPI_UINT64_T);
    SWAPS_OF(_Bool, MPI_C_BOOL);
    SWAPS_OF(unsigned char, MPI_BYTE);
    MPI_Win_unlock_all(window->win);
    MPI_Barrier(MPI_COMM_WORLD);
    window->words[20] = window->words[21] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Values with their places, which have a gap between or behind them. */
static void pairs(const Window* window) {
    struct {
        double value;
        int index;
    } best = {3.5 + rank, rank};
    struct {
        short value;
        int index;
    } least = {(short)(100 - rank), rank};
    memset(window->words, 0, 64);
    MPI_Win_fence(0, window->win);
    MPI_Accumulate(&best, 1, MPI_DOUBLE_INT, 0, window_at(window, 0, 0), 1, MPI_DOUBLE_INT,
                   MPI_MAXLOC, window->win);
    MPI_Accumulate(&least, 1, MPI_SHORT_INT, 0, window_at(window, 0, 4), 1, MPI_SHORT_INT,
                   MPI_MINLOC, window->win);
    MPI_Win_fence(0, window->win);
    if (rank == 0) {
        memcpy(&best, window->words, sizeof best);
        memcpy(&least, window->words + 4, sizeof least);
        CHECK(best.value == 3.5 + size - 1 && best.index == size - 1, "%f at %d", best.value,
              best.index);
        CHECK(least.value == 0 && least.index == 0, "%d at %d", least.value, least.index);
    }
    memset(window->words, 0, 64);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    for (int flavour = 0; flavour < flavours; flavour++) {
        Window window = window_make(flavour, 9000, MPI_COMM_WORLD);
        operations(&window);
        single_elements(&window);
        pairs(&window);
        sums_of_all(&window);
        locked_by_swaps(&window);
        window_free(&window);
    }
    MPI_Finalize();
    return 0;
}
