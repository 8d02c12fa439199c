/* Allocated windows begin where the info key mpi_minimum_memory_alignment wants it, whatever the
   sizes of the ranks' parts, and also if ranks want different things. */
#include "window.h"

static int rank, size;

static MPI_Info wish(const char* alignment, int apart) {
    MPI_Info info;
    MPI_Info_create(&info);
    if (alignment != NULL)
        MPI_Info_set(info, "mpi_minimum_memory_alignment", alignment);
    if (apart)
        MPI_Info_set(info, "alloc_shared_noncontig", "true");
    return info;
}

/* Everybody writes into its neighbour's part, and nobody into another's. */
static void check_parts(MPI_Win win, const unsigned char* own, int bytes) {
    MPI_Win_fence(0, win);
    unsigned char value = (unsigned char)(rank + 1);
    const int next = (rank + 1) % size;
    const int next_bytes = 100 + 5000 * (next % 3);
    MPI_Put(&value, 1, MPI_BYTE, next, 0, 1, MPI_BYTE, win);
    MPI_Put(&value, 1, MPI_BYTE, next, next_bytes - 1, 1, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    const int before = (rank + size - 1) % size + 1;
    CHECK(own[0] == before && own[bytes - 1] == before && own[1] == 0, "%d %d %d", own[0], own[1],
          own[bytes - 1]);
}

static void check_alignment(int flavour, long alignment, int all) {
    char text[32], found[32] = "";
    unsigned char* own = NULL;
    MPI_Win win;
    MPI_Info used;
    int flag, length = sizeof found;
    snprintf(text, sizeof text, "%ld", alignment);
    const int wants = all || rank % 2 == 0;
    MPI_Info info = wish(wants ? text : NULL, 1);
    const int bytes = 100 + 5000 * (rank % 3);
    if (flavour == allocated)
        MPI_Win_allocate(bytes, 1, info, MPI_COMM_WORLD, &own, &win);
    else
        MPI_Win_allocate_shared(bytes, 1, info, MPI_COMM_WORLD, &own, &win);
    MPI_Info_free(&info);
    CHECK((uintptr_t)own % (wants ? (uintptr_t)alignment : 8) == 0, "%s, %ld: memory at %p",
          flavour_names[flavour], alignment, (void*)own);
    MPI_Win_get_info(win, &used);
    MPI_Info_get_string(used, "mpi_minimum_memory_alignment", &length, found, &flag);
    CHECK(flag == wants && (!wants || strcmp(found, text) == 0), "%d: \"%s\"", flag, found);
    MPI_Info_free(&used);
    check_parts(win, own, bytes);
    MPI_Win_free(&win);
}

/* The alignment that a window says it has; 0: none. */
static long said_alignment(MPI_Win win) {
    MPI_Info used;
    char found[32] = "";
    int flag, length = sizeof found;
    MPI_Win_get_info(win, &used);
    MPI_Info_get_string(used, "mpi_minimum_memory_alignment", &length, found, &flag);
    MPI_Info_free(&used);
    return flag ? atol(found) : 0;
}

/* Without gaps the first rank's part is aligned, and the others' say nothing that is not so. */
static void check_without_gaps(void) {
    char* own;
    MPI_Win win;
    MPI_Info info = wish("65536", 0);
    MPI_Win_allocate_shared(24, 1, info, MPI_COMM_WORLD, &own, &win);
    MPI_Info_free(&info);
    CHECK(said_alignment(win) == (rank == 0 ? 65536 : 0), "%ld", said_alignment(win));
    MPI_Aint bytes;
    int unit;
    char* first;
    MPI_Win_shared_query(win, 0, &bytes, &unit, &first);
    CHECK((uintptr_t)first % 65536 == 0 || rank > 0, "memory at %p", (void*)first);
    CHECK(own == first + 24L * rank, "%p, %p", (void*)own, (void*)first);
    MPI_Win_free(&win);
}

/* What is set later is not what the window's memory was made with. */
static void check_later_hints(void) {
    char* own;
    MPI_Win win;
    MPI_Info used;
    char found[32] = "";
    int flag, length = sizeof found;
    MPI_Info info = wish("256", 0);
    MPI_Win_allocate(8, 1, info, MPI_COMM_WORLD, &own, &win);
    MPI_Info_set(info, "mpi_minimum_memory_alignment", "1099511627776");
    MPI_Info_set(info, "warren_memory", "latency");
    MPI_Info_set(info, "no_locks", "true");
    MPI_Win_set_info(win, info);
    MPI_Info_free(&info);
    CHECK(said_alignment(win) == 256, "%ld", said_alignment(win));
    MPI_Win_get_info(win, &used);
    MPI_Info_get_string(used, "warren_memory", &length, found, &flag);
    CHECK(!flag, "\"%s\"", found);
    MPI_Info_get_string(used, "no_locks", &length, found, &flag);
    CHECK(flag && strcmp(found, "true") == 0, "%d: \"%s\"", flag, found);
    MPI_Info_free(&used);
    MPI_Win_free(&win);
}

static void check_mistakes(void) {
    static const struct {
        const char* alignment;
        int error_class;
    } wrong[] = {{"100", MPI_ERR_INFO_VALUE}, {"4611686018427387904", MPI_ERR_NO_MEM}};
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2; i++) {
        char* own;
        MPI_Win win;
        MPI_Info info = wish(rank == 0 ? wrong[i].alignment : NULL, 0);
        const int code = MPI_Win_allocate(8, 1, info, comm, &own, &win);
        CHECK(code != MPI_SUCCESS && (rank > 0 || check_class(code) == wrong[i].error_class),
              "%s: class %d", wrong[i].alignment, check_class(code));
        MPI_Info_free(&info);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    MPI_Comm here = window_node(MPI_COMM_WORLD);
    int on_node;
    MPI_Comm_size(here, &on_node);
    MPI_Comm_free(&here);
    for (int all = 0; all < 2; all++) {
        for (long alignment = 256; alignment <= 2 << 20; alignment *= 32) {
            check_alignment(allocated, alignment, all);
            if (on_node == size)
                check_alignment(shared, alignment, all);
        }
        check_alignment(allocated, 64L << 30, all); /* addresses are no memory */
    }
    check_later_hints();
    if (on_node == size)
        check_without_gaps();
    check_mistakes();
    MPI_Finalize();
    return 0;
}
