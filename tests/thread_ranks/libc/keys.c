/* A rank has as many keys of thread-specific data as a process, and their destructors run in its
   threads as in a process's. */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

#include "expect.h"

enum { count = 1000 };

static pthread_key_t keys[count], first, second;
static int first_runs, second_runs, own;

static void add(void* value) {
    *(int*)value += 1;
}

/* Sets the other key once more: destructors run in rounds. */
static void run_first(void* value) {
    ++first_runs;
    if (first_runs < 3) {
        pthread_setspecific(second, value);
    }
}
static void run_second(void* value) {
    ++second_runs;
    pthread_setspecific(first, value);
}

static void* use(void* values) {
    int* numbers = values;
    for (int i = 0; i < count; ++i) {
        expect(pthread_getspecific(keys[i]) == NULL);
        expect(pthread_setspecific(keys[i], &numbers[i]) == 0);
    }
    pthread_setspecific(first, &own);
    return NULL;
}

static tss_t of_ending_thread;
static int ended;

static void note_end(void* value) {
    ended += value == &own;
}

static int end_early(void* unused) {
    (void)unused;
    tss_set(of_ending_thread, &own);
    thrd_exit(5);
}

static void ends_of_c_threads(void) {
    thrd_t thread;
    int result = 0;
    expect(tss_create(&of_ending_thread, note_end) == thrd_success);
    expect(thrd_create(&thread, end_early, NULL) == thrd_success);
    expect(thrd_join(thread, &result) == thrd_success && result == 5 && ended == 1);
    tss_delete(of_ending_thread);
}

int main(int argc, char** argv) {
    static int numbers[2][count];
    begin(&argc, &argv);
    for (int i = 0; i < count; ++i) {
        expect(pthread_key_create(&keys[i], add) == 0);
    }
    expect(pthread_key_create(&first, run_first) == 0);
    expect(pthread_key_create(&second, run_second) == 0);
    together();
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) {
        if (i == 1) {
            pthread_key_delete(first);
        }
        pthread_create(&threads[i], NULL, use, numbers[i]);
        pthread_join(threads[i], NULL);
    }
    int wrong = 0;
    for (int i = 0; i < count; ++i) {
        wrong += numbers[0][i] != 1 || numbers[1][i] != 1;
    }
    expect(wrong == 0);
    expect(first_runs == 3 && second_runs == 2);
    expect(pthread_setspecific(keys[7], &own) == 0 && pthread_getspecific(keys[7]) == &own);
    /* A key that is new has no value, whatever its number had. */
    expect(pthread_key_delete(keys[7]) == 0 && pthread_key_delete(keys[7]) != 0);
    expect(pthread_getspecific(keys[7]) == NULL && pthread_setspecific(keys[7], &own) != 0);
    pthread_key_t again;
    expect(pthread_key_create(&again, NULL) == 0 && pthread_getspecific(again) == NULL);
    tss_t mine;
    expect(tss_create(&mine, NULL) == thrd_success && tss_set(mine, &own) == thrd_success);
    expect(tss_get(mine) == &own);
    ends_of_c_threads();
    /* As many as there are. */
    pthread_key_t more;
    int made = 0;
    while (pthread_key_create(&more, NULL) == 0) {
        ++made;
    }
    expect(made > 0 && made < PTHREAD_KEYS_MAX - count);
    together();
    return finish();
}
