/* traffic DEED WHO MILLISECONDS: all ranks exchange messages of 8 B to 1 MiB round a ring and check
   them. After that time rank WHO does the deed in the middle of it: "abort" (MPI_Abort with code
   7), "leave" (exit(0) without MPI_Finalize), "crash" (by SIGSEGV), or "finish": all end well;
   "forget": all end, but WHO has sent to its neighbour what nobody receives.
   "part": the ranks of odd number come together in a communicator that WHO, one of them, aborts
   with code 7; the others exchange a message and end well. "collectives": all do collective
   operations of as many sizes without an end instead. "depart": WHO finalises and ends with code
   5, and the others wait for its message. "lock": WHO holds a window's lock that all others want,
   and waits for a signal.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { largest = 1 << 20 };

static void exchange(int rank, int size, int step, char* out, char* in, MPI_Comm comm) {
    static const int sizes[] = {8, 0, 1000, 64 << 10, 100, largest, 5000, 300 << 10};
    const int bytes = sizes[step % 8];
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    memset(out, rank + step, (size_t)bytes);
    MPI_Request requests[2];
    MPI_Irecv(in, bytes, MPI_CHAR, from, step, comm, &requests[0]);
    MPI_Isend(out, bytes, MPI_CHAR, to, step, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int at = 0; at < bytes; ++at) {
        if (in[at] != (char)(from + step)) {
            fprintf(stderr, "rank %d: wrong byte %d of step %d\n", rank, at, step);
            MPI_Abort(MPI_COMM_WORLD, 99);
        }
    }
}

static void check(int right, int rank, int step) {
    if (!right) {
        fprintf(stderr, "rank %d: wrong result of step %d\n", rank, step);
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
}

/* Through the lines of collective slots, their areas, in one piece and in many, and by messages. */
static void collect(int rank, int size, int step, int* out, int* in) {
    static const int counts[] = {1, 14, 15, 1000, 2, 16 << 10, 200, 64 << 10};
    const int count = counts[step % 8], root = step % size;
    const int block = count / size + 1, last = count - 1;
    for (int at = 0; at < count + size; ++at) {
        out[at] = rank + at + step;
    }
    switch (step / 8 % 6) {
    case 0:
        MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        check(in[last] == size * (last + step) + size * (size - 1) / 2, rank, step);
        break;
    case 1:
        MPI_Bcast(out, count, MPI_INT, root, MPI_COMM_WORLD);
        check(out[last] == root + last + step, rank, step);
        break;
    case 2:
        MPI_Alltoall(out, block, MPI_INT, in, block, MPI_INT, MPI_COMM_WORLD);
        check(in[size * block - 1] == size - 1 + rank * block + block - 1 + step, rank, step);
        break;
    case 3:
        MPI_Gather(out, block, MPI_INT, in, block, MPI_INT, root, MPI_COMM_WORLD);
        check(rank != root || in[size * block - 1] == size - 1 + block - 1 + step, rank, step);
        break;
    case 4:
        MPI_Reduce(out, in, count, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD);
        check(rank != root || in[last] == size - 1 + last + step, rank, step);
        break;
    default: {
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
        MPI_Allreduce(out, in, block, MPI_INT, MPI_MIN, half);
        check(in[0] == rank % 2 + step, rank, step);
        MPI_Comm_free(&half);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    }
}

static int depart(int rank, int who) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != who) {
        int never;
        MPI_Recv(&never, 1, MPI_INT, who, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 5;
}

/* The ranks of one half go on when the other half's are aborted. */
static void part(int rank, int who, char* out, char* in) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Barrier(half);
    if (rank == who) {
        MPI_Abort(half, 7);
    }
    while (rank % 2 == 1) {
        MPI_Barrier(half);
    }
    int place, places;
    MPI_Comm_rank(half, &place);
    MPI_Comm_size(half, &places);
    exchange(place, places, 5, out, in, half);
    puts("went on");
    MPI_Comm_free(&half);
}

static void act(const char* deed) {
    if (strcmp(deed, "abort") == 0) {
        MPI_Abort(MPI_COMM_WORLD, 7);
    } else if (strcmp(deed, "leave") == 0) {
        exit(0);
    } else if (strcmp(deed, "crash") == 0) {
        raise(SIGSEGV);
    }
}

static void hold_lock(int rank, int who) {
    MPI_Win win;
    void* memory;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    if (rank == who) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == who) {
        pause();
    }
    MPI_Win_lock(rank % 2 == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

int main(int count, char** words) {
    MPI_Init(&count, &words);
    if (count != 4) {
        MPI_Abort(MPI_COMM_WORLD, 98);
    }
    const char* deed = words[1];
    const int who = atoi(words[2]);
    const double seconds = atof(words[3]) * 1e-3;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char* out = malloc(largest);
    char* in = malloc(largest);
    const double start = MPI_Wtime();
    int step = 0;
    const int forget = strcmp(deed, "forget") == 0;
    if (forget && rank == who) {
        MPI_Request request;
        MPI_Issend(out, 8, MPI_CHAR, (rank + 1) % size, 1000, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
    if (strcmp(deed, "lock") == 0) {
        hold_lock(rank, who);
    }
    if (strcmp(deed, "part") == 0) {
        part(rank, who, out, in);
    }
    if (strcmp(deed, "depart") == 0) {
        free(in);
        free(out);
        return depart(rank, who);
    }
    if (forget || strcmp(deed, "finish") == 0 || strcmp(deed, "part") == 0) {
        for (; step < 64 && strcmp(deed, "part") != 0; ++step) {
            exchange(rank, size, step, out, in, MPI_COMM_WORLD);
        }
        free(in);
        free(out);
        MPI_Finalize();
        return 0;
    }
    if (strcmp(deed, "collectives") == 0) {
        while (1) {
            collect(rank, size, step++, (int*)(void*)out, (int*)(void*)in);
        }
    }
    while (1) {
        exchange(rank, size, step++, out, in, MPI_COMM_WORLD);
        if (rank == who && MPI_Wtime() - start > seconds) {
            act(deed);
        }
    }
}
