/* 0, 1 and 2 are a rank's own descriptors, also by what fileno says, for all calls that take one.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

#include "expect.h"

static const char* const line = "some words\n";

static FILE* file_with_line(void) {
    FILE* file = tmpfile();
    expect(fputs(line, file) >= 0 && fflush(file) == 0);
    expect(lseek(fileno(file), 0, SEEK_SET) == 0);
    return file;
}

static void numbers(void) {
    expect(fileno(stdin) == STDIN_FILENO && fileno_unlocked(stdin) == STDIN_FILENO);
    expect(fileno(stdout) == STDOUT_FILENO && fileno(stderr) == STDERR_FILENO);
    FILE* file = tmpfile();
    expect(fileno(file) > STDERR_FILENO);
    fclose(file);
}

static void input_by_pipe(void) {
    int ends[2] = {-1, -1};
    char text[40] = "";
    expect(pipe(ends) == 0 && dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    struct pollfd asked[2] = {{STDIN_FILENO, POLLIN, 0}, {ends[1], POLLOUT, 0}};
    expect(poll(asked, 2, 0) == 1 && asked[0].revents == 0 && asked[1].revents == POLLOUT);
    expect(write(ends[1], line, strlen(line)) == (ssize_t)strlen(line));
    expect(poll(asked, 1, 0) == 1 && asked[0].fd == STDIN_FILENO && asked[0].revents == POLLIN);
    const struct timespec none = {0, 0};
    expect(ppoll(asked, 1, &none, NULL) == 1 && asked[0].revents == POLLIN);
    fd_set readable;
    struct timeval now = {0, 0};
    FD_ZERO(&readable);
    FD_SET(fileno(stdin), &readable);
    expect(select(1, &readable, NULL, NULL, &now) == 1 && FD_ISSET(STDIN_FILENO, &readable));
    expect(pselect(1, &readable, NULL, NULL, &none, NULL) == 1);
    const int watcher = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data = {.u32 = 17}};
    expect(epoll_ctl(watcher, EPOLL_CTL_ADD, fileno(stdin), &event) == 0);
    event.data.u32 = 0;
    expect(epoll_wait(watcher, &event, 1, 0) == 1 && event.data.u32 == 17);
    close(watcher);
    expect(fgets(text, sizeof text, stdin) == text && strcmp(text, line) == 0);
    expect(poll(asked, 1, 0) == 0);
    FD_SET(STDIN_FILENO, &readable);
    expect(select(1, &readable, NULL, NULL, &now) == 0 && !FD_ISSET(STDIN_FILENO, &readable));
    close(ends[0]);
    close(ends[1]);
}

static void input_by_file(void) {
    FILE* file = file_with_line();
    char text[40] = "";
    expect(dup2(fileno(file), fileno(stdin)) == STDIN_FILENO);
    clearerr(stdin);
    expect(pread(STDIN_FILENO, text, sizeof text - 1, 5) == 6 && strcmp(text, "words\n") == 0);
    const char* view = mmap(NULL, 11, PROT_READ, MAP_PRIVATE, STDIN_FILENO, 0);
    expect(view != MAP_FAILED && memcmp(view, line, strlen(line)) == 0);
    munmap((void*)view, 11);
    struct statx status;
    memset(&status, 0, sizeof status);
    expect(statx(STDIN_FILENO, "", AT_EMPTY_PATH, STATX_SIZE, &status) == 0);
    expect(status.stx_size == strlen(line));
    struct termios settings;
    errno = 0;
    expect(tcgetattr(STDIN_FILENO, &settings) != 0 && errno == ENOTTY);
    expect(fgets(text, sizeof text, stdin) == text && strcmp(text, line) == 0);
    fclose(file);
}

/* What a child that is started with `actions` writes to its standard output. */
static void spawned(posix_spawn_file_actions_t* actions, const char* command) {
    char* arguments[] = {"sh", "-c", (char*)command, NULL};
    char* environment[] = {NULL};
    pid_t child = -1;
    int status = -1;
    expect(posix_spawn(&child, "/bin/sh", actions, NULL, arguments, environment) == 0);
    expect(waitpid(child, &status, 0) == child && status == 0);
}

static void output(void) {
    FILE* from = file_with_line();
    FILE* to = tmpfile();
    char text[100] = "";
    fflush(stdout);
    const int former = dup(STDOUT_FILENO);
    expect(dup2(fileno(to), STDOUT_FILENO) == STDOUT_FILENO);
    expect(printf("printed, ") == 9 && fflush(stdout) == 0);
    expect(write(fileno(stdout), "written, ", 9) == 9);
    expect(sendfile(STDOUT_FILENO, fileno(from), NULL, 5) == 5);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(stdout), STDERR_FILENO);
    spawned(&actions, "echo errors >&2");
    posix_spawn_file_actions_destroy(&actions);
    spawned(NULL, "echo output");
    const char* expected = "printed, written, some errors\noutput\n";
    struct stat status;
    expect(fstat(STDOUT_FILENO, &status) == 0 && status.st_size == (off_t)strlen(expected));
    expect(pread(fileno(to), text, sizeof text - 1, 0) == (ssize_t)strlen(expected));
    expect(strcmp(text, expected) == 0);
    expect(ftruncate(STDOUT_FILENO, 3) == 0 && fstat(fileno(to), &status) == 0);
    expect(status.st_size == 3);
    expect(dup2(former, STDOUT_FILENO) == STDOUT_FILENO);
    close(former);
    fclose(from);
    fclose(to);
}

static void closed(void) {
    struct pollfd asked = {STDIN_FILENO, POLLIN, 0};
    fd_set readable;
    struct timeval now = {0, 0};
    FD_ZERO(&readable);
    FD_SET(STDIN_FILENO, &readable);
    expect(close(STDIN_FILENO) == 0);
    expect(poll(&asked, 1, 0) == 1 && asked.revents == POLLNVAL);
    errno = 0;
    expect(select(1, &readable, NULL, NULL, &now) == -1 && errno == EBADF);
    clearerr(stdin);
    errno = 0;
    expect(getchar() == EOF && ferror(stdin) && errno == EBADF);
}

/* A number that has been closed is given to what is opened next. */
static void lowest_numbers(void) {
    char path[60], text[40] = "";
    snprintf(path, sizeof path, "/tmp/mpi-test-lowest.%d.%d", (int)getpid(), world_rank);
    const int file = open(path, O_CREAT | O_EXCL | O_RDWR, 0600), output = dup(STDOUT_FILENO);
    expect(write(file, line, strlen(line)) == (ssize_t)strlen(line));
    expect(close(STDIN_FILENO) == 0 && open(path, O_RDONLY) == STDIN_FILENO);
    clearerr(stdin);
    expect(fgets(text, sizeof text, stdin) == text && strcmp(text, line) == 0);
    fflush(stdout);
    expect(close(STDOUT_FILENO) == 0 && creat(path, 0600) == STDOUT_FILENO);
    expect(printf("more") == 4 && fflush(stdout) == 0);
    expect(pread(file, text, sizeof text, 0) == 4 && memcmp(text, "more", 4) == 0);
    expect(close(STDOUT_FILENO) == 0 && dup(output) == STDOUT_FILENO);
    expect(fcntl(STDOUT_FILENO, F_GETFD) == 0 && fcntl(STDERR_FILENO, F_GETFD) == 0);
    expect(open(path, O_RDONLY) > STDERR_FILENO);
    int ends[2];
    char byte = 5;
    expect(close(STDIN_FILENO) == 0 && pipe(ends) == 0);
    expect(ends[0] == STDIN_FILENO && ends[1] > STDERR_FILENO);
    expect(write(ends[1], &byte, 1) == 1 && read(STDIN_FILENO, text, 1) == 1 && text[0] == byte);
    expect(close(STDIN_FILENO) == 0 && fcntl(file, F_DUPFD, 1) > STDERR_FILENO);
    expect(fcntl(file, F_DUPFD_CLOEXEC, 0) == STDIN_FILENO);
    expect(fcntl(STDIN_FILENO, F_GETFD) == FD_CLOEXEC);
    expect(fcntl(STDIN_FILENO, F_SETFD, 0) == 0 && fcntl(STDIN_FILENO, F_GETFD) == 0);
    expect(close(STDIN_FILENO) == 0 && fcntl(STDIN_FILENO, F_GETFD) == -1 && errno == EBADF);
    expect(socket(AF_UNIX, SOCK_STREAM, 0) == STDIN_FILENO);
    unlink(path);
    together();
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    numbers();
    input_by_pipe();
    input_by_file();
    output();
    lowest_numbers();
    closed();
    return finish();
}
