/* A recorder: a profiling tool that replaces a function of the C library as well. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

int MPI_Pcontrol(const int level, ...);
int MPI_Pcontrol(const int level, ...) {
    return level;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
    Create next;
    *(void**)&next = dlsym(RTLD_NEXT, "pthread_create");
    return next(thread, attributes, start, argument);
}
