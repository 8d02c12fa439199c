/* Events of what a rank asks of the C library and the system come to that rank alone, as often as
   it has asked: signals of asynchronous operations, message queues and look-ups of addresses.
   Operations on a pipe are done in their order. */
#define _GNU_SOURCE

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "handled.h"

enum { many = 20, rounds = 10 };

static volatile sig_atomic_t last_value, last_code;

static void note(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)context;
    last_value = information->si_value.sival_int;
    last_code = information->si_code;
    ++calls;
}

static void interrupt_wait(int number, siginfo_t* information, void* context) {
    (void)number;
    (void)information;
    (void)context;
}

static struct sigevent event(int value) {
    struct sigevent made;
    memset(&made, 0, sizeof made);
    made.sigev_notify = SIGEV_SIGNAL;
    made.sigev_signo = SIGUSR1;
    made.sigev_value.sival_int = value;
    return made;
}

static struct aiocb request_of(int file, void* data, size_t bytes) {
    struct aiocb request;
    memset(&request, 0, sizeof request);
    request.aio_fildes = file;
    request.aio_buf = data;
    request.aio_nbytes = bytes;
    request.aio_sigevent.sigev_notify = SIGEV_NONE;
    return request;
}

static void await(struct aiocb* request) {
    const struct aiocb* const list[] = {request};
    while (aio_error(request) == EINPROGRESS) {
        aio_suspend(list, 1, NULL);
    }
}

/* All ranks at once, with the same signal; then one. */
static void signals_of_operations(int file) {
    char text[20];
    struct aiocb request = request_of(file, text, 4);
    for (int round = 0; round < rounds; ++round) {
        calls = 0;
        together();
        request.aio_sigevent = event(100 * round + world_rank);
        expect(aio_read(&request) == 0);
        await_calls(1);
        together();
        expect(calls == 1 && last_value == 100 * round + world_rank && last_code == SI_ASYNCIO);
        expect(aio_error(&request) == 0 && aio_return(&request) == 4);
        expect(request.aio_sigevent.sigev_value.sival_int == 100 * round + world_rank);
    }
    calls = 0;
    together();
    if (world_rank == 1) {
        expect(aio_read(&request) == 0);
        await(&request);
        await_calls(1);
    }
    together();
    usleep(2000);
    expect(calls == (world_rank == 1));
}

static void signals_of_lists(int file) {
    char text[3][20];
    struct aiocb requests[3];
    struct aiocb* list[3];
    for (int i = 0; i < 3; ++i) {
        requests[i] = request_of(file, text[i], 4);
        requests[i].aio_lio_opcode = LIO_READ;
        list[i] = &requests[i];
    }
    calls = 0;
    together();
    struct sigevent wanted = event(50 + world_rank);
    expect(lio_listio(LIO_NOWAIT, list, 3, &wanted) == 0);
    await_calls(1);
    together();
    expect(calls == 1 && last_value == 50 + world_rank);
}

/* The program uses a request again while others of its list are under way. */
static void lists_whose_requests_are_used_again(void) {
    int first[2], second[2];
    char text[2];
    expect(pipe(first) == 0 && pipe(second) == 0);
    struct aiocb requests[] = {request_of(first[0], &text[0], 1),
                               request_of(second[0], &text[1], 1)};
    struct aiocb* list[] = {&requests[0], &requests[1]};
    requests[0].aio_lio_opcode = requests[1].aio_lio_opcode = LIO_READ;
    calls = 0;
    struct sigevent wanted = event(60 + world_rank);
    expect(lio_listio(LIO_NOWAIT, list, 2, &wanted) == 0);
    expect(write(first[1], "a", 1) == 1);
    await(&requests[0]);
    expect(aio_return(&requests[0]) == 1 && aio_read(&requests[0]) == 0);
    usleep(2000);
    expect(calls == 0 && write(second[1], "b", 1) == 1);
    await_calls(1);
    expect(aio_error(&requests[0]) == EINPROGRESS && aio_error(&requests[1]) == 0);
    expect(calls == 1 && last_value == 60 + world_rank);
    expect(write(first[1], "c", 1) == 1);
    await(&requests[0]);
    /* A list of nothing is done at once. */
    calls = 0;
    expect(lio_listio(LIO_NOWAIT, list, 0, &wanted) == 0);
    await_calls(1);
    for (int i = 0; i < 2; ++i) {
        close(first[i]);
        close(second[i]);
    }
}

static void errors_of_operations(int file) {
    char text[4];
    struct aiocb request = request_of(file, text, 4);
    struct aiocb* const list[] = {&request};
    request.aio_lio_opcode = LIO_READ;
    const long most = sysconf(_SC_AIO_PRIO_DELTA_MAX);
    for (int i = 0; i < 2; ++i) {
        request.aio_reqprio = i == 0 ? -1 : (int)most + 1;
        expect(aio_read(&request) == -1 && errno == EINVAL);
        expect(aio_error(&request) == EINVAL && aio_return(&request) == -1);
        expect(lio_listio(LIO_WAIT, list, 1, NULL) == -1 && errno == EINVAL);
        expect(lio_listio(LIO_NOWAIT, list, 1, NULL) == -1 && errno == EINVAL);
    }
    request.aio_reqprio = (int)most;
    request.aio_sigevent = event(0);
    request.aio_sigevent.sigev_signo = 1000;
    expect(aio_read(&request) == 0);
    await(&request);
    expect(aio_error(&request) == EINVAL && aio_return(&request) == -1);
    expect(lio_listio(LIO_WAIT, list, 1, NULL) == -1 && errno == EIO);
    expect(aio_cancel(-1, NULL) == -1 && errno == EBADF);
    expect(aio_cancel(2, &request) == -1 && errno == EINVAL);
    expect(aio_cancel(file, &request) == AIO_ALLDONE);
}

static void awaited_signals_of_operations(int file) {
    char text[20];
    struct aiocb request = request_of(file, text, 4);
    block(SIGUSR1, SIG_BLOCK);
    together();
    request.aio_sigevent = event(70 + world_rank);
    expect(aio_read(&request) == 0);
    const sigset_t set = only(SIGUSR1);
    const struct timespec limit = {20, 0};
    siginfo_t information;
    memset(&information, 0, sizeof information);
    expect(sigtimedwait(&set, &information, &limit) == SIGUSR1);
    expect(information.si_value.sival_int == 70 + world_rank);
    block(SIGUSR1, SIG_UNBLOCK);
    together();
}

static void order_of_operations(void) {
    int ends[2];
    char sent[many + 1], got[many + 1] = "";
    struct aiocb requests[many];
    expect(pipe(ends) == 0);
    together();
    for (int i = 0; i < many; ++i) {
        sent[i] = (char)('a' + i);
        requests[i] = request_of(ends[1], &sent[i], 1);
        expect(aio_write(&requests[i]) == 0);
    }
    for (int read_bytes = 0; read_bytes < many;) {
        read_bytes += (int)read(ends[0], got + read_bytes, (size_t)(many - read_bytes));
    }
    expect(memcmp(sent, got, many) == 0);
    for (int i = 0; i < many; ++i) {
        await(&requests[i]);
        expect(aio_return(&requests[i]) == 1);
        got[i] = 0;
        requests[i] = request_of(ends[0], &got[i], 1);
        expect(aio_read(&requests[i]) == 0);
    }
    expect(aio_cancel(ends[0], &requests[many - 1]) == AIO_CANCELED);
    expect(aio_error(&requests[many - 1]) == ECANCELED && aio_return(&requests[many - 1]) == -1);
    expect(write(ends[1], sent, many - 1) == many - 1);
    for (int i = 0; i < many - 1; ++i) {
        await(&requests[i]);
    }
    expect(memcmp(sent, got, many - 1) == 0);
    close(ends[0]);
    close(ends[1]);
}

/* A handler ends a wait for an operation. */
static void interrupted_waits(void) {
    int ends[2];
    char byte;
    expect(pipe(ends) == 0);
    handle(SIGALRM, interrupt_wait, 0);
    struct aiocb request = request_of(ends[0], &byte, 1);
    const struct aiocb* const list[] = {&request};
    expect(aio_read(&request) == 0);
    const struct itimerval soon = {{0, 100000}, {0, 100000}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    expect(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    expect(aio_suspend(list, 1, NULL) == -1 && errno == EINTR);
    expect(setitimer(ITIMER_REAL, &never, NULL) == 0);
    const struct timespec short_time = {0, 1000000};
    expect(aio_suspend(list, 1, &short_time) == -1 && errno == EAGAIN);
    expect(write(ends[1], "x", 1) == 1);
    await(&request);
    expect(aio_return(&request) == 1 && byte == 'x');
    close(ends[0]);
    close(ends[1]);
}

static void signals_of_queues(void) {
    char name[60], text[64];
    snprintf(name, sizeof name, "/mpi-test-requests.%d.%d", (int)getpid(), world_rank);
    struct mq_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.mq_maxmsg = 2;
    attributes.mq_msgsize = sizeof text;
    const mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    expect(queue != (mqd_t)-1);
    for (int round = 0; round < rounds; ++round) {
        calls = 0;
        const struct sigevent wanted = event(10 * round + world_rank);
        expect(mq_notify(queue, &wanted) == 0);
        expect(mq_notify(queue, &wanted) == -1 && errno == EBUSY);
        together();
        expect(mq_send(queue, "text", 5, 0) == 0);
        await_calls(1);
        together();
        expect(calls == 1 && last_value == 10 * round + world_rank && last_code == SI_MESGQ);
        expect(mq_receive(queue, text, sizeof text, NULL) == 5);
    }
    expect(mq_close(queue) == 0 && mq_unlink(name) == 0);
}

static long resident_pages(void) {
    long all = 0, resident = 0;
    FILE* stream = fopen("/proc/self/statm", "r");
    expect(stream != NULL && fscanf(stream, "%ld %ld", &all, &resident) == 2);
    fclose(stream);
    return resident;
}

/* They leave nothing behind. */
static void withdrawn_notices(void) {
    enum { warm_up = 1000, measured = 6000, most_pages = 384 };
    char name[60];
    struct mq_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.mq_maxmsg = 2;
    attributes.mq_msgsize = 64;
    snprintf(name, sizeof name, "/mpi-test-notices.%d.%d", (int)getpid(), world_rank);
    mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    calls = 0;
    long pages = 0;
    for (int i = 0; i < warm_up + measured; ++i) {
        if (i == warm_up) {
            together();
            pages = resident_pages();
            together();
        }
        const struct sigevent wanted = event(i);
        expect(mq_notify(queue, &wanted) == 0);
        if (i % 3 == 0) {
            expect(mq_close(queue) == 0);
            queue = mq_open(name, O_RDWR);
        } else {
            expect(mq_notify(queue, NULL) == 0);
        }
    }
    together();
    pages = resident_pages() - pages;
    expect(calls == 0 && pages < most_pages);
    together();
    expect(mq_close(queue) == 0 && mq_unlink(name) == 0);
}

static void signals_of_look_ups(void) {
    char number[20];
    snprintf(number, sizeof number, "10.0.0.%d", world_rank);
    struct gaicb request;
    struct gaicb* list[] = {&request};
    memset(&request, 0, sizeof request);
    request.ar_name = number;
    calls = 0;
    together();
    struct sigevent wanted = event(30 + world_rank);
    if (world_rank % 2) {
        expect(getaddrinfo_a(GAI_NOWAIT, list, 1, &wanted) == 0);
        await_calls(1);
    }
    together();
    usleep(2000);
    expect(world_rank % 2 ? calls == 1 && last_value == 30 + world_rank && last_code == SI_ASYNCNL
                          : calls == 0);
    together();
}

/* Rank 0 has ended when its operation is done: nobody gets the signal. */
static void end_before_an_operation(void) {
    static struct aiocb request;
    static char byte;
    if (world_rank != 0) {
        usleep(600000);
        return;
    }
    int ends[2];
    expect(pipe(ends) == 0);
    request = request_of(ends[0], &byte, 1);
    request.aio_sigevent = event(1);
    expect(aio_read(&request) == 0);
    if (fork() == 0) {
        usleep(200000);
        _exit(write(ends[1], "x", 1) != 1);
    }
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    handle(SIGUSR1, note, SA_RESTART);
    const int file = open("/etc/passwd", O_RDONLY);
    signals_of_operations(file);
    signals_of_lists(file);
    lists_whose_requests_are_used_again();
    errors_of_operations(file);
    awaited_signals_of_operations(file);
    order_of_operations();
    interrupted_waits();
    signals_of_queues();
    withdrawn_notices();
    signals_of_look_ups();
    close(file);
    finish();
    end_before_an_operation();
    return failures != 0;
}
