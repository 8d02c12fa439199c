/* Small puts to ranks of other nodes, which leave together, are at their targets after whatever
 * completes them.
 *
 *     puts      (at least 3 ranks; some on other nodes)
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { numbers = 5000 };

static int rank, size, wrong;
static long* memory;
static MPI_Win window;

static long value_of(int way, int target, int place) {
    return way * 1000003L + target * 10007L + place;
}

/* Each second number, then the others: requests are full of pieces, and with a get in between. */
static void put_all(int way, int target) {
    static long values[numbers];
    for (int place = 0; place < numbers; place++) {
        values[place] = value_of(way, target, place);
    }
    for (int place = 0; place < numbers; place += 2) {
        MPI_Put(&values[place], 1, MPI_LONG, target, place, 1, MPI_LONG, window);
    }
    long got = 0;
    MPI_Get(&got, 1, MPI_LONG, target, numbers, 1, MPI_LONG, window);
    for (int place = 1; place < numbers; place += 2) {
        MPI_Put(&values[place], 1, MPI_LONG, target, place, 1, MPI_LONG, window);
    }
    memset(values, 0, sizeof values); /* they have been copied, or are at the target */
}

static void check(int way) {
    MPI_Win_sync(window);
    for (int place = 0; place < numbers; place++) {
        if (memory[place] != value_of(way, rank, place)) {
            printf("rank %d: number %d of way %d is %ld\n", rank, place, way, memory[place]);
            wrong = 1;
            break;
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Ranks look when rank 0 has told them that it has completed what is theirs. */
static void tell(int target) {
    MPI_Send(NULL, 0, MPI_BYTE, target, 0, MPI_COMM_WORLD);
}

static void be_told(void) {
    if (rank != 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void flush_one_after_the_other(int way) {
    if (rank == 0) {
        MPI_Win_lock_all(0, window);
        for (int target = 0; target < size; target++) {
            put_all(way, target);
        }
        MPI_Win_flush(0, window);
        for (int target = size - 1; target > 0; target--) {
            MPI_Win_flush(target, window);
            tell(target);
        }
    }
    be_told();
    check(way);
    if (rank == 0) {
        MPI_Win_unlock_all(window);
    }
}

static void flush_all_or_unlock_all(int way, int flushes) {
    if (rank == 0) {
        MPI_Win_lock_all(0, window);
        for (int target = 0; target < size; target++) {
            put_all(way, target);
        }
        flushes ? MPI_Win_flush_all(window) : MPI_Win_unlock_all(window);
        for (int target = 1; target < size; target++) {
            tell(target);
        }
    }
    be_told();
    check(way);
    if (rank == 0 && flushes) {
        MPI_Win_unlock_all(window);
    }
}

static void unlock_each(int way) {
    for (int target = 0; rank == 0 && target < size; target++) {
        MPI_Win_lock(target % 2 == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, window);
        put_all(way, target);
        MPI_Win_unlock(target, window);
        if (target != 0) {
            tell(target);
        }
    }
    be_told();
    check(way);
}

/* The last rank writes into all, while all others do nothing. */
static void fence(int way) {
    MPI_Win_fence(0, window);
    for (int target = 0; rank == size - 1 && target < size; target++) {
        put_all(way, target);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    check(way);
}

static void post_and_complete(int way) {
    MPI_Group world, first;
    const int zero = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &zero, &first);
    MPI_Win_post(first, 0, window);
    if (rank == 0) {
        MPI_Win_start(world, 0, window);
        for (int target = 0; target < size; target++) {
            put_all(way, target);
        }
        MPI_Win_complete(window);
    }
    MPI_Win_wait(window);
    check(way);
    MPI_Group_free(&first);
    MPI_Group_free(&world);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate((numbers + 1) * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &memory, &window);
    flush_one_after_the_other(1);
    flush_all_or_unlock_all(2, 1);
    flush_all_or_unlock_all(3, 0);
    unlock_each(4);
    fence(5);
    post_and_complete(6);
    MPI_Win_free(&window);
    MPI_Finalize();
    return wrong;
}
