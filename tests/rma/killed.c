/* mpiexec --keep-going: rank 1 is killed in an epoch, or between any two instructions of a call.
   Who waits for it gets an error that names it, and others go on.
       rma.killed exclusive | shared | start | wait | test | fence | late | barrier |
                  accumulate | locks */
#include <signal.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "window.h"

enum { operands = 4096 };

static Window window;
static int rank, size;

static void expect_end(int code, const char* call) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    CHECK(check_class(code) == MPI_ERR_PROC_ABORTED, "%s: class %d", call, check_class(code));
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, "rank 1 has ended") != NULL, "%s: \"%s\"", call, text);
}

/* Rank 1 holds the mutex of rank 0's memory nearly all the time. */
static void accumulate_for_ever(void) {
    static long double factors[operands];
    for (;;)
        MPI_Accumulate(factors, operands, MPI_LONG_DOUBLE, 0, window_at(&window, 0, 0), operands,
                       MPI_LONG_DOUBLE, MPI_PROD, window.win);
}

/* Locks of all kinds, given back at once. Returns the first error. */
static int lock_and_unlock(unsigned turn) {
    const int64_t one = 1;
    int64_t before;
    int code;
    if (turn % 8 == 0) {
        if ((code = MPI_Win_lock_all(0, window.win)) != MPI_SUCCESS)
            return code;
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, window.win);
        return MPI_Win_unlock_all(window.win);
    }
    const int target = (int)(turn / 3 % 2) * 2;
    code =
        MPI_Win_lock(turn % 3 == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, window.win);
    if (code != MPI_SUCCESS)
        return code;
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, 0, MPI_SUM, window.win);
    return MPI_Win_unlock(target, window.win);
}

/* Rank 0 kills rank 1, which takes and gives back locks all the time. The others go on until one of
   the locks is lost, or for a second. */
static void lock_while_killed(pid_t victim) {
    const double begin = MPI_Wtime();
    const double end = begin + (double)(victim % 97) * 2e-4;
    int code = MPI_SUCCESS, killed = 0;
    for (unsigned turn = (unsigned)rank; code == MPI_SUCCESS; turn++) {
        code = lock_and_unlock(turn);
        if (rank == 0 && !killed && MPI_Wtime() > end) {
            kill(victim, SIGKILL);
            killed = 1;
        }
        if (rank != 1 && MPI_Wtime() > begin + 1)
            break;
    }
    if (code != MPI_SUCCESS)
        expect_end(code, "a lock");
}

static void accumulate_after(pid_t victim) {
    const int64_t one = 1;
    usleep(100000);
    if (rank == 0)
        kill(victim, SIGKILL);
    for (int i = 0; i < 100000; i++)
        CHECK(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 2 * operands - 1, 1, MPI_INT64_T, MPI_SUM,
                             window.win) == MPI_SUCCESS,
              "an accumulate operation");
    CHECK(MPI_Win_unlock_all(window.win) == MPI_SUCCESS, "MPI_Win_unlock_all");
}

/* Rank 0 posts to both others, of which rank 1 never completes, and rank 2 does so later than that.
   The next exposure ends with rank 2's next completion and not with this one. */
static void complete_late(MPI_Group all) {
    const int64_t seven = 7;
    const int origins[2] = {1, 2}, target = 0;
    MPI_Group both, its, own;
    MPI_Group_incl(all, 2, origins, &both);
    MPI_Group_incl(all, 1, &origins[1], &its);
    MPI_Group_incl(all, 1, &target, &own);
    if (rank == 0) {
        MPI_Win_post(both, 0, window.win);
        expect_end(MPI_Win_wait(window.win), "MPI_Win_wait");
        CHECK(MPI_Win_post(its, 0, window.win) == MPI_SUCCESS, "the next MPI_Win_post");
        CHECK(MPI_Win_wait(window.win) == MPI_SUCCESS, "the next MPI_Win_wait");
        CHECK(window.words[0] == 7, "%ld: rank 2 had not completed", (long)window.words[0]);
        return;
    }
    MPI_Win_start(own, 0, window.win);
    usleep(400000);
    MPI_Win_complete(window.win);
    MPI_Win_start(own, 0, window.win);
    usleep(100000);
    MPI_Put(&seven, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window.win);
    MPI_Win_complete(window.win);
}

int main(int argc, char** argv) {
    int code = MPI_SUCCESS, over, first = 1;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 3);
    const char* epoch = argc > 1 ? argv[1] : "exclusive";
    const int accumulates = strcmp(epoch, "accumulate") == 0;
    MPI_Group all, killed;
    pid_t pid = getpid();
    window = window_make(allocated, 2 * operands, MPI_COMM_WORLD);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &first, &killed);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Bcast(&pid, (int)sizeof pid, MPI_BYTE, 1, MPI_COMM_WORLD);
    if (accumulates)
        MPI_Win_lock_all(0, window.win);
    else if (rank == 1 && strcmp(epoch, "exclusive") == 0)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
    else if (rank == 1 && strcmp(epoch, "shared") == 0)
        MPI_Win_lock_all(0, window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 && accumulates)
        accumulate_for_ever();
    if (rank == 1 && strcmp(epoch, "locks") != 0) {
        usleep(100000);
        raise(SIGKILL);
    }
    if (strcmp(epoch, "start") == 0) {
        expect_end(MPI_Win_start(killed, 0, window.win), "MPI_Win_start");
    } else if (strcmp(epoch, "wait") == 0) {
        MPI_Win_post(killed, 0, window.win);
        expect_end(MPI_Win_wait(window.win), "MPI_Win_wait");
    } else if (strcmp(epoch, "test") == 0) {
        MPI_Win_post(killed, 0, window.win);
        while (code == MPI_SUCCESS)
            code = MPI_Win_test(window.win, &over);
        expect_end(code, "MPI_Win_test");
    } else if (strcmp(epoch, "late") == 0) {
        complete_late(all);
    } else if (strcmp(epoch, "fence") == 0) {
        expect_end(MPI_Win_fence(0, window.win), "MPI_Win_fence");
        expect_end(MPI_Win_fence(0, window.win), "the next MPI_Win_fence");
        expect_end(MPI_Win_free(&window.win), "MPI_Win_free");
    } else if (strcmp(epoch, "barrier") == 0) {
        int64_t sum = rank;
        expect_end(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        expect_end(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD),
                   "MPI_Allreduce");
    } else if (accumulates) {
        accumulate_after(pid);
    } else if (strcmp(epoch, "locks") == 0) {
        lock_while_killed(pid);
    } else {
        expect_end(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win), "MPI_Win_lock");
    }
    /* Locks that nobody held are as before. */
    if (strcmp(epoch, "exclusive") == 0) {
        CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window.win) == MPI_SUCCESS, "rank 2's lock");
        MPI_Win_unlock(2, window.win);
    }
    /* Neither of the two ends before the other has heard of rank 1's end. */
    MPI_Sendrecv(&first, 1, MPI_INT, 2 - rank, 0, &over, 1, MPI_INT, 2 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    printf("rank %d has heard of it\n", rank);
    fflush(stdout);
    _exit(0);
}
