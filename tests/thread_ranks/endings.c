/* A rank without MPI that ends, or does something else, as it is told.
       endings WAY [RANK]     the rank (default: all) does so, the others wait for the end of the
   job or, where it does not end all, return */
#define _GNU_SOURCE // close_range

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define TRAP() __asm__ volatile("int3")
#else
#define TRAP() raise(SIGTRAP)
#endif

static int counter;

static int descend(int depth) {
    volatile char room[4096];
    room[0] = (char)depth;
    return depth == 0 ? 0 : descend(depth + 1) + room[0];
}

static void crash(void) {
    *(volatile int*)8 = 1;
}

static void* crash_in_thread(void* unused) {
    crash();
    return unused;
}

static void* exit_in_thread(void* unused) {
    exit(4);
    return unused;
}

static void say_signal(int number) {
    printf("rank %s has signal %d\n", getenv("WARREN_RANK"), number);
    fflush(stdout);
}

static void say_signal_and_exit(int number) {
    say_signal(number);
    _exit(12);
}

static void in_thread(void* (*function)(void*)) {
    pthread_t thread;
    pthread_create(&thread, NULL, function, NULL);
    pthread_join(thread, NULL);
}

/* Until all ranks are here, and none loads its program any more. */
static int gather(const char* path) {
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    const off_t size = atoi(getenv("WARREN_SIZE"));
    struct stat started;
    const int status = write(file, "+", 1) != 1;
    while (stat(path, &started) == 0 && started.st_size < size) {
        usleep(1000);
    }
    return status;
}

static int ends_all(const char* way) {
    return strcmp(way, "segv") == 0 || strcmp(way, "abort") == 0 || strcmp(way, "fpe") == 0 ||
           strcmp(way, "handled_abort") == 0 || strcmp(way, "overflow") == 0 ||
           strcmp(way, "heap") == 0 || strcmp(way, "thread_segv") == 0 ||
           strcmp(way, "trap") == 0 || strcmp(way, "pipe") == 0 || strcmp(way, "closed_segv") == 0;
}

static int do_say(int rank, int argc, char** argv) {
    (void)argv;
    char text[1000];
    printf("rank %d of %s in %s: %s, %d words, counted %d\n", rank, getenv("WARREN_SIZE"),
           getcwd(text, sizeof text), getenv("SAID"), argc, counter);
    return 0;
}

static int do_read(int rank, int argc, char** argv) {
    (void)rank;
    (void)argc;
    (void)argv;
    char text[1000];
    printf("%zu bytes\n", fread(text, 1, sizeof text, stdin));
    return 0;
}

static int do_children(int rank, int argc, char** argv) {
    (void)argc;
    (void)argv;
    int children = 0, status = 0;
    for (int child = 0; child < 3; ++child) {
        if (fork() == 0) {
            usleep(1000 * (unsigned)(child + rank % 2));
            _exit(10 * rank + child);
        }
    }
    while (wait(&status) > 0) {
        children += WEXITSTATUS(status) / 10 == rank ? 1 : 100;
    }
    printf("%d children\n", children);
    return 0;
}

static int do_redirect(int rank, int argc, char** argv) {
    (void)rank;
    (void)argc;
    (void)argv;
    /* By the C library's streams, by a child, and closed for good. */
    const int saved = dup(1);
    const int hidden = open("/dev/null", O_WRONLY);
    puts("before");
    fflush(stdout);
    dup2(hidden, 1);
    puts("hidden");
    fflush(stdout);
    int status = system("echo hidden too");
    dup2(saved, 1);
    close(saved);
    close(hidden);
    puts("back");
    fflush(stdout);
    status += system("echo child");
    close(1);
    return status + (write(1, "hidden", 6) == 6);
}

static int do_streams(int rank, int argc, char** argv) {
    (void)argc;
    (void)argv;
    /* What the even ranks end or redirect by their streams remains the odd ones'. */
    const int hidden = open("/dev/null", O_WRONLY);
    if (rank % 4 == 0) {
        const int place = fileno(stdout);
        int status = fclose(stdout) != 0;
        status += dup2(hidden, 1) != 1 || dup2(hidden, place) != place;
        return status + (write(1, "hidden", 6) != 6) + (write(place, "hidden", 6) != 6);
    }
    if (rank % 4 == 2) {
        puts("hidden"); /* not yet written */
        int status = dup2(hidden, fileno(stdout)) < 0;
        status += puts("hidden") < 0 || fflush(stdout) != 0;
        FILE* again = fdopen(1, "w");
        status += fputs("hidden", again) < 0 || fclose(again) != 0;
        return status + (write(1, "hidden", 6) == 6);
    }
    usleep(100000);
    puts("seen");
    fflush(stdout);
    return 0;
}

static int do_close_all(int rank, int argc, char** argv) {
    (void)rank;
    (void)argc;
    /* Of all descriptors the standard ones remain. */
    int status = gather(argv[2]);
    status += dup2(1, 0) != 0;
    close_range(3, ~0U, 0);
    closefrom(3);
    status += puts("seen") < 0 || fflush(stdout) != 0;
    return status + (write(0, "seen\n", 5) != 5) + (write(2, "seen\n", 5) != 5);
}

static int do_close_early(int rank, int argc, char** argv) {
    (void)argc;
    (void)argv;
    /* While others are being loaded: at once, or one by one. */
    if (rank % 2 == 0) {
        close_range(3, ~0U, 0);
    }
    for (int one = 3; rank % 2 == 1 && one < 1000; ++one) {
        close(one);
    }
    return puts("seen") < 0 || fflush(stdout) != 0;
}

static int do_full(int rank, int argc, char** argv) {
    (void)argc;
    /* With one descriptor left it can't redirect what it shares, and loses none by trying. */
    int status = gather(argv[2]), one = 0, last = -1;
    while (rank == 0 && (one = dup(2)) >= 0) {
        last = one;
    }
    for (int times = 0; last >= 0 && times < 2; ++times) {
        status += close(last) != 0 || dup2(2, 1) >= 0 || dup(2) != last;
    }
    return status;
}

static int do_poll(int rank, int argc, char** argv) {
    (void)argc;
    (void)argv;
    /* The first sleeps, and ends the others, which are always ready. */
    static char path[64];
    snprintf(path, sizeof path, "/tmp/mpi-test-endings.%d", (int)getpid());
    if (rank == 0) {
        usleep(100 * 1000);
        puts("slept");
        fflush(stdout);
        const int others = atoi(getenv("WARREN_SIZE")) - 1;
        const int file = open(path, O_CREAT | O_WRONLY, 0600);
        while (lseek(file, 0, SEEK_END) < others) { /* until all have seen it */
            usleep(1000);
        }
        unlink(path);
        return 0;
    }
    int file;
    while ((file = open(path, O_WRONLY | O_APPEND)) < 0) {
        sched_yield();
    }
    return write(file, "x", 1) != 1;
}

static int do_wait(int rank, int argc, char** argv) {
    (void)rank;
    (void)argc;
    (void)argv;
    int ends[2];
    char never;
    puts("waiting");
    fflush(stdout);
    return pipe(ends) != 0 ||
           read(ends[0], &never, 1) != 2; /* a call that no signal handler ends */
}

/* What a rank does instead of ending. */
static const struct {
    const char* way;
    int (*function)(int rank, int argc, char** argv);
} deeds[] = {
    {"say", do_say},
    {"read", do_read},
    {"children", do_children},
    {"redirect", do_redirect},
    {"streams", do_streams},
    {"close_all", do_close_all},
    {"close_early", do_close_early},
    {"full", do_full},
    {"poll", do_poll},
    {"wait", do_wait},
};

static int end(const char* way, int argc) {
    puts("about to end");
    if (strcmp(way, "return") == 0) {
        return argc > 2 ? 3 : 0;
    } else if (strcmp(way, "exit") == 0) {
        exit(9);
    } else if (strcmp(way, "quick_exit") == 0) {
        quick_exit(5);
    } else if (strcmp(way, "exit_thread") == 0) {
        in_thread(exit_in_thread);
    }
    fflush(stdout);
    if (strncmp(way, "closed", 6) == 0) {
        close_range(3, ~0U, 0);
    }
    if (strcmp(way, "_exit") == 0) {
        _exit(6);
    } else if (strcmp(way, "closed_exit") == 0) {
        exit(10);
    } else if (strcmp(way, "trap") == 0) {
        TRAP();
    } else if (strcmp(way, "pipe") == 0) {
        int ends[2] = {-1, -1};
        if (pipe(ends) == 0 && close(ends[0]) == 0 && write(ends[1], "", 1) == 1) {
            return 2;
        }
    } else if (strcmp(way, "segv") == 0 || strcmp(way, "handled_segv") == 0 ||
               strcmp(way, "closed_segv") == 0) {
        crash();
    } else if (strcmp(way, "abort") == 0 || strcmp(way, "handled_abort") == 0) {
        abort();
    } else if (strcmp(way, "fpe") == 0) {
        raise(SIGFPE);
    } else if (strcmp(way, "overflow") == 0) {
        return descend(1);
    } else if (strcmp(way, "heap") == 0) {
        void* block = malloc(10);
        void* volatile again = block;
        free(block);
        free(again);
    } else if (strcmp(way, "thread_segv") == 0) {
        in_thread(crash_in_thread);
    }
    return 1;
}

int main(int argc, char** argv) {
    const int rank = atoi(getenv("WARREN_RANK"));
    const char* way = argv[1];
    ++counter;
    for (size_t one = 0; one < sizeof deeds / sizeof deeds[0]; ++one) {
        if (strcmp(way, deeds[one].way) == 0) {
            return deeds[one].function(rank, argc, argv);
        }
    }
    if (strcmp(way, "handled_segv") == 0) {
        signal(SIGSEGV, rank == 1 ? say_signal_and_exit : say_signal);
    } else if (strcmp(way, "handled_abort") == 0) {
        struct sigaction action = {0};
        action.sa_handler = say_signal;
        sigaction(SIGABRT, &action, NULL);
    }
    if (argc > 2 && atoi(argv[2]) != rank) {
        while (ends_all(way)) {
            pause();
        }
        return 0;
    }
    return end(way, argc);
}
