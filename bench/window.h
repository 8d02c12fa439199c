/*
 * A window of messages: the sender starts `window` nonblocking sends and waits for all of them, the
 * receiver has as many receives and answers each full window with one small message. Shared by
 * bandwidth, message_rate and groups, which ask different questions of the same traffic.
 *
 * Rank 0 sends to rank 1 (groups: each thread to its own partner). `written`: every message has its
 * own buffers on both sides, and the sender writes each one just before sending it (inside the
 * time). Otherwise all messages of a window leave the same cached buffer and arrive in one, as the
 * usual bandwidth tests do.
 */
#ifndef WARREN_BENCH_WINDOW_H
#define WARREN_BENCH_WINDOW_H

#include "bench.h"

enum { window_max = 256 };

typedef struct {
    char* buffer;  /* of one message, or of `messages` when written */
    size_t stride; /* from one message's buffer to the next */
    int size;      /* of a message, bytes */
    int messages;  /* of a window */
    MPI_Comm comm;
    int peer;
    bool sender;
    bool written;
    unsigned char stamp;
} Window;

static inline void window_run(void* state, int repetitions) {
    Window* window = state;
    MPI_Request requests[window_max];
    int acknowledged = 0;
    for (int i = 0; i < repetitions; i++) {
        window->stamp++;
        for (int m = 0; m < window->messages; m++) {
            char* at = window->buffer + window->stride * (size_t)m;
            if (!window->sender) {
                MPI_Irecv(at, window->size, MPI_BYTE, window->peer, bench_tag, window->comm,
                          &requests[m]);
                continue;
            }
            if (window->written) {
                memset(at, window->stamp, (size_t)window->size);
                __asm__ volatile("" : : "r"(at) : "memory");
            }
            MPI_Isend(at, window->size, MPI_BYTE, window->peer, bench_tag, window->comm,
                      &requests[m]);
        }
        MPI_Waitall(window->messages, requests, MPI_STATUSES_IGNORE);
        if (window->sender)
            MPI_Recv(&acknowledged, 1, MPI_INT, window->peer, bench_tag, window->comm,
                     MPI_STATUS_IGNORE);
        else
            MPI_Send(&acknowledged, 1, MPI_INT, window->peer, bench_tag, window->comm);
    }
}

/* Seconds per window. Aborts if the last window did not arrive as it was written. */
static inline BenchTimes window_measure(Bench* bench, size_t size, int messages, bool written) {
    Window window = {.stride = written ? (size + 4095) & ~(size_t)4095 : 0,
                     .size = (int)size,
                     .messages = messages,
                     .comm = MPI_COMM_WORLD,
                     .peer = 1 - bench->rank,
                     .sender = bench->rank == 0,
                     .written = written,
                     .stamp = 1};
    size_t bytes = written ? window.stride * (size_t)messages : size;
    window.buffer = bench_buffer(bench, bytes);
    BenchTimes times = bench_measure(bench, window_run, &window, bench_leader);
    unsigned char expected = written ? window.stamp : 1;
    if (size > 0 &&
        (unsigned char)window.buffer[bytes - (written ? window.stride : size) + size - 1] !=
            expected)
        bench_die(bench, "received other bytes than were sent", "");
    free(window.buffer);
    return times;
}

#endif
