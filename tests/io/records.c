/* Each rank writes records to a file in atomic mode, again and again, until it is killed; others
   than rank `victim` for some seconds, and read the file then:
   records FILE LAYOUT RECORD COUNT SECONDS VICTIM [BYTES]
   All bytes of a call are equal. LAYOUT: contiguous (a part of the file for each rank), view (parts
   take turns), same (all write to the same part), nonblocking and external32 (as contiguous).
   With BYTES, the victim's third call stops when it has written so many, as it does when the
   kernel gives up between two pages: the rank says so and waits to be killed. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long room = -1; /* bytes until the stop; -1: there is none */

/* In place of libc's, for processes. */
ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
    const int stops = room >= 0 && bytes > (size_t)room;
    if (stops)
        bytes = (size_t)room;
    if (room >= 0)
        room -= (long)bytes;
    const ssize_t done = bytes > 0 ? syscall(SYS_pwrite64, file, data, bytes, offset) : 0;
    if (stops) {
        fprintf(stderr, "STOPPED\n");
        while (1)
            pause();
    }
    return done;
}

ssize_t pwritev(int file, const struct iovec* pieces, int count, off_t offset) {
    return count > 0 ? pwrite(file, pieces[0].iov_base, pieces[0].iov_len, offset) : 0;
}

static int is(const char* layout, const char* other) {
    return strcmp(layout, other) == 0;
}

/* The part of each rank holds one value; of a write of over 64 KiB, each record. */
static void check(MPI_File file, unsigned char* data, int bytes, int record, const char* layout,
                  int size) {
    const int whole = bytes > 65536 ? record : bytes;
    for (int part = 0; part < (is(layout, "contiguous") ? size : 1); part++) {
        MPI_File_read_at(file, (MPI_Offset)part * bytes, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        for (int i = 1; i < bytes; i++)
            if (data[i] != data[i / whole * whole]) {
                fprintf(stderr, "TORN: byte %d of part %d\n", i, part);
                break;
            }
    }
}

int main(int argc, char** argv) {
    int rank, size;
    const char* layout = argv[2];
    const int record = atoi(argv[3]), count = atoi(argv[4]), bytes = record * count;
    const double seconds = atof(argv[5]);
    const int victim = atoi(argv[6]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    fprintf(stderr, "PID %d %d\n", rank, (int)getpid());
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                      &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Datatype type, tile;
    MPI_Type_contiguous(record, MPI_BYTE, &type);
    MPI_Type_create_resized(type, 0, (MPI_Aint)record * size, &tile);
    MPI_Type_commit(&tile);
    MPI_Type_commit(&type);
    if (is(layout, "view"))
        MPI_File_set_view(file, (MPI_Offset)record * rank, type, tile, "native", MPI_INFO_NULL);
    if (is(layout, "external32"))
        MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, layout, MPI_INFO_NULL);
    MPI_File_set_atomicity(file, 1);
    unsigned char* data = malloc((size_t)bytes);
    const MPI_Offset at = is(layout, "view") || is(layout, "same") ? 0 : (MPI_Offset)rank * bytes;
    const double begin = MPI_Wtime();
    for (unsigned n = 1; rank == victim || MPI_Wtime() < begin + seconds; n++) {
        memset(data, (int)(1 + (n * 7 + (unsigned)rank * 50) % 251), (size_t)bytes);
        if (n == 3 && argc > 7 && rank == victim)
            room = atol(argv[7]);
        if (is(layout, "nonblocking")) {
            MPI_Request request;
            MPI_File_iwrite_at(file, at, data, count, type, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else
            MPI_File_write_at(file, at, data, count, type, MPI_STATUS_IGNORE);
        if (n == 2) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0)
                fprintf(stderr, "GO\n");
        }
    }
    if (!is(layout, "view")) /* its own view shows it no other records */
        check(file, data, bytes, record, layout, size);
    fprintf(stderr, "DONE\n");
    _exit(0);
}
