/* Threads that the C library makes for a rank belong to it: its thread-local variables, its MPI. */
#define _GNU_SOURCE

#include <aio.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "expect.h"

static __thread int local = 42;
static int global;
static volatile int calls;

/* `value` is what the program gave. */
static void called(union sigval value) {
    int rank = -1;
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
    expect(mq_send(queue, "text", 4, 0) == 0);
    wait_for(1);
    mq_close(queue);
    mq_unlink(name);
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    global = world_rank + 10;
    local = 1000 + world_rank;
    together();
    timers();
    operations();
    addresses();
    queues();
    expect(local == 1000 + world_rank);
    together();
    return finish();
}
