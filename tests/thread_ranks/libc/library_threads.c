/* Threads that the C library makes for a rank belong to it: its thread-local variables, its MPI. */
#define _GNU_SOURCE

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "expect.h"

static __thread int local = 42;
static int global;
static volatile int calls;

/* Has the rank's number in it. */
static int own_file;

/* `value` is what the program gave. */
static void called(union sigval value) {
    int rank = -1, number = -1;
    expect(pread(own_file, &number, sizeof number, 0) == sizeof number && number == world_rank);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    expect(local == 42);
    local = 0;
    expect(rank == world_rank && global == world_rank + 10);
    expect(value.sival_int == world_rank + 100);
    __sync_fetch_and_add(&calls, 1);
}

static struct sigevent event(void) {
    struct sigevent made;
    memset(&made, 0, sizeof made);
    made.sigev_notify = SIGEV_THREAD;
    made.sigev_notify_function = called;
    made.sigev_value.sival_int = world_rank + 100;
    return made;
}

static void wait_for(int count) {
    for (int i = 0; i < 2000 && calls < count; ++i) {
        usleep(10000);
    }
    expect(calls >= count);
    calls = 0;
}

static void timers(void) {
    for (int i = 0; i < 3; ++i) {
        struct sigevent wanted = event();
        timer_t timer;
        expect(timer_create(CLOCK_MONOTONIC, &wanted, &timer) == 0);
        const struct itimerspec once = {{0, 0}, {0, 5000000}};
        expect(timer_settime(timer, 0, &once, NULL) == 0);
        wait_for(1);
        expect(timer_delete(timer) == 0);
    }
}

static void operations(void) {
    char text[10] = "", more[10] = "";
    struct aiocb first, second;
    memset(&first, 0, sizeof first);
    first.aio_fildes = open("/etc/passwd", O_RDONLY);
    first.aio_buf = text;
    first.aio_nbytes = sizeof text;
    first.aio_sigevent = event();
    second = first;
    second.aio_buf = more;
    expect(aio_read(&first) == 0);
    wait_for(1);
    expect(aio_error(&first) == 0 && aio_return(&first) == sizeof text);
    expect(first.aio_sigevent.sigev_notify_function == called);
    first.aio_lio_opcode = second.aio_lio_opcode = LIO_READ;
    struct aiocb* list[] = {&first, &second};
    struct sigevent wanted = event();
    expect(lio_listio(LIO_NOWAIT, list, 2, &wanted) == 0);
    wait_for(3);
    expect(memcmp(text, more, sizeof text) == 0);
    close(first.aio_fildes);
}

/* A request that begins again as soon as it is done: the thread of its last operation may still be
   on its way. */
static void operations_in_a_row(void) {
    enum { count = 300 };
    char text[10] = "";
    struct aiocb request;
    memset(&request, 0, sizeof request);
    request.aio_fildes = open("/etc/passwd", O_RDONLY);
    request.aio_buf = text;
    request.aio_nbytes = sizeof text;
    request.aio_sigevent = event();
    for (int i = 0; i < count; ++i) {
        expect(aio_read(&request) == 0);
        while (aio_error(&request) == EINPROGRESS) {
            sched_yield();
        }
        expect(aio_return(&request) == sizeof text);
    }
    wait_for(count);
    close(request.aio_fildes);
}

static void addresses(void) {
    struct gaicb request;
    memset(&request, 0, sizeof request);
    request.ar_name = "127.0.0.1";
    struct gaicb* list[] = {&request};
    struct sigevent wanted = event();
    expect(getaddrinfo_a(GAI_NOWAIT, list, 1, &wanted) == 0);
    wait_for(1);
    expect(gai_error(&request) == 0);
    freeaddrinfo(request.ar_result);
}

/* What would wait is under way meanwhile. */
static void operations_on_pipes(void) {
    int ends[2], others[2];
    char text[2][8] = {"", ""};
    expect(pipe(ends) == 0 && pipe(others) == 0);
    struct aiocb requests[2];
    memset(requests, 0, sizeof requests);
    for (int i = 0; i < 2; ++i) {
        requests[i].aio_fildes = i == 0 ? ends[0] : others[0];
        requests[i].aio_buf = text[i];
        requests[i].aio_nbytes = 4;
        requests[i].aio_lio_opcode = LIO_READ;
        requests[i].aio_sigevent = event();
        requests[i].aio_sigevent.sigev_notify = i == 0 ? SIGEV_THREAD : SIGEV_NONE;
    }
    struct aiocb* all[] = {&requests[0], &requests[1]};
    expect(lio_listio(LIO_NOWAIT, all, 2, NULL) == 0);
    expect(aio_error(&requests[0]) == EINPROGRESS);
    const struct aiocb* const waited[] = {&requests[0], NULL};
    const struct timespec short_time = {0, 1000000};
    expect(aio_suspend(waited, 2, &short_time) == -1 && errno == EAGAIN);
    expect(write(ends[1], "one", 4) == 4);
    expect(aio_suspend(waited, 2, NULL) == 0);
    expect(aio_error(&requests[0]) == 0 && aio_return(&requests[0]) == 4);
    wait_for(1);
    expect(aio_error(&requests[1]) == EINPROGRESS && write(others[1], "two", 4) == 4);
    const struct aiocb* const second[] = {&requests[1]};
    expect(aio_suspend(second, 1, NULL) == 0 && aio_return(&requests[1]) == 4);
    expect(strcmp(text[0], "one") == 0 && strcmp(text[1], "two") == 0);
    expect(aio_cancel(ends[0], NULL) == AIO_ALLDONE);
    for (int i = 0; i < 2; ++i) {
        close(ends[i]);
        close(others[i]);
    }
}

static void queues(void) {
    char name[60];
    snprintf(name, sizeof name, "/warren-%d-%d", (int)getpid(), world_rank);
    struct mq_attr attributes = {0, 4, 8, 0};
    const mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    if (queue == (mqd_t)-1) {
        return; /* a system without them */
    }
    struct sigevent wanted = event();
    expect(mq_notify(queue, &wanted) == 0);
    expect(mq_notify(queue, &wanted) != 0 && errno == EBUSY);
    expect(mq_send(queue, "text", 4, 0) == 0);
    wait_for(1);
    char text[8];
    expect(mq_receive(queue, text, sizeof text, NULL) == 4);
    expect(mq_notify(queue, &wanted) == 0 && mq_notify(queue, NULL) == 0);
    mq_close(queue);
    mq_unlink(name);
}

static char told[60];
static volatile int left;

static void note_end(void) {
    left = 1;
}

/* Tells by a file that the rank had ended long before. */
static void called_late(union sigval value) {
    static volatile int times;
    (void)value;
    if (left && ++times > 50) {
        close(open(told, O_CREAT | O_WRONLY, 0600));
    }
}

/* Rank 0 ends while it has a timer, which ends with it. */
static int end_with_timer(void) {
    int first = (int)getpid();
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(told, sizeof told, "/tmp/mpi-test-timer.%d", first);
    if (world_rank == 0) {
        struct sigevent wanted = event();
        wanted.sigev_notify_function = called_late;
        timer_t timer;
        atexit(note_end);
        expect(timer_create(CLOCK_MONOTONIC, &wanted, &timer) == 0);
        const struct itimerspec always = {{0, 2000000}, {0, 2000000}};
        expect(timer_settime(timer, 0, &always, NULL) == 0);
    }
    const int status = finish();
    if (world_rank == 1) {
        usleep(500 * 1000);
        expect(access(told, F_OK) != 0);
        unlink(told);
    }
    return status != 0 || failures != 0;
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    FILE* file = tmpfile();
    own_file = fileno(file);
    expect(write(own_file, &world_rank, sizeof world_rank) == sizeof world_rank);
    global = world_rank + 10;
    local = 1000 + world_rank;
    together();
    timers();
    operations();
    operations_in_a_row();
    operations_on_pipes();
    addresses();
    queues();
    expect(local == 1000 + world_rank);
    together();
    return end_with_timer();
}
