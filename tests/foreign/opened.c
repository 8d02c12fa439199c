/* Opens an MPI library by its name alone, as Python's modules do, and asks it for its rank. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int Function(void*, void*);
typedef int Unary(void);

static void* symbol(void* library, const char* name) {
    void* found = dlsym(library, name);
    if (found == NULL) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return found;
}

int main(int argc, char** argv) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (argc < 2 || library == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    int size = 0;
    void* open_mpi_world = dlsym(library, "ompi_mpi_comm_world");
    void* world = open_mpi_world != NULL ? open_mpi_world : (void*)0x44000000;
    if (((Function*)symbol(library, "MPI_Init"))(NULL, NULL) != 0 ||
        ((Function*)symbol(library, "MPI_Comm_size"))(world, &size) != 0) {
        return 1;
    }
    ((Unary*)symbol(library, "MPI_Finalize"))();
    printf("one of %d\n", size);
    return size == 2 ? 0 : 1;
}
