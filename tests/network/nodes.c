/* Whether ranks are where mpiexec has placed them, and what needs one node is refused on several.
 *
 *     nodes RANKS_PER_NODE     (nodes filled one after the other)
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d: not %s\n", __FILE__, __LINE__, rank, #condition);     \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)

static int class_of(int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int per_node = argc > 1 ? atoi(argv[1]) : 1;

    MPI_Comm here;
    int rank_here, size_here;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, &rank_here);
    MPI_Comm_size(here, &size_here);
    CHECK(size_here == per_node);
    CHECK(rank_here == rank % per_node);

    /* Shared memory: of one node only. */
    int cell = -1;
    int* memory = NULL;
    MPI_Win window = MPI_WIN_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int code = MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL,
                                             MPI_COMM_WORLD, &memory, &window);
    CHECK(class_of(code) == MPI_ERR_RMA_SHARED);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, here, &memory, &window);
    *memory = -1;
    MPI_Win_fence(0, window);
    MPI_Put(&rank, 1, MPI_INT, (rank_here + 1) % size_here, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK(*memory == rank - rank_here + (rank_here + size_here - 1) % size_here);
    MPI_Win_free(&window);

    /* One rank of each node: messages of the library only, and a clock that nodes don't share. */
    MPI_Comm leaders;
    MPI_Comm_split(MPI_COMM_WORLD, rank_here == 0 ? 0 : MPI_UNDEFINED, -rank, &leaders);
    if (rank_here == 0) {
        int sum = 0, leader;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, leaders);
        const int nodes = size / per_node;
        CHECK(sum == per_node * nodes * (nodes - 1) / 2);
        MPI_Comm_rank(leaders, &leader);
        CHECK(leader == nodes - 1 - rank / per_node);
        MPI_Comm_free(&leaders);
    }
    int *global, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &global, &flag);
    CHECK(flag && *global == 0);

    /* A synchronous send completes when it has been received. */
    const int next = (rank + per_node) % size, previous = (rank + size - per_node) % size;
    MPI_Request request;
    int done = 0;
    MPI_Issend(&rank, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &request);
    for (int look = 0; look < 1000; look++) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        CHECK(!done);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(&cell, 1, MPI_INT, previous, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(cell == previous);
    MPI_Wait(&request, MPI_STATUS_IGNORE);

    MPI_Comm_free(&here);
    MPI_Finalize();
    return 0;
}
