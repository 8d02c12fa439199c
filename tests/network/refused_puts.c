/* Small puts to memory that its rank has unmapped are an error of what completes them. What was put
 * elsewhere meanwhile is there all the same.
 *
 *     refused_puts      (2 ranks on 2 nodes)
 */
#include <mpi.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { page_words = 512, put_words = 8 * 1024 }; /* eight requests, as many as wait for answers */
static const useconds_t away_us = 300000;

static int wrong;

static void expect_class(int code, int expected, const char* call) {
    int found = MPI_SUCCESS;
    if (code != MPI_SUCCESS) {
        MPI_Error_class(code, &found);
    }
    if (found != expected) {
        printf("%s: class %d, not %d\n", call, found, expected);
        wrong = 1;
    }
}

/* Each second word of the page that is not there, again and again: many requests are under way. */
static void put(MPI_Win window) {
    for (long number = 0; number < put_words; number++) {
        const MPI_Aint place = page_words + 2 * (number % (page_words / 2));
        const int code = MPI_Put(&number, 1, MPI_LONG, 1, place, 1, MPI_LONG, window);
        if (code != MPI_SUCCESS) { /* of an earlier one */
            expect_class(code, MPI_ERR_RMA_RANGE, "MPI_Put");
        }
    }
    for (long number = 0; number < page_words; number += 2) {
        MPI_Put(&number, 1, MPI_LONG, 1, number, 1, MPI_LONG, window);
    }
}

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long* const memory = mmap(NULL, 2 * page_words * sizeof(long), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Win window;
    MPI_Win_create(memory, 2 * page_words * sizeof(long), sizeof(long), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    munmap(memory + page_words, page_words * sizeof(long));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    if (rank == 0) {
        put(window);
        expect_class(MPI_Win_flush(1, window), MPI_ERR_RMA_RANGE, "MPI_Win_flush");
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        usleep(away_us);
        MPI_Barrier(MPI_COMM_WORLD);
        for (long number = 0; number < page_words; number += 2) {
            if (memory[number] != number) {
                printf("word %ld is %ld after the flush\n", number, memory[number]);
                wrong = 1;
                break;
            }
        }
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return wrong;
}
