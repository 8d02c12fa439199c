/* Writes until the file system is full, in each way: the error says so and names the file, and what
   was written before is there. Started in a folder of a small file system (full_disk.sh). */
#include "file.h"

enum { bytes = 65536, rounds = 1000 };

static char data[bytes];
static MPI_File file;

static int at(int round) {
    const MPI_Offset begin = ((MPI_Offset)round * size + rank) * bytes;
    return MPI_File_write_at(file, begin, data, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
}
static int at_all(int round) {
    const MPI_Offset begin = ((MPI_Offset)round * size + rank) * bytes;
    return MPI_File_write_at_all(file, begin, data, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
}
static int nonblocking(int round) {
    const MPI_Offset begin = ((MPI_Offset)round * size + rank) * bytes;
    MPI_Request request;
    MPI_File_iwrite_at(file, begin, data, bytes, MPI_CHAR, &request);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static int ordered(int round) {
    (void)round;
    return MPI_File_write_ordered(file, data, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
}
/* In views with records of each rank in turn. */
static int interleaved(int round) {
    return MPI_File_write_at_all(file, (MPI_Offset)round * bytes, data, bytes, MPI_CHAR,
                                 MPI_STATUS_IGNORE);
}
static int sieved(int round) {
    return MPI_File_write_at(file, (MPI_Offset)round * bytes, data, bytes, MPI_CHAR,
                             MPI_STATUS_IGNORE);
}
static int preallocation(int round) {
    return MPI_File_preallocate(file, ((MPI_Offset)round + 1) * size * bytes);
}

static const struct {
    const char* name;
    int (*write)(int round);
    int record; /* of the view; 0: none */
    int of_all; /* all ranks get the error */
} ways[] = {{"write_at", at, 0, 0},
            {"write_at_all", at_all, 0, 0},
            {"iwrite_at", nonblocking, 0, 0},
            {"write_ordered", ordered, 0, 0},
            {"staged write_at_all", interleaved, 64, 1},
            {"sieved write_at", sieved, 64, 0},
            {"preallocate", preallocation, 0, 1}};

static int fill(int (*write)(int), int of_all, const char* name) {
    int failed = 0, round = 0;
    for (; round < rounds && !failed; round++) {
        const int code = write(round);
        char text[MPI_MAX_ERROR_STRING] = "";
        int length;
        failed = code != MPI_SUCCESS;
        if (failed) {
            MPI_Error_string(code, text, &length);
            CHECK(check_class(code) == MPI_ERR_NO_SPACE, "%s: %s", name, text);
            CHECK(strstr(text, file_name) != NULL, "%s: %s", name, text);
        }
        const int own = failed;
        MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        CHECK(!failed || own || !of_all, "%s: this rank heard of nothing", name);
    }
    CHECK(failed, "%s: the file system is not full", name);
    return round - 1;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    file_begin("full");
    for (int i = 0; i < (int)(sizeof ways / sizeof *ways); i++) {
        file = file_new();
        MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
        if (ways[i].record) {
            MPI_Datatype record, tile;
            MPI_Type_contiguous(ways[i].record, MPI_CHAR, &record);
            MPI_Type_create_resized(record, 0, (MPI_Aint)ways[i].record * size, &tile);
            MPI_Type_commit(&tile);
            MPI_File_set_view(file, (MPI_Offset)ways[i].record * rank, MPI_CHAR, tile, "native",
                              MPI_INFO_NULL);
            MPI_Type_free(&record);
            MPI_Type_free(&tile);
        }
        memset(data, 'a' + rank, bytes);
        const int whole = fill(ways[i].write, ways[i].of_all, ways[i].name);
        CHECK(whole > 1, "%s: the file system was full before", ways[i].name);
        if (ways[i].write != preallocation && ways[i].write != ordered) {
            static char back[bytes];
            const MPI_Offset begin = ways[i].record
                                         ? (MPI_Offset)(whole - 1) * bytes
                                         : ((MPI_Offset)(whole - 1) * size + rank) * bytes;
            MPI_File_read_at(file, begin, back, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
            CHECK(memcmp(back, data, bytes) == 0, "%s: what was written before", ways[i].name);
        }
        MPI_File_close(&file);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
