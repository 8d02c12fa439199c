/* One rank has no room for the mapping of the staging area: collective accesses go without it, at
   all ranks, and those after them too. As processes, which have limits of their own. */
#include <sys/resource.h>

#include "file.h"

enum { ints = 20000, tries = 3 };

static long mapped_bytes(void) {
    long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1, "statm");
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void limit_mappings(rlim_t bytes) {
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

static void access_interleaved(MPI_File file, int round) {
    static int values[ints], back[ints];
    MPI_Offset at = -1;
    for (int i = 0; i < ints; i++)
        values[i] = (i * size + rank) * 16 + round;
    memset(back, 0, sizeof back);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_write_all(file, values, ints, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_get_position(file, &at);
    CHECK(at == ints, "round %d: the pointer is at %lld", round, (long long)at);
    MPI_File_read_at_all(file, 0, back, ints, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(memcmp(values, back, sizeof back) == 0, "round %d", round);
}

int main(int argc, char** argv) {
    MPI_Info info;
    MPI_File file;
    MPI_Datatype tile;
    MPI_Init(&argc, &argv);
    file_begin("unmapped");
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "16777216");
    MPI_Type_create_resized(MPI_INT, 0, 4 * size, &tile);
    MPI_Type_commit(&tile);
    for (int who = 0; who < size; who++) {
        MPI_File_open(MPI_COMM_WORLD, file_name,
                      MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file);
        MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
        /* Buffers that have nothing to do with staging are there before. */
        MPI_File_write_at_all(file, rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_set_view(file, 4 * rank, MPI_INT, tile, "native", MPI_INFO_NULL);
        if (rank == who)
            limit_mappings((rlim_t)mapped_bytes() + (8 << 20));
        for (int round = 0; round < tries; round++)
            access_interleaved(file, round);
        if (rank == who)
            limit_mappings(RLIM_INFINITY);
        access_interleaved(file, tries);
        MPI_File_close(&file);
    }
    MPI_Type_free(&tile);
    MPI_Info_free(&info);
    MPI_Finalize();
    return 0;
}
