/* Threads that each make partitions of one send ready, while others wait for the whole, and for
 * partitions of what comes. */
#include <pthread.h>

#include "check.h"

enum { threads = 4, each = 8, partitions = threads * each, count = 300, rounds = 20 };

static int rank, size;
static int out[partitions * count], in[partitions * count];
static MPI_Request sends, receives;

static void* work(void* own) {
    int number = *(int*)own;
    for (int part = 0; part < each; part++) {
        int partition = part * threads + number;
        for (int i = 0; i < count; i++)
            out[partition * count + i] += rank + partition;
        MPI_Pready(partition, sends);
    }
    for (int part = 0; part < each; part++) {
        int partition = number * each + part, flag = 0;
        while (!flag)
            MPI_Parrived(receives, partition, &flag);
        CHECK(in[partition * count] != -1 && in[(partition + 1) * count - 1] != -1,
              "partition %d is not there", partition);
    }
    return NULL;
}

static void* wait_for_send(void* nothing) {
    MPI_Wait(&sends, MPI_STATUS_IGNORE);
    return nothing;
}

int main(int argc, char** argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    check_ranks(&rank, &size, 1);
    int before = (rank - 1 + size) % size;
    MPI_Psend_init(out, partitions, count, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &sends);
    MPI_Precv_init(in, partitions, count, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &receives);
    int numbers[threads];
    for (int round = 1; round <= rounds; round++) {
        memset(in, -1, sizeof in);
        MPI_Start(&sends);
        MPI_Start(&receives);
        pthread_t workers[threads], waiter;
        pthread_create(&waiter, NULL, wait_for_send, NULL);
        for (int i = 0; i < threads; i++) {
            numbers[i] = i;
            pthread_create(&workers[i], NULL, work, &numbers[i]);
        }
        for (int i = 0; i < threads; i++)
            pthread_join(workers[i], NULL);
        pthread_join(waiter, NULL);
        MPI_Wait(&receives, MPI_STATUS_IGNORE);
        for (int i = 0; i < partitions * count; i++)
            CHECK(in[i] == round * (before + i / count), "round %d: in[%d] is %d", round, i, in[i]);
    }
    MPI_Request_free(&sends);
    MPI_Request_free(&receives);
    MPI_Finalize();
    return 0;
}
