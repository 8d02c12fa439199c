/* A rank whose first thread ends before another one, which joins it and ends the program. */
#include <pthread.h>
#include <stdlib.h>

#include "expect.h"

static pthread_t first;
static int result;
static int key_destructions, cleanups;

static void destroy(void* value) {
    key_destructions += value == &result;
}

static void clean_up(void* value) {
    cleanups += value == &result;
    expect(key_destructions == 0);
}

static void leave(int depth) {
    if (depth == 0) {
        pthread_exit(&result);
    }
    leave(depth - 1);
    expect(0);
}

static void* join_first(void* unused) {
    (void)unused;
    void* given = NULL;
    expect(pthread_join(first, &given) == 0 && given == &result);
    expect(key_destructions == 1 && cleanups == 2);
    together();
    exit(finish());
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    pthread_key_t key;
    pthread_t thread;
    first = pthread_self();
    expect(pthread_key_create(&key, destroy) == 0 && pthread_setspecific(key, &result) == 0);
    expect(pthread_create(&thread, NULL, join_first, NULL) == 0);
    usleep(world_rank % 2 * 20000);
    pthread_cleanup_push(clean_up, &result);
    pthread_cleanup_push(clean_up, &result);
    leave(10);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
}
