/* Twenty keys in each of many ranks: more than a process has. */
#include <pthread.h>

#include "expect.h"

static int destroyed;

static void count(void* value) {
    destroyed += *(int*)value;
}

static void* use(void* keys) {
    static int one = 1;
    for (int i = 0; i < 20; ++i) {
        expect(pthread_setspecific(((pthread_key_t*)keys)[i], &one) == 0);
    }
    return NULL;
}

int main(int argc, char** argv) {
    pthread_key_t keys[20];
    begin(&argc, &argv);
    for (int i = 0; i < 20; ++i) {
        expect(pthread_key_create(&keys[i], count) == 0);
    }
    together();
    for (int i = 0; i < 20; ++i) {
        expect(pthread_setspecific(keys[i], &keys[i]) == 0);
    }
    together();
    for (int i = 0; i < 20; ++i) {
        expect(pthread_getspecific(keys[i]) == &keys[i]);
    }
    if (world_rank % 64 == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, use, keys);
        pthread_join(thread, NULL);
        expect(destroyed == 20);
    }
    together();
    return finish();
}
