/* dlopen's modes, and what a program can ask of its libraries, are as in a process. The arguments
   are two libraries made of plugin.c. Rank 0's output shows the order of destructors. */
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
    expect(error != NULL && strstr(error, "undefined symbol: ") != NULL);
    expect(dlerror() == NULL);
    expect(dlopen(first, 0) == NULL && dlerror() != NULL);
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

static void libraries_that_stay(const char* first) {
    void* one = dlopen(first, RTLD_LAZY | RTLD_NODELETE);
    int (*count)(int) = (int (*)(int))dlsym(one, "add");
    count(3);
    dlclose(one);
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
    own_symbols_first(argv[1]);
    names();
    libraries_that_stay(argv[1]);
    return finish();
}
