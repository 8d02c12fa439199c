/* dlopen's modes, and what a program can ask of its libraries, are as in a process. The arguments
   are two libraries made of plugin.c, and the kind of the ranks. Rank 0's output shows the order of
   destructors. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

int shared_name(void) {
    return 100;
}

static int call(void* library, const char* name) {
    int (*function)(void) = (int (*)(void))dlsym(library, name);
    return function != NULL ? function() : -1;
}

static int add(void* library, int count) {
    int (*function)(int) = (int (*)(int))dlsym(library, "add");
    return function(count);
}

static void local_symbols(const char* first, const char* second) {
    void* one = dlopen(first, RTLD_LAZY);
    void* two = dlopen(second, RTLD_LAZY | RTLD_LOCAL);
    expect(one != NULL && two != NULL);
    expect(add(one, world_rank) == world_rank && add(two, 5) == 5);
    together();
    expect(add(one, 0) == world_rank && add(two, 0) == 5);
    expect(dlsym(RTLD_DEFAULT, "add") == NULL);
    expect(dlopen(first, RTLD_NOW | RTLD_NOLOAD) == one && dlclose(one) == 0);
    expect(call(one, "ask_shared_name") == 100); /* the program's */
    /* A function that a library brings later. */
    expect(dlopen(second, RTLD_LAZY | RTLD_GLOBAL) == two && dlclose(two) == 0);
    expect(dlsym(RTLD_DEFAULT, "add") == dlsym(two, "add"));
    expect(call(one, "call_other") == 22);
    expect(dlclose(two) == 0 && dlclose(one) == 0);
    expect(dlopen(first, RTLD_NOW | RTLD_NOLOAD) == NULL);
}

static void undefined_functions(const char* first) {
    expect(dlopen(first, RTLD_NOW) == NULL);
    const char* error = dlerror();
    char expected[4096];
    snprintf(expected, sizeof expected, "%s: undefined symbol: ", first);
    expect(error != NULL && strncmp(error, expected, strlen(expected)) == 0);
    expect(error != NULL && strchr(error, '(') == NULL);
    expect(dlerror() == NULL);
    expect(dlopen(first, 0) == NULL && dlerror() != NULL);
}

static void expect_error(const char* expected) {
    const char* error = dlerror();
    expect(error != NULL && strcmp(error, expected) == 0);
    if (error != NULL && strcmp(error, expected) != 0) {
        dprintf(2, "%s\n", error);
    }
}

/* The texts that programs know. */
static void messages(const char* program, const char* library) {
    char expected[4096], path[100];
    expect(dlopen("/no/such/library.so", RTLD_NOW) == NULL);
    expect_error("/no/such/library.so: cannot open shared object file: No such file or directory");
    expect(dlopen("libnosuch.so.7", RTLD_NOW) == NULL);
    expect_error("libnosuch.so.7: cannot open shared object file: No such file or directory");
    expect(dlopen("/etc", RTLD_NOW) == NULL);
    expect_error("/etc: cannot read file data: Is a directory");
    expect(dlopen("libnosuch.so.7", 0) == NULL);
    expect_error("libnosuch.so.7: invalid mode for dlopen(): Invalid argument");
    snprintf(path, sizeof path, "/tmp/mpi-test-plugin.%d.%d", (int)getpid(), world_rank);
    FILE* file = fopen(path, "w");
    fputs("short", file);
    fflush(file);
    expect(dlopen(path, RTLD_NOW) == NULL);
    snprintf(expected, sizeof expected, "%s: file too short", path);
    expect_error(expected);
    for (int i = 0; i < 100; ++i) {
        fputs("no library ", file);
    }
    fclose(file);
    expect(dlopen(path, RTLD_NOW) == NULL);
    snprintf(expected, sizeof expected, "%s: invalid ELF header", path);
    expect_error(expected);
    unlink(path);
    void* one = dlopen(library, RTLD_LAZY);
    expect(one != NULL && dlsym(one, "nosuch") == NULL);
    snprintf(expected, sizeof expected, "%s: undefined symbol: nosuch", library);
    expect_error(expected);
    dlclose(one);
    expect(dlsym(RTLD_DEFAULT, "nosuch") == NULL);
    snprintf(expected, sizeof expected, "%s: undefined symbol: nosuch", program);
    expect_error(expected);
    expect(dlvsym(RTLD_DEFAULT, "printf", "NO_SUCH_1") == NULL);
    snprintf(expected, sizeof expected, "%s: undefined symbol: printf, version NO_SUCH_1", program);
    expect_error(expected);
    expect(dlopen("", RTLD_NOW) == dlopen(NULL, RTLD_NOW));
}

static void own_symbols_first(const char* first) {
    void* one = dlopen(first, RTLD_LAZY | RTLD_DEEPBIND);
    expect(one != NULL && call(one, "ask_shared_name") == 1);
    const char* (*name)(void) = (const char* (*)(void))dlsym(one, "name_in_environment");
    expect(strcmp(name(), "set") == 0);
    char folder[4096];
    Lmid_t space = 7;
    expect(dlinfo(one, RTLD_DI_ORIGIN, folder) == 0 && strncmp(first, folder, strlen(folder)) == 0);
    expect(dlinfo(one, RTLD_DI_LMID, &space) == 0 && space == LM_ID_BASE);
    dlclose(one);
}

/* A handle that has been closed is refused, not followed. (What a process makes of one is
   undefined.) */
static void closed_handles(const char* first, const char* kind) {
    if (strcmp(kind, "processes") == 0) {
        return;
    }
    void* one = dlopen(first, RTLD_LAZY);
    expect(dlclose(one) == 0 && dlclose(one) != 0 && dlerror() != NULL);
    expect(dlsym(one, "add") == NULL && dlerror() != NULL);
    char folder[4096];
    expect(dlinfo(one, RTLD_DI_ORIGIN, folder) == -1 && dlerror() != NULL);
    /* A library of the system, which stays. */
    void* shared = dlopen("libc.so.6", RTLD_LAZY);
    expect(shared != NULL && dlsym(shared, "getenv") != NULL && dlclose(shared) == 0);
}

static void libraries_that_stay(const char* first) {
    void* one = dlopen(first, RTLD_LAZY | RTLD_NODELETE);
    int (*count)(int) = (int (*)(int))dlsym(one, "add");
    count(3);
    expect(dlclose(one) == 0 && dlclose(one) == 0);
    expect(count(1) == 4);
}

static int first_is_program(struct dl_phdr_info* info, size_t bytes, void* data) {
    (void)bytes;
    const uintptr_t here = (uintptr_t)&first_is_program;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)* header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD &&
            here - info->dlpi_addr - header->p_vaddr < header->p_memsz) {
            *(int*)data = info->dlpi_name[0] == 0;
        }
    }
    return 1;
}

static void names(void) {
    int found = 0;
    expect(dl_iterate_phdr(first_is_program, &found) == 1 && found);
    Dl_info info;
    expect(dladdr((void*)getenv, &info) != 0 && info.dli_sname != NULL);
    expect(info.dli_sname != NULL && strcmp(info.dli_sname, "getenv") == 0);
    expect(strstr(info.dli_fname, "libc.so") != NULL);
    void* addresses[1] = {(void*)shared_name};
    char** texts = backtrace_symbols(addresses, 1);
    expect(texts != NULL && strstr(texts[0], "plugins(shared_name+0") != NULL);
    free(texts);
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    setenv("WARREN_PLUGIN", "set", 1);
    const int rank_shown = world_rank == 0;
    if (!rank_shown) {
        fclose(stdout);
    }
    local_symbols(argv[1], argv[2]);
    undefined_functions(argv[1]);
    messages(argv[0], argv[2]);
    own_symbols_first(argv[1]);
    names();
    closed_handles(argv[1], argv[3]);
    libraries_that_stay(argv[1]);
    return finish();
}
