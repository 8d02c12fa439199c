/* Ranks that wait for the end of their threads, again and again: the long way once, then often. As
   fibres they let other ranks run meanwhile. */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <threads.h>
#include <unistd.h>

static void* slow(void* value) {
    usleep(50000);
    return value;
}

static void* quick(void* value) {
    return value;
}

static int quick_c11(void* value) {
    return (int)(intptr_t)value;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, wrong = 0, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 203; ++turn) {
        pthread_t thread, other;
        void* result = NULL;
        wrong |= pthread_create(&thread, NULL, turn < 3 ? slow : quick, &thread) != 0;
        wrong |= pthread_create(&other, NULL, quick, &other) != 0;
        wrong |= pthread_join(thread, &result) != 0 || result != &thread;
        wrong |= pthread_join(other, NULL) != 0;
        thrd_t third;
        int number = 0;
        wrong |= thrd_create(&third, quick_c11, (void*)(intptr_t)-turn) != thrd_success;
        wrong |= thrd_join(third, &number) != thrd_success || number != -turn;
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
    MPI_Finalize();
    return all;
}
