/* Variables of the C library's that a program defines itself, as argp's are meant to be, are those
   that the C library's functions use. */
#define _GNU_SOURCE

#include <argp.h>
#include <error.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "expect.h"

const char* argp_program_version = "version of none";
const char* argp_program_bug_address = "<nobody@here>";
error_t argp_err_exit_status = 70;
unsigned error_message_count = 5;

static error_t parse(int key, char* argument, struct argp_state* state) {
    (void)argument;
    (void)state;
    (void)key;
    return ARGP_ERR_UNKNOWN;
}

static char shown[4096];

static int status_with(const char* argument) {
    int ends[2];
    expect(pipe(ends) == 0);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const struct argp parser = {.parser = parse};
        char* arguments[] = {"program", (char*)argument, NULL};
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        argp_parse(&parser, 2, arguments, 0, NULL, NULL);
        exit(99);
    }
    close(ends[1]);
    size_t bytes = 0;
    ssize_t got = 0;
    while ((got = read(ends[0], shown + bytes, sizeof shown - 1 - bytes)) > 0) {
        bytes += (size_t)got;
    }
    shown[bytes] = 0;
    close(ends[0]);
    int status = 0;
    expect(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    expect(status_with("--version") == 0 && strcmp(shown, "version of none\n") == 0);
    char version[30];
    snprintf(version, sizeof version, "version of %d", world_rank);
    argp_program_version = version;
    argp_err_exit_status = 80 + world_rank;
    together();
    expect(status_with("--version") == 0 && strncmp(shown, version, strlen(version)) == 0);
    expect(status_with("--help") == 0 && strstr(shown, "<nobody@here>") != NULL);
    expect(status_with("--unknown") == 80 + world_rank);
    for (int i = 0; i < world_rank; ++i) {
        error(0, 0, "message %d of rank %d is wanted", i, world_rank);
    }
    together();
    expect(error_message_count == 5u + (unsigned)world_rank);
    return finish();
}
