/* What the tests of files share: a file of their own, and its bytes as the system has them. */
#ifndef FILE_H
#define FILE_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../point_to_point/check.h"

static char file_name[128];
static int rank, size;

/* A name that no other test uses, the same at all ranks. */
static inline void file_begin(const char* test) {
    int pid = (int)getpid();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(file_name, sizeof file_name, "io_%s_%d_%d", test, size, pid);
}

static inline MPI_File file_open(int amode) {
    MPI_File file;
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_open(MPI_COMM_WORLD, file_name, amode, MPI_INFO_NULL, &file) == MPI_SUCCESS,
          "opening %s", file_name);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    return file;
}

static inline MPI_File file_new(void) {
    return file_open(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
}

/* The byte at a place of the file, once all ranks have come here; -1: it is not there. */
static inline int file_byte(long offset) {
    unsigned char byte = 0;
    int descriptor = open(file_name, O_RDONLY);
    CHECK(descriptor >= 0, "opening %s", file_name);
    int got = (int)pread(descriptor, &byte, 1, offset);
    close(descriptor);
    return got == 1 ? byte : -1;
}

static inline void check_count(const MPI_Status* status, int bytes, const char* what) {
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK(count == bytes, "%s: %d bytes, expected %d", what, count, bytes);
}

#endif
