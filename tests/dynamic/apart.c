/* Two processes join by a socket, but one is in a network of its own, where no other process finds
   it: both get an error, whichever of the two would have had to come, and nothing is left in the
   socket. Not of one job: each is started alone. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../point_to_point/check.h"

enum { rounds = 6 }; /* who has to come is left to chance */

static void check_joins(int socket) {
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < rounds; i++) {
        MPI_Comm joined = MPI_COMM_WORLD;
        int found = MPI_SUCCESS;
        MPI_Error_class(MPI_Comm_join(socket, &joined), &found);
        CHECK(found == MPI_ERR_PORT && joined == MPI_COMM_NULL, "class %d", found);
        char letter = (char)('a' + i), other = 0;
        CHECK(write(socket, &letter, 1) == 1 && read(socket, &other, 1) == 1, "socket");
        CHECK(other == letter, "%d was left in the socket", other);
    }
    MPI_Finalize();
}

int main(void) {
    int ends[2], status = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return 1;
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
            printf("skipped: no network of its own\n");
            return 77;
        }
        check_joins(ends[1]);
        return 0;
    }
    close(ends[1]);
    char byte;
    /* The child is there, or has skipped: it writes its first word only after unshare(). */
    if (recv(ends[0], &byte, 1, MSG_PEEK) == 1)
        check_joins(ends[0]);
    waitpid(child, &status, 0);
    return status == 0 ? 0 : WEXITSTATUS(status);
}
