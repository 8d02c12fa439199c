/* argp speaks for the rank and ends it, with the rank's variables. */
#define _GNU_SOURCE

#include <argp.h>
#include <errno.h>
#include <glob.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <wordexp.h>

#include "expect.h"

static int number;

static error_t parse(int key, char* argument, struct argp_state* state) {
    (void)state;
    switch (key) {
    case 'n':
        number = atoi(argument);
        return number < 0 ? EINVAL : 0;
    case 'e':
        argp_error(state, "rank %d errs", world_rank);
        return 0;
    case 'f':
        argp_failure(state, 11, ENOENT, "rank %d fails", world_rank);
        return 0;
    case ARGP_KEY_ARG:
        return strcmp(argument, "operand") == 0 ? 0 : ARGP_ERR_UNKNOWN;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {{"number", 'n', "N", 0, "A number", 0},
                                             {"err", 'e', 0, 0, "Err", 0},
                                             {"fail", 'f', 0, 0, "Fail", 0},
                                             {0}};
static const struct argp parser = {options, parse, "operand", "What it is for", 0, 0, 0};

static char shown[10000];

/* Its exit status; what it prints is in `shown`. 200: it goes on; 201: it sees EINVAL. */
static int status_with(const char* argument) {
    char name[] = "folder/program", copy[60];
    char* words[] = {name, strcpy(copy, argument), NULL};
    int ends[2] = {-1, -1};
    expect(pipe(ends) == 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        const int error = argp_parse(&parser, 2, words, 0, NULL, NULL);
        exit(error == EINVAL ? 201 : number != 0 ? number : 200);
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

static int status_of(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What goes by variables of the environment goes by the rank's. */
static void variables(void) {
    char folder[] = "/tmp/mpi-test-arguments.XXXXXX";
    char path[200], *arguments[] = {"warren-tool", NULL};
    expect(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/warren-tool", folder);
    FILE* script = fopen(path, "w");
    fprintf(script, "#!/bin/sh\nexit %d\n", 20 + world_rank);
    fclose(script);
    chmod(path, 0700);
    snprintf(path, sizeof path, "/nowhere:%s:/bin", folder);
    setenv("PATH", path, 1);
    setenv("HOME", folder, 1);
    setenv("TMPDIR", folder, 1);
    together();
    pid_t child = -1;
    expect(posix_spawnp(&child, "warren-tool", NULL, NULL, arguments, environ) == 0);
    expect(status_of(child) == 20 + world_rank);
    expect(posix_spawnp(&child, "warren-none", NULL, NULL, arguments, environ) == ENOENT);
    child = fork();
    if (child == 0) {
        execlp("warren-none", "warren-none", NULL);
        execlp("warren-tool", "warren-tool", NULL);
        _exit(1);
    }
    expect(status_of(child) == 20 + world_rank);
    glob_t found;
    expect(glob("~/warren-t*", GLOB_TILDE, NULL, &found) == 0 && found.gl_pathc == 1);
    expect(strncmp(found.gl_pathv[0], folder, strlen(folder)) == 0);
    globfree(&found);
    char* name = tempnam(NULL, "x");
    expect(strncmp(name, folder, strlen(folder)) == 0);
    free(name);
    wordexp_t words;
    setenv("WARREN_WORD", world_rank % 2 ? "odd" : "even", 1);
    together();
    expect(wordexp("$WARREN_WORD ~ $(echo $WARREN_WORD) ${WARREN_NEW=new}", &words, 0) == 0);
    expect(words.we_wordc == 4 && strcmp(words.we_wordv[0], world_rank % 2 ? "odd" : "even") == 0);
    expect(strcmp(words.we_wordv[1], folder) == 0);
    expect(strcmp(words.we_wordv[2], words.we_wordv[0]) == 0);
    expect(getenv("WARREN_NEW") != NULL && strcmp(getenv("WARREN_NEW"), "new") == 0);
    wordfree(&words);
    snprintf(path, sizeof path, "%s/warren-tool", folder);
    unlink(path);
    rmdir(folder);
    together();
}

int main(int argc, char** argv) {
    char version[30], address[30], text[60];
    begin(&argc, &argv);
    snprintf(version, sizeof version, "version %d", world_rank);
    snprintf(address, sizeof address, "<rank%d@here>", world_rank);
    argp_program_version = version;
    argp_program_bug_address = address;
    argp_err_exit_status = 80 + world_rank;
    together();
    for (int i = 0; i < 5; ++i) {
        expect(status_with("--version") == 0 && strncmp(shown, version, strlen(version)) == 0);
        expect(status_with("--help") == 0 && strstr(shown, address) != NULL);
        expect(strstr(shown, "Usage: program [OPTION...] operand") != NULL &&
               strstr(shown, "-V, --version") != NULL);
        expect(status_with("--number=7") == 7 && status_with("operand") == 200);
        expect(status_with("--number=-1") == 201);
        expect(status_with("--unknown") == 80 + world_rank);
        expect(strstr(shown, "Try `program --help'") != NULL);
        expect(status_with("other") == 80 + world_rank &&
               strstr(shown, "Too many arguments") != NULL);
        expect(status_with("-e") == 80 + world_rank);
        snprintf(text, sizeof text, "program: rank %d errs\n", world_rank);
        expect(strstr(shown, text) != NULL);
        expect(status_with("-f") == 11);
        snprintf(text, sizeof text, "program: rank %d fails: No such file", world_rank);
        expect(strstr(shown, text) != NULL);
    }
    together();
    variables();
    return finish();
}
