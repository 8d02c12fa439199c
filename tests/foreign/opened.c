#define _GNU_SOURCE
/* Opens an MPI library by its name alone, as Python's modules do, and asks it for its rank. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Function(void*, void*);

/* (ISO C has no conversion of pointers to functions.) */
static Function* function(void* library, const char* name) {
    void* found = dlsym(library, name);
    if (found == NULL) {
        printf("%s\n", dlerror());
        exit(1);
    }
    Function* made;
    memcpy(&made, &found, sizeof made);
    return made;
}

int main(int argc, char** argv) {
    /* mpi4py takes the library whose names it finds without opening one: there must be none yet. */
    if (dlsym(dlopen(NULL, RTLD_NOW), "MPI_Init") != NULL ||
        dlsym(RTLD_DEFAULT, "MPI_Abi_get_version") != NULL) {
        printf("a program that needs no MPI library has one\n");
        return 1;
    }
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (argc < 2 || library == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    int size = 0;
    void* open_mpi_world = dlsym(library, "ompi_mpi_comm_world");
    void* world = open_mpi_world != NULL ? open_mpi_world : (void*)0x44000000;
    if (function(library, "MPI_Init")(NULL, NULL) != 0 ||
        function(library, "MPI_Comm_size")(world, &size) != 0) {
        return 1;
    }
    function(library, "MPI_Finalize")(NULL, NULL);
    printf("one of %d\n", size);
    return size == 2 ? 0 : 1;
}
