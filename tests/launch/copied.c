/*
 * A process that may be a copy of rank 0's: says what of itself must be its own, as one line
 *     RANK PID PARENT ADDRESS PRELOADED
 * (the address of a variable: the same in copies), after it has used what the C library knows of
 * its thread and process. Exits with 1 and the reason when that is wrong.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t signals;
static char variable;

static void count(int number) {
    (void)number;
    ++signals;
}

static void* add_one(void* number) {
    ++*(int*)number;
    return number;
}

static int wrong(const char* what) {
    fprintf(stderr, "%s\n", what);
    return 1;
}

int main(void) {
    signal(SIGUSR1, count);
    if (raise(SIGUSR1) != 0 || signals != 1)
        return wrong("raise reaches another thread");
    /* An error-checking mutex knows its owner by the number that the C library keeps. */
    pthread_mutexattr_t checking;
    pthread_mutex_t mutex;
    pthread_mutexattr_init(&checking);
    pthread_mutexattr_settype(&checking, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutexattr_setrobust(&checking, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &checking);
    if (pthread_mutex_lock(&mutex) != 0 || mutex.__data.__owner != (int)syscall(SYS_gettid) ||
        pthread_mutex_lock(&mutex) != EDEADLK || pthread_mutex_unlock(&mutex) != 0)
        return wrong("the thread has another's number");
    void* head = NULL;
    size_t bytes = 0;
    if (syscall(SYS_get_robust_list, 0, &head, &bytes) != 0 || head == NULL)
        return wrong("there is no list of robust mutexes");
    int number = 1;
    pthread_t thread;
    if (pthread_create(&thread, NULL, add_one, &number) != 0 || pthread_join(thread, NULL) != 0 ||
        number != 2)
        return wrong("a thread did not come back");
    const pid_t child = fork();
    if (child == 0)
        _exit(getppid() == getpid());
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0)
        return wrong("a child did not end well");
    const char* preloaded = getenv("LD_PRELOAD");
    const char* copies = getenv("WARREN_FORKED_START");
    printf("%s %d %d %p %s%s\n", getenv("WARREN_RANK"), (int)getpid(), (int)getppid(),
           (void*)&variable, preloaded != NULL ? preloaded : "-", copies != NULL ? copies : "");
    return 0;
}
