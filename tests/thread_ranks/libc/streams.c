/* What concerns all streams concerns the rank's own: nobody waits for a stream in which another
   rank reads, and what is flushed is what a process would flush. */
#define _GNU_SOURCE

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "expect.h"

static long bytes_of(FILE* stream) {
    struct stat status;
    return fstat(fileno(stream), &status) == 0 ? (long)status.st_size : -1;
}

/* Rank 0 reads what rank 1 writes only after it has been through all that looks at all streams. */
static void reader_and_writer(const char* path) {
    char line[20] = "";
    if (world_rank == 0) {
        FILE* file = fopen(path, "r");
        expect(fgets(line, sizeof line, file) == line && strcmp(line, "line\n") == 0);
        fclose(file);
    } else if (world_rank == 1) {
        FILE* file = fopen(path, "w");
        usleep(50 * 1000); /* until the other reads */
        expect(fflush(NULL) == 0);
        _flushlbf();
        FILE* other = tmpfile();
        fputs("kept", other);
        fclose(other);
        const pid_t child = fork();
        if (child == 0) {
            exit(3);
        }
        int status = 0;
        expect(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
        fputs("line\n", file);
        fclose(file);
    }
}

static void flushing(void) {
    FILE* file = tmpfile();
    FILE* lines = tmpfile();
    setvbuf(lines, NULL, _IOLBF, BUFSIZ);
    char* text = NULL;
    size_t bytes = 0;
    FILE* memory = open_memstream(&text, &bytes);
    fputs("abc", file);
    fputs("de", lines);
    fputs("fghi", memory);
    _flushlbf();
    expect(bytes_of(file) == 0 && bytes_of(lines) == 2);
    expect(fflush(NULL) == 0);
    expect(bytes_of(file) == 3);
    fclose(memory);
    expect(bytes == 4 && strcmp(text, "fghi") == 0);
    free(text);
    /* What is to be read stays. */
    int ends[2] = {-1, -1};
    expect(pipe(ends) == 0 && write(ends[1], "xyz", 3) == 3);
    FILE* input = fdopen(ends[0], "r");
    expect(fgetc(input) == 'x');
    fflush(NULL);
    expect(fgetc(input) == 'y' && fgetc(input) == 'z');
    fclose(input);
    close(ends[1]);
    fclose(file);
    fclose(lines);
}

/* The C library writes what streams to files hold, and forgets to say how long those to memory are;
   POSIX asks for it. */
static void memory_streams(int is_process) {
    char* text = NULL;
    size_t bytes = 99;
    FILE* memory = open_memstream(&text, &bytes);
    fputs("abcdef", memory);
    expect(fflush(NULL) == 0);
    expect(is_process || (bytes == 6 && text != NULL && strcmp(text, "abcdef") == 0));
    expect(fflush(memory) == 0 && bytes == 6);
    expect(fseek(memory, 2, SEEK_SET) == 0 && fflush(NULL) == 0);
    expect(is_process || bytes == 2);
    fclose(memory);
    free(text);
    char place[20] = "..........";
    memory = fmemopen(place, sizeof place, "w");
    fputs("abc", memory);
    expect(fflush(NULL) == 0 && strcmp(place, "abc") == 0);
    fclose(memory);
}

static int has_bytes(int descriptor) {
    struct pollfd asked = {descriptor, POLLIN, 0};
    return poll(&asked, 1, 0) == 1;
}

/* A prompt is there before the answer is read, without being asked for. */
static void prompts(void) {
    FILE* normal = stdout;
    int shown[2] = {-1, -1}, given[2] = {-1, -1};
    char text[20] = "";
    expect(pipe(shown) == 0 && pipe(given) == 0 && write(given[1], "yes\n5 7\n", 8) == 8);
    stdout = fdopen(shown[1], "w");
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    FILE* answers = fdopen(given[0], "r");
    setvbuf(answers, NULL, _IONBF, 0);
    fputs("well?", stdout);
    expect(!has_bytes(shown[0]));
    expect(fgets(text, sizeof text, answers) == text && strcmp(text, "yes\n") == 0);
    expect(has_bytes(shown[0]) && read(shown[0], text, sizeof text) == 5);
    fputs("number?", stdout);
    int number = 0;
    expect(fscanf(answers, "%d", &number) == 1 && number == 5);
    expect(has_bytes(shown[0]) && read(shown[0], text, sizeof text) == 7);
    fclose(stdout);
    stdout = normal;
    fclose(answers);
    close(shown[0]);
    close(given[1]);
}

static void unbuffered(void) {
    FILE* file = tmpfile();
    fputs("abc", file);
    expect(fcloseall() == 0);
    expect(bytes_of(file) == 3);
    fputs("d", file);
    expect(bytes_of(file) == 4);
}

/* What a program leaves in its streams is written at its end, that of the newest stream first. */
static void order_at_the_end(void) {
    enum { count = 8 };
    char path[60], text[count + 1] = "";
    snprintf(path, sizeof path, "/tmp/mpi-test-order.%d.%d", (int)getpid(), world_rank);
    const int file = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
    const pid_t child = fork();
    if (child == 0) {
        FILE* streams[count];
        for (int i = 0; i < count; ++i) {
            streams[(i * 3) % count] = fopen(path, "a");
            fputc('0' + i, streams[(i * 3) % count]);
        }
        exit(0);
    }
    int status = 0;
    expect(waitpid(child, &status, 0) == child && status == 0);
    expect(read(file, text, count) == count && strcmp(text, "76543210") == 0);
    close(file);
    unlink(path);
}

static void* read_for_ever(void* stream) {
    char line[20];
    return fgets(line, sizeof line, stream);
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    char path[100];
    int first = (int)getpid();
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "/tmp/mpi-test-streams.%d", first);
    if (world_rank == 0) {
        expect(mkfifo(path, 0600) == 0);
    }
    together();
    reader_and_writer(path);
    together();
    if (world_rank == 0) {
        unlink(path);
    }
    flushing();
    memory_streams(strcmp(argv[1], "processes") == 0);
    prompts();
    unbuffered();
    order_at_the_end();
    /* The end waits for no stream in which somebody reads (a process's does with later versions of
       the C library). */
    int last = (int)getpid(), ends[2] = {-1, -1};
    MPI_Bcast(&last, 1, MPI_INT, world_size - 1, MPI_COMM_WORLD);
    if (first == last) {
        pthread_t thread;
        expect(pipe(ends) == 0);
        pthread_create(&thread, NULL, read_for_ever, fdopen(ends[0], "r"));
        usleep(20 * 1000);
    }
    return finish();
}
