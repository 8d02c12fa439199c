/* One side of worlds.py's cases: the first argument says what it does. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

static int rank;

static void say(const char* text) {
    if (rank == 0) {
        printf("%s\n", text);
        fflush(stdout);
    }
}

/* Both sides send what they have, and say what they got. */
static void meet(MPI_Comm inter) {
    int size, own, sum = 0;
    char text[64];
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    own = size * 100;
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, inter);
    snprintf(text, sizeof text, "met %d", sum);
    say(text);
    MPI_Comm_disconnect(&inter);
}

/* Children that have this program's arguments. */
static MPI_Comm spawn(char** argv, int processes) {
    MPI_Comm children;
    MPI_Comm_spawn(argv[0], argv + 1, processes, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                   MPI_ERRCODES_IGNORE);
    return children;
}

/* Ranks of both worlds wait for a message that never comes. */
static void wait_for_ever(MPI_Comm inter) {
    int value;
    say("waits");
    MPI_Recv(&value, 1, MPI_INT, 0, 99, inter, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    MPI_Comm inter, parent;
    char port[MPI_MAX_PORT_NAME];
    const char* part = argv[1];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (strcmp(part, "serve") == 0) { /* NAME */
        if (rank == 0) {
            MPI_Open_port(MPI_INFO_NULL, port);
            if (argc > 2) {
                MPI_Publish_name(argv[2], MPI_INFO_NULL, port);
            }
            say(port);
        }
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        meet(inter);
    } else if (strcmp(part, "call") == 0) { /* PORT */
        MPI_Comm_connect(argv[2], MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        meet(inter);
    } else if (strcmp(part, "look_up") == 0) { /* NAME */
        MPI_Lookup_name(argv[2], MPI_INFO_NULL, port);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        meet(inter);
    } else if (strcmp(part, "wait") == 0) {
        wait_for_ever(parent != MPI_COMM_NULL ? parent : spawn(argv, 2));
    } else if (strcmp(part, "child_dies") == 0) {
        if (parent != MPI_COMM_NULL) {
            raise(SIGKILL);
        }
        wait_for_ever(spawn(argv, 1));
    } else if (strcmp(part, "child_aborts") == 0) {
        if (parent != MPI_COMM_NULL) {
            MPI_Abort(MPI_COMM_WORLD, 7);
        }
        wait_for_ever(spawn(argv, 1));
    } else if (strcmp(part, "disconnected_child_dies") == 0) {
        if (parent != MPI_COMM_NULL) {
            MPI_Comm_disconnect(&parent);
            raise(SIGKILL);
        }
        inter = spawn(argv, 1);
        MPI_Comm_disconnect(&inter);
        sleep(2);
        MPI_Barrier(MPI_COMM_WORLD);
        say("goes on");
    } else if (strcmp(part, "cycles") == 0) { /* N */
        if (parent != MPI_COMM_NULL) {
            MPI_Barrier(parent);
            MPI_Comm_disconnect(&parent);
        } else {
            for (int cycle = 0; cycle < atoi(argv[2]); ++cycle) {
                inter = spawn(argv, 1);
                MPI_Barrier(inter);
                MPI_Comm_disconnect(&inter);
            }
            say("done");
        }
    } else if (strcmp(part, "family") == 0) {
        if (parent != MPI_COMM_NULL) {
            meet(parent);
        } else {
            meet(spawn(argv, 3));
        }
    }
    MPI_Finalize();
    return 0;
}
