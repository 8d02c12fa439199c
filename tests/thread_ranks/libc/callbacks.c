/* What a program has the C library call is called by its rank only. */
#define _GNU_SOURCE

#include <error.h>
#include <fcntl.h>
#include <obstack.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "expect.h"

extern char** environ;
int __cxa_thread_atexit_impl(void (*)(void*), void*, void*);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char order[20];

static void note(char event) {
    const size_t length = strlen(order);
    if (length < sizeof order - 1) {
        order[length] = event;
    }
}

static void prepare(void) {
    pthread_mutex_lock(&lock);
    note('p');
}
static void parent(void) {
    pthread_mutex_unlock(&lock);
    note('q');
}
static void child(void) {
    pthread_mutex_unlock(&lock);
    note('c');
}
static void prepare_second(void) {
    note('P');
}
static void parent_second(void) {
    note('Q');
}
static void child_second(void) {
    note('C');
}

static int status_of(pid_t pid) {
    int status = -1;
    expect(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Rank 0 forks while rank 1 holds what its own handler wants. */
static void forks(void) {
    pthread_atfork(prepare, parent, child);
    pthread_atfork(prepare_second, parent_second, child_second);
    if (world_rank == 1) {
        pthread_mutex_lock(&lock);
    }
    together();
    if (world_rank == 0) {
        const pid_t pid = fork();
        if (pid == 0) {
            _exit(strcmp(order, "PpcC") == 0 ? 5 : 6);
        }
        expect(status_of(pid) == 5);
        expect(strcmp(order, "PpqQ") == 0);
        expect(system("exit 7") >> 8 == 7);
        FILE* stream = popen("exit 8", "r");
        expect(stream != NULL && pclose(stream) >> 8 == 8);
        char* words[] = {"sh", "-c", "exit 9", NULL};
        pid_t spawned = 0;
        expect(posix_spawn(&spawned, "/bin/sh", NULL, NULL, words, environ) == 0);
        expect(status_of(spawned) == 9);
        expect(strcmp(order, "PpqQ") == 0);
    }
    together();
    if (world_rank == 1) {
        pthread_mutex_unlock(&lock);
    }
    expect(world_rank == 0 || order[0] == 0);
    /* All at once. */
    together();
    for (int i = 0; i < 5; ++i) {
        memset(order, 0, sizeof order);
        const pid_t pid = fork();
        if (pid == 0) {
            exit(strcmp(order, "PpcC") == 0 ? 10 + world_rank : 1);
        }
        expect(status_of(pid) == 10 + world_rank);
    }
}

/* In a child, descriptors 0, 1 and 2 are those of the standard streams, as in any process. */
static void streams_of_children(void) {
    char text[200] = "";
    int ends[2] = {-1, -1};
    expect(pipe(ends) == 0);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        if (dup2(ends[1], 1) != 1 || dup2(ends[1], 2) != 2 || fileno(stdout) != 1) {
            _exit(1);
        }
        close(ends[1]);
        printf("printed\n");
        fflush(stdout);
        fprintf(stderr, "said\n");
        exit(system("echo done") == 0 ? 3 : 4);
    }
    close(ends[1]);
    size_t bytes = 0;
    ssize_t got = 0;
    while ((got = read(ends[0], text + bytes, sizeof text - 1 - bytes)) > 0) {
        bytes += (size_t)got;
    }
    close(ends[0]);
    expect(status_of(pid) == 3);
    expect(strcmp(text, "printed\nsaid\ndone\n") == 0);
}

static volatile int stop;

static void* ask_for_time(void* unused) {
    (void)unused;
    struct tm parts;
    for (time_t time = 0; !stop; time += 1000000) {
        localtime_r(&time, &parts);
        setenv("LATER", "1", 1);
    }
    return NULL;
}

/* Whatever another thread does at the fork. */
static void forks_of_threads(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, ask_for_time, NULL);
    for (int i = 0; i < 50; ++i) {
        const pid_t pid = fork();
        if (pid == 0) {
            _exit(3);
        }
        expect(status_of(pid) == 3);
    }
    stop = 1;
    pthread_join(thread, NULL);
}

static int told[2];

static void tell(void) {
    const char text = (char)('0' + world_rank);
    if (write(told[1], &text, 1) != 1) {
        _exit(1);
    }
}

static void quick_end(void) {
    char text[20] = "";
    expect(pipe(told) == 0 && at_quick_exit(tell) == 0);
    together();
    const pid_t pid = fork();
    if (pid == 0) {
        quick_exit(3);
    }
    expect(status_of(pid) == 3);
    close(told[1]);
    expect(read(told[0], text, sizeof text) == 1 && text[0] == '0' + world_rank);
    close(told[0]);
    told[1] = open("/dev/null", O_WRONLY);
}

static int gone;

static void destroy(void* object) {
    gone += *(int*)object;
}

static void* with_object(void* object) {
    __cxa_thread_atexit_impl(destroy, object, &gone);
    return NULL;
}

static void thread_objects(void) {
    pthread_t thread;
    int weight = 1 + world_rank;
    pthread_create(&thread, NULL, with_object, &weight);
    pthread_join(thread, NULL);
    expect(gone == weight);
}

static int named;

static void say_name(void) {
    ++named;
}

static void failed(void) {
    tell();
    exit(4);
}

static void* refuse(size_t bytes) {
    (void)bytes;
    return NULL;
}
#define obstack_chunk_alloc refuse
#define obstack_chunk_free free

static void handlers(void) {
    const int saved = dup(2);
    const int hidden = open("/dev/null", O_WRONLY);
    fflush(stderr);
    dup2(hidden, 2);
    error_print_progname = say_name;
    for (int i = 0; i <= world_rank; ++i) {
        error(0, 0, "number %d", i);
    }
    error_one_per_line = 1;
    error_at_line(0, 0, "file", 7, "once");
    error_at_line(0, 0, "file", 7, "not again");
    dup2(saved, 2);
    close(saved);
    close(hidden);
    expect(named == world_rank + 2 && error_message_count == (unsigned)world_rank + 2);

    char text[20] = "";
    expect(pipe(told) == 0);
    obstack_alloc_failed_handler = failed;
    together();
    const pid_t pid = fork();
    if (pid == 0) {
        struct obstack stack;
        obstack_init(&stack);
        _exit(1);
    }
    expect(status_of(pid) == 4);
    expect(read(told[0], text, 1) == 1 && text[0] == '0' + world_rank);
}
#undef obstack_chunk_alloc
#define obstack_chunk_alloc malloc

static void obstacks(void) {
    struct obstack stack;
    obstack_init(&stack);
    char* first = obstack_copy0(&stack, "first", 5);
    for (int i = 0; i < 30000; ++i) {
        obstack_int_grow(&stack, i);
    }
    const int* numbers = obstack_finish(&stack);
    int wrong = 0;
    for (int i = 0; i < 30000; ++i) {
        wrong += numbers[i] != i;
    }
    expect(wrong == 0 && strcmp(first, "first") == 0);
    obstack_free(&stack, NULL);
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    forks();
    forks_of_threads();
    streams_of_children();
    quick_end();
    thread_objects();
    obstacks();
    handlers();
    together();
    return finish();
}
