/* mpiexec --keep-going: rank 1 is killed in an epoch. Who waits for it gets an error that names it,
   and others go on.
       rma.killed exclusive | shared | start | wait */
#include <signal.h>
#include <unistd.h>

#include "window.h"

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 3);
    const char* epoch = argc > 1 ? argv[1] : "exclusive";
    char text[MPI_MAX_ERROR_STRING];
    int length, code, first = 1;
    MPI_Group all, killed;
    Window window = window_make(allocated, 4, MPI_COMM_WORLD);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &first, &killed);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    if (rank == 1) {
        if (strcmp(epoch, "exclusive") == 0)
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
        else if (strcmp(epoch, "shared") == 0)
            MPI_Win_lock_all(0, window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        usleep(100000);
        raise(SIGKILL);
    }
    if (strcmp(epoch, "start") == 0) {
        code = MPI_Win_start(killed, 0, window.win);
    } else if (strcmp(epoch, "wait") == 0) {
        MPI_Win_post(killed, 0, window.win);
        code = MPI_Win_wait(window.win);
    } else {
        code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
    }
    CHECK(check_class(code) == MPI_ERR_PROC_ABORTED, "class %d", check_class(code));
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, "rank 1 has ended") != NULL, "\"%s\"", text);
    /* Locks that nobody held are as before. */
    if (strcmp(epoch, "exclusive") == 0) {
        CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window.win) == MPI_SUCCESS, "rank 2's lock");
        MPI_Win_unlock(2, window.win);
    }
    printf("rank %d has heard of it\n", rank);
    fflush(stdout);
    _exit(0);
}
