/* A process unmaps memory that is part of its windows, which no program should do: operations of
   other processes on it are errors, on what is left they succeed, and nobody crashes. */
#include <sys/mman.h>

#include "window.h"

enum { page_words = 512, pages = 3 };

static void check_gone(MPI_Win win, int target, MPI_Aint at, MPI_Aint left) {
    int64_t value = 5, result = 0;
    const struct {
        const char* name;
        int code;
    } calls[] = {
        {"put", MPI_Put(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win)},
        {"get", MPI_Get(&result, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win)},
        {"accumulate",
         MPI_Accumulate(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, MPI_SUM, win)},
        {"fetch_and_op", MPI_Fetch_and_op(&value, &result, MPI_INT64_T, target, at, MPI_SUM, win)},
        {"compare_and_swap",
         MPI_Compare_and_swap(&value, &value, &result, MPI_INT64_T, target, at, win)},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        CHECK(check_class(calls[i].code) == MPI_ERR_RMA_RANGE, "%s: class %d", calls[i].name,
              check_class(calls[i].code));
    CHECK(MPI_Put(&value, 1, MPI_INT64_T, target, left, 1, MPI_INT64_T, win) == MPI_SUCCESS,
          "put where there is memory");
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    const int target = (rank + 1) % size;
    const size_t bytes = pages * page_words * 8;
    for (int flavour = created; flavour <= dynamic; flavour += dynamic - created) {
        MPI_Win win;
        MPI_Aint base = 0, addresses[16] = {0};
        int64_t* memory =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memory[0] = 0;
        if (flavour == created) {
            MPI_Win_create(memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        } else {
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
            MPI_Win_attach(win, memory, (MPI_Aint)bytes);
            MPI_Get_address(memory, &base);
        }
        MPI_Allgather(&base, 1, MPI_AINT, addresses, 1, MPI_AINT, MPI_COMM_WORLD);
        munmap(memory + page_words, page_words * 8);
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        MPI_Win_lock_all(0, win);
        MPI_Barrier(MPI_COMM_WORLD);
        check_gone(win, target, addresses[target] + page_words * 8 + 16, addresses[target]);
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(memory[0] == 5, "%s: %ld was put", flavour_names[flavour], (long)memory[0]);
        if (flavour == dynamic)
            MPI_Win_detach(win, memory);
        MPI_Win_free(&win);
        munmap(memory, bytes);
    }
    MPI_Finalize();
    return 0;
}
