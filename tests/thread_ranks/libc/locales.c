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

int main(int argc, char** argv) {
    begin(&argc, &argv);
    expect(uselocale(NULL) == LC_GLOBAL_LOCALE);
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
