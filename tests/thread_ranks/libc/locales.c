/* The locale of a rank, and those of its threads. What differs here between C and C.UTF-8 is how
   many bytes a character may have. */
#define _GNU_SOURCE

#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static int is_utf8(void) {
    return MB_CUR_MAX > 1;
}

static void* begin_with_all(void* unused) {
    (void)unused;
    expect(uselocale(NULL) == LC_GLOBAL_LOCALE);
    expect(is_utf8() == world_rank % 2);
    locale_t own = newlocale(LC_ALL_MASK, world_rank % 2 ? "C" : "C.UTF-8", NULL);
    expect(uselocale(own) == LC_GLOBAL_LOCALE && uselocale(NULL) == own);
    expect(is_utf8() != world_rank % 2);
    expect(uselocale(LC_GLOBAL_LOCALE) == own && is_utf8() == world_rank % 2);
    freelocale(own);
    return NULL;
}

static pthread_barrier_t steps;

/* The program's locale becomes that of threads that run, unless they have their own. */
static void* follow_all(void* chooses) {
    locale_t own = newlocale(LC_ALL_MASK, "C", NULL);
    if (chooses != NULL) {
        uselocale(own);
    }
    expect(!is_utf8());
    for (int turn = 0; turn < 4; ++turn) {
        pthread_barrier_wait(&steps);
        pthread_barrier_wait(&steps);
        expect(is_utf8() == (chooses == NULL && (turn + world_rank) % 2));
    }
    uselocale(LC_GLOBAL_LOCALE);
    pthread_barrier_wait(&steps);
    pthread_barrier_wait(&steps);
    expect(is_utf8() && uselocale(NULL) == LC_GLOBAL_LOCALE);
    freelocale(own);
    return NULL;
}

static void* change_all(void* name) {
    expect(setlocale(LC_ALL, name) != NULL);
    return NULL;
}

static void running_threads(void) {
    pthread_t threads[3], other;
    pthread_barrier_init(&steps, NULL, 4);
    for (int i = 0; i < 3; ++i) {
        expect(pthread_create(&threads[i], NULL, follow_all, i == 0 ? &steps : NULL) == 0);
    }
    for (int turn = 0; turn < 5; ++turn) {
        pthread_barrier_wait(&steps);
        char* name = turn == 4 || (turn + world_rank) % 2 ? "C.UTF-8" : "C";
        expect(pthread_create(&other, NULL, change_all, name) == 0);
        expect(pthread_join(other, NULL) == 0);
        together();
        pthread_barrier_wait(&steps);
        expect(is_utf8() == (strcmp(name, "C") != 0));
    }
    for (int i = 0; i < 3; ++i) {
        expect(pthread_join(threads[i], NULL) == 0);
    }
    pthread_barrier_destroy(&steps);
    expect(setlocale(LC_ALL, "C") != NULL);
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    expect(uselocale(NULL) == LC_GLOBAL_LOCALE);
    running_threads();
    expect(setlocale(LC_ALL, world_rank % 2 ? "C.UTF-8" : "C") != NULL);
    together();
    expect(uselocale(NULL) == LC_GLOBAL_LOCALE && is_utf8() == world_rank % 2);
    pthread_t thread;
    expect(pthread_create(&thread, NULL, begin_with_all, NULL) == 0);
    expect(pthread_join(thread, NULL) == 0);

    /* A locale of the thread's stays when the program changes that of all. */
    locale_t own = duplocale(LC_GLOBAL_LOCALE);
    expect(uselocale(own) == LC_GLOBAL_LOCALE && is_utf8() == world_rank % 2);
    expect(setlocale(LC_ALL, world_rank % 2 ? "C" : "C.UTF-8") != NULL);
    expect(uselocale(NULL) == own && is_utf8() == world_rank % 2);
    together();
    expect(uselocale(LC_GLOBAL_LOCALE) == own && is_utf8() != world_rank % 2);
    freelocale(own);
    return finish();
}
