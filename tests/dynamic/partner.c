/* One side of worlds.py's cases: the first argument says what it does. */
#include <dirent.h>
#include <malloc.h>
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

/* Worlds one after the other. */
static void spawn_in_cycles(char** argv, int cycles) {
    const int warm = cycles / 4;
    size_t before = 0;
    for (int cycle = 0; cycle < cycles; ++cycle) {
        before = cycle == warm ? mallinfo2().uordblks : before;
        MPI_Comm inter = spawn(argv, 1);
        MPI_Barrier(inter);
        MPI_Comm_disconnect(&inter);
    }
    if (getenv("SHOWS_MEMORY") != NULL) {
        printf("%zd bytes in %d cycles\n", (ssize_t)(mallinfo2().uordblks - before), cycles - warm);
    }
    say("done");
}

/* Ranks of both worlds wait for a message that never comes. */
static void wait_for_ever(MPI_Comm inter) {
    int value;
    say("waits");
    MPI_Recv(&value, 1, MPI_INT, 0, 99, inter, MPI_STATUS_IGNORE);
}

static int class_of(int code) {
    int error_class;
    MPI_Error_class(code, &error_class);
    return error_class;
}

static MPI_Info seconds(const char* text) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", text);
    return info;
}

/* Spawns a child for each line of its input. */
static void spawn_by_line(char** argv) {
    char line[8], text[MPI_MAX_ERROR_STRING];
    MPI_Comm child;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    say("ready");
    while (fgets(line, sizeof line, stdin) != NULL) {
        int length, code = MPI_Comm_spawn(argv[0], argv + 1, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF,
                                          &child, MPI_ERRCODES_IGNORE);
        if (code == MPI_SUCCESS) {
            meet(child);
        } else {
            MPI_Error_string(code, text, &length);
            say(text);
        }
    }
}

/* Spawns children that come to MPI_Init after a while. */
static void spawn_late(char** argv) {
    MPI_Comm children;
    char* arguments[] = {"-c", "echo late; sleep 1; exec \"$0\" \"$@\"", argv[0], argv[1], argv[2],
                         NULL};
    MPI_Comm_spawn("sh", arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                   MPI_ERRCODES_IGNORE);
}

/* Two sessions; the child of the second one dies. */
static void spawn_in_sessions(char** argv) {
    for (int turn = 0; turn < 2; ++turn) {
        MPI_Session session;
        MPI_Group group;
        MPI_Comm comm, child;
        char* arguments[] = {(char*)(turn == 0 ? "family" : "child_dies"), NULL};
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        MPI_Group_from_session_pset(session, "mpi://SELF", &group);
        MPI_Comm_create_from_group(group, "sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
        MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, comm, &child, MPI_ERRCODES_IGNORE);
        if (turn == 0) {
            int own = 0, sum;
            MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, child);
            MPI_Comm_disconnect(&child);
        } else {
            wait_for_ever(child);
        }
        MPI_Comm_free(&comm);
        MPI_Group_free(&group);
        MPI_Session_finalize(&session);
    }
}

/* The process leaves MPI before its child does, which goes on alone. */
static void spawn_in_last_session(char** argv) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm, child;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    MPI_Comm_create_from_group(group, "last", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    char* arguments[] = {"goes_on", NULL};
    MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, comm, &child, MPI_ERRCODES_IGNORE);
    MPI_Comm_disconnect(&child);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
}

static int descriptors(void) {
    int count = 0;
    DIR* folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL) {
        ++count;
    }
    closedir(folder);
    return count;
}

/* Calls at a closed port of the parent's more often than a block of contexts has numbers. */
static void call_in_vain(MPI_Comm parent, const char* port) {
    enum { more_than_a_block = 4200 };
    MPI_Comm inter;
    int before = 0, refused = 0;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int turn = 0; turn < more_than_a_block; ++turn) {
        int code = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        refused += class_of(code) == MPI_ERR_PORT;
        before = turn == 0 ? descriptors() : before;
    }
    printf("%s\n", refused == more_than_a_block && descriptors() == before ? "refused" : "wrong");
    fflush(stdout);
    MPI_Barrier(parent);
    MPI_Comm_disconnect(&parent);
}

static void spawn_caller(char** argv) {
    MPI_Comm child;
    char port[MPI_MAX_PORT_NAME];
    char* arguments[] = {argv[1], port, NULL};
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Close_port(port);
    MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child,
                   MPI_ERRCODES_IGNORE);
    MPI_Barrier(child);
    MPI_Comm_disconnect(&child);
}

/* Rank 1 calls rank 0, and is killed or stopped. */
static void call_and_end(int number) {
    MPI_Comm inter;
    char port[MPI_MAX_PORT_NAME];
    int pid = (int)getpid(), code;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&pid, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        usleep(200000);
        kill(pid, number);
        code = MPI_Comm_accept(port, seconds("0.3"), 0, MPI_COMM_SELF, &inter);
        kill(pid, SIGCONT);
        MPI_Close_port(port);
    } else {
        MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&pid, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        code = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    }
    printf("%s\n", class_of(code) == MPI_ERR_PORT ? "alone" : "met");
    fflush(stdout);
    if (number == SIGKILL) {
        _exit(0); /* the world has lost a rank */
    }
}

/* Jobs that connect by ports. */
static void connect_jobs(const char* part, const char* argument) {
    MPI_Comm inter;
    char port[MPI_MAX_PORT_NAME];
    if (strcmp(part, "serve") == 0) { /* NAME */
        if (rank == 0) {
            MPI_Open_port(MPI_INFO_NULL, port);
            if (argument != NULL) {
                MPI_Publish_name(argument, MPI_INFO_NULL, port);
            }
            say(port);
        }
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        meet(inter);
    } else if (strcmp(part, "call") == 0) { /* PORT */
        MPI_Comm_connect(argument, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        meet(inter);
    } else if (strcmp(part, "look_up") == 0) { /* NAME */
        MPI_Lookup_name(argument, MPI_INFO_NULL, port);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        meet(inter);
    } else if (strcmp(part, "not_accepted") == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    } else if (strcmp(part, "killed_caller") == 0) {
        call_and_end(SIGKILL);
    } else if (strcmp(part, "stopped_caller") == 0) {
        call_and_end(SIGSTOP);
    }
}

int main(int argc, char** argv) {
    MPI_Comm inter, parent;
    const char* part = argv[1];
    if (strstr(part, "session") != NULL) {
        (strcmp(part, "sessions") == 0 ? spawn_in_sessions : spawn_in_last_session)(argv);
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (strcmp(part, "goes_on") == 0) {
        MPI_Comm_disconnect(&parent);
        usleep(300000);
        say("went on");
    } else if (strcmp(part, "wait") == 0) {
        wait_for_ever(parent != MPI_COMM_NULL ? parent : spawn(argv, 2));
    } else if (strcmp(part, "child_dies") == 0) {
        if (parent != MPI_COMM_NULL) {
            raise(SIGKILL);
        }
        wait_for_ever(spawn(argv, 1));
    } else if (strcmp(part, "late_children") == 0) {
        spawn_late(argv);
    } else if (strcmp(part, "child_aborts") == 0) {
        if (parent != MPI_COMM_NULL) {
            MPI_Abort(MPI_COMM_WORLD, 7);
        }
        wait_for_ever(spawn(argv, 1));
    } else if (strcmp(part, "by_line") == 0) {
        if (parent != MPI_COMM_NULL) {
            meet(parent);
        } else {
            spawn_by_line(argv);
        }
    } else if (strcmp(part, "in_vain") == 0) { /* the child: PORT */
        if (parent != MPI_COMM_NULL) {
            call_in_vain(parent, argv[2]);
        } else {
            spawn_caller(argv);
        }
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
            spawn_in_cycles(argv, atoi(argv[2]));
        }
    } else if (strcmp(part, "family") == 0) {
        if (parent != MPI_COMM_NULL) {
            meet(parent);
        } else {
            meet(spawn(argv, 3));
        }
    }
    connect_jobs(part, argv[2]);
    MPI_Finalize();
    return 0;
}
