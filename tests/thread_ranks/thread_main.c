/* MPI_Is_thread_main is true in the thread that initialised, also after the kernel's thread below a
 * rank that is a fibre has become another, and false in other threads. With an argument, the
 * kernel's thread must have changed at some rank.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { rounds = 400 };

static int is_main(void) {
    int flag = -1;
    MPI_Is_thread_main(&flag);
    return flag;
}

static void* ask(void* answer) {
    *(int*)answer = is_main();
    return NULL;
}

int main(int argc, char** argv) {
    int provided, rank, wrong = 0, moved = 0, in_other = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const pid_t begin = gettid();
    for (int round = 0; round < rounds; ++round) {
        usleep((useconds_t)(100 * ((rank + round) % 4)));
        for (volatile int work = 0; work < 20000 * ((rank + round) % 3); ++work) {
        }
        moved += gettid() != begin;
        wrong += is_main() != 1;
    }
    pthread_t thread;
    pthread_create(&thread, NULL, ask, &in_other);
    pthread_join(thread, NULL);
    wrong += in_other != 0;
    MPI_Allreduce(MPI_IN_PLACE, &moved, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (wrong != 0)
        printf("rank %d: %d wrong answers\n", rank, wrong);
    if (argc > 1 && moved == 0) {
        printf("rank %d: no rank's thread has changed\n", rank);
        ++wrong;
    }
    MPI_Finalize();
    return wrong != 0;
}
