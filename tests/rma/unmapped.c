/* A process unmaps or protects memory that is part of its windows, which no program should do:
   operations of other processes on it are errors, on what is left they succeed, and nobody crashes.
   Each rank in turn is the only origin, so that the others wait in MPI and may do what is offered
   to them. */
#include <sys/mman.h>

#include "window.h"

enum { page_words = 512, page_bytes = 8 * page_words, turns = 50, pieces = 100 };
/* The pages of each rank's memory. */
enum { usable, unmapped, read_only, forbidden, pages };

static MPI_Datatype spread;

static void expect(int code, int refused, const char* name, int page) {
    const int found = code == MPI_SUCCESS ? MPI_SUCCESS : check_class(code);
    CHECK(found == (refused ? MPI_ERR_RMA_RANGE : MPI_SUCCESS), "page %d, %s: class %d", page, name,
          found);
}

static void check_page(MPI_Win win, int target, MPI_Aint at, int page) {
    static const int64_t ones[pieces];
    int64_t value = 5, result = 0;
    const int writable = page == usable, readable = writable || page == read_only;
    expect(MPI_Get(&result, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win), !readable, "get",
           page);
    expect(MPI_Accumulate(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, MPI_SUM, win),
           !writable, "accumulate", page);
    expect(MPI_Fetch_and_op(&value, &result, MPI_INT64_T, target, at, MPI_SUM, win), !writable,
           "fetch_and_op", page);
    result = 0;
    MPI_Get(&result, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win);
    const int64_t compared = result;
    expect(MPI_Compare_and_swap(&value, &compared, &result, MPI_INT64_T, target, at, win),
           !writable, "compare_and_swap", page);
    expect(MPI_Put(ones, pieces, MPI_INT64_T, target, at, 1, spread, win), !writable,
           "put with gaps", page);
    expect(MPI_Put(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win), !writable, "put",
           page);
}

static void check_all(MPI_Win win, int rank, int size, const MPI_Aint* addresses) {
    const int target = (rank + 1) % size;
    MPI_Win_lock_all(0, win);
    for (int origin = 0; origin < size; origin++) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int turn = 0; rank == origin && turn < turns; turn++)
            for (int page = 0; page < pages; page++)
                check_page(win, target, addresses[target] + page * page_bytes, page);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    MPI_Type_vector(pieces, 1, 2, MPI_INT64_T, &spread);
    MPI_Type_commit(&spread);
    const size_t bytes = (size_t)pages * page_bytes;
    for (int flavour = created; flavour <= dynamic; flavour += dynamic - created) {
        MPI_Win win;
        MPI_Aint base = 0, addresses[16] = {0};
        char* memory =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(memory, 0, bytes);
        if (flavour == created) {
            MPI_Win_create(memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        } else {
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
            MPI_Win_attach(win, memory, (MPI_Aint)bytes);
            MPI_Get_address(memory, &base);
        }
        MPI_Allgather(&base, 1, MPI_AINT, addresses, 1, MPI_AINT, MPI_COMM_WORLD);
        munmap(memory + unmapped * page_bytes, page_bytes);
        mprotect(memory + read_only * page_bytes, page_bytes, PROT_READ);
        mprotect(memory + forbidden * page_bytes, page_bytes, PROT_NONE);
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        check_all(win, rank, size, addresses);
        int64_t found;
        memcpy(&found, memory, sizeof found);
        CHECK(found == 5, "%s: %ld was put", flavour_names[flavour], (long)found);
        memcpy(&found, memory + read_only * page_bytes, sizeof found);
        CHECK(found == 0, "%s: %ld in read-only memory", flavour_names[flavour], (long)found);
        if (flavour == dynamic)
            MPI_Win_detach(win, memory);
        MPI_Win_free(&win);
        munmap(memory, bytes);
    }
    MPI_Type_free(&spread);
    MPI_Finalize();
    return 0;
}
