/* Offsets and sizes at the limits: refused before anything is touched, or done. */
#include "file.h"

#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>

static const MPI_Offset largest = LLONG_MAX;

static void expect_class(int code, int expected, const char* what) {
    CHECK(check_class(code) == expected, "%s: class %d", what, check_class(code));
}

static void offsets_that_no_file_has(void) {
    MPI_File file = file_new();
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    int value = 1;
    MPI_Offset at = -1;
    MPI_Datatype far;
    MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)1 << 50, &far);
    MPI_Type_commit(&far);
    for (int view = 0; view < 3; view++) {
        MPI_Offset displacement = view == 2 ? largest - 100 : 0;
        CHECK(MPI_File_set_view(file, displacement, MPI_INT, view == 1 ? far : MPI_INT, "native",
                                MPI_INFO_NULL) == MPI_SUCCESS,
              "-");
        const MPI_Offset wrong[] = {largest, largest / 4, (MPI_Offset)1 << 62};
        for (int i = 0; i < 3; i++) {
            expect_class(MPI_File_write_at(file, wrong[i], &value, 1, MPI_INT, MPI_STATUS_IGNORE),
                         MPI_ERR_ARG, "write_at");
            expect_class(
                MPI_File_read_at_all(file, wrong[i], &value, 1, MPI_INT, MPI_STATUS_IGNORE),
                MPI_ERR_ARG, "read_at_all");
            expect_class(MPI_File_get_byte_offset(file, wrong[i], &at), MPI_ERR_ARG,
                         "get_byte_offset");
        }
    }
    /* Pointers stay where they are. */
    MPI_File_set_view(file, 0, MPI_INT, far, "native", MPI_INFO_NULL);
    const MPI_Offset beyond = (MPI_Offset)1 << 20;
    MPI_File_seek(file, beyond, MPI_SEEK_SET);
    MPI_File_seek_shared(file, beyond, MPI_SEEK_SET);
    expect_class(MPI_File_write(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG, "write");
    expect_class(MPI_File_write_shared(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG,
                 "write_shared");
    expect_class(MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG,
                 "write_ordered");
    MPI_File_get_position(file, &at);
    CHECK(at == beyond, "the pointer is at %lld", (long long)at);
    MPI_File_get_position_shared(file, &at);
    CHECK(at == beyond, "the shared pointer is at %lld", (long long)at);
    expect_class(MPI_File_seek_shared(file, LLONG_MIN, MPI_SEEK_CUR), MPI_ERR_ARG, "seek_shared");
    expect_class(MPI_File_seek(file, largest, MPI_SEEK_CUR), MPI_ERR_ARG, "seek");
    MPI_Offset bytes = -1;
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == 0, "something has been written: %lld bytes", (long long)bytes);
    MPI_Type_free(&far);
    MPI_File_close(&file);
}

/* All ranks together want more than a file has, each of them not. */
static void too_much_together(void) {
    MPI_File file = file_new();
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    MPI_Datatype far;
    MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)1 << 60, &far);
    MPI_Type_commit(&far);
    MPI_File_set_view(file, 0, MPI_INT, far, "native", MPI_INFO_NULL);
    int values[2] = {0, 0};
    int code = MPI_File_write_ordered(file, values, 2, MPI_INT, MPI_STATUS_IGNORE);
    if (size > 1)
        expect_class(code, MPI_ERR_ARG, "write_ordered");
    MPI_Offset at = -1;
    MPI_File_get_position_shared(file, &at);
    CHECK(size == 1 || at == 0, "the shared pointer is at %lld", (long long)at);
    MPI_Type_free(&far);
    MPI_File_close(&file);
}

/* More than the kernel does in one call, in one piece and in many. */
static void more_than_2_gib(void) {
    if (rank != 0)
        return;
    const MPI_Count bytes = ((MPI_Count)2 << 30) + 12345;
    MPI_File file;
    MPI_Status status;
    MPI_Count count = 0;
    char* zeros =
        mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(zeros != MAP_FAILED, "mmap");
    MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    CHECK(MPI_File_write_at_c(file, 0, zeros, bytes, MPI_CHAR, &status) == MPI_SUCCESS, "write");
    MPI_Get_count_c(&status, MPI_CHAR, &count);
    CHECK(count == bytes, "%lld bytes were written", (long long)count);
    MPI_File_close(&file);
    munmap(zeros, (size_t)bytes);
    /* Pieces that lie over each other, so that little memory will do. */
    enum { piece = 48 << 20, pieces = 50 };
    char* memory = malloc(piece + pieces);
    memset(memory, 1, piece + pieces);
    MPI_Datatype often;
    MPI_Type_create_hvector(pieces, piece, 1, MPI_CHAR, &often);
    MPI_Type_commit(&often);
    MPI_File_open(MPI_COMM_SELF, "/dev/zero", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CHECK(MPI_File_read_at(file, 0, memory, 1, often, &status) == MPI_SUCCESS, "read");
    MPI_Get_count_c(&status, MPI_CHAR, &count);
    CHECK(count == (MPI_Count)piece * pieces, "%lld bytes were read", (long long)count);
    CHECK(memory[0] == 0 && memory[piece - 1] == 0, "-");
    MPI_File_close(&file);
    MPI_Type_free(&often);
    free(memory);
}

/* Beyond 4 GiB, of a file that has a page there. */
static void far_in_the_file(void) {
    MPI_File file = file_new();
    const MPI_Offset far = ((MPI_Offset)5 << 30) + rank * 8;
    long value = rank + 77, back = 0;
    MPI_File_write_at_all(file, far, &value, 8, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, far, &back, 8, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(back == value, "%ld", back);
    MPI_File_close(&file);
}

/* The kernel would end the process. What fits is written. (The limit is far, because the ranks'
   shared memory keeps it, too.) */
static void limit_of_file_sizes(void) {
    if (rank != 0)
        return;
    const MPI_Offset limit = (MPI_Offset)1 << 40;
    struct rlimit before, small;
    char name[200];
    snprintf(name, sizeof name, "%s_limit", file_name);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = (rlim_t)limit;
    setrlimit(RLIMIT_FSIZE, &small);
    MPI_File file;
    MPI_Status status;
    CHECK(MPI_File_open(MPI_COMM_SELF, name,
                        MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                        &file) == MPI_SUCCESS,
          "open");
    static char data[140000];
    memset(data, 'x', sizeof data);
    const MPI_Offset begin = limit - 100000;
    CHECK(MPI_File_write_at(file, begin, data, 70000, MPI_CHAR, &status) == MPI_SUCCESS, "-");
    expect_class(MPI_File_write_at(file, begin + 70000, data, 70000, MPI_CHAR, &status),
                 MPI_ERR_NO_SPACE, "write_at");
    MPI_Offset bytes = -1;
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == limit, "what fits has been written: %lld", (long long)bytes);
    MPI_Request request;
    MPI_File_iwrite_at(file, limit - 1, data, 2, MPI_CHAR, &request);
    expect_class(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE, "iwrite_at");
    expect_class(MPI_File_set_size(file, limit + 1), MPI_ERR_NO_SPACE, "set_size");
    expect_class(MPI_File_preallocate(file, limit + 1), MPI_ERR_NO_SPACE, "preallocate");
    MPI_Datatype tile, pieces;
    MPI_Type_create_resized(MPI_CHAR, 0, 2, &tile);
    MPI_Type_commit(&tile);
    expect_class(MPI_File_write_at(file, limit - 10000, data, 30000, tile, &status),
                 MPI_ERR_NO_SPACE, "write_at from pieces");
    MPI_Type_vector(4, 8192, 8193, MPI_CHAR, &pieces);
    MPI_Type_commit(&pieces);
    expect_class(MPI_File_write_at(file, limit - 20000, data, 1, pieces, &status), MPI_ERR_NO_SPACE,
                 "write_at from long pieces");
    MPI_File_set_view(file, begin, MPI_CHAR, tile, "native", MPI_INFO_NULL);
    expect_class(MPI_File_write_at(file, 0, data, 60000, MPI_CHAR, &status), MPI_ERR_NO_SPACE,
                 "write_at in a view with gaps");
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == limit, "the size is %lld", (long long)bytes);
    setrlimit(RLIMIT_FSIZE, &before);
    MPI_Type_free(&tile);
    MPI_Type_free(&pieces);
    MPI_File_close(&file);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    file_begin("limits");
    offsets_that_no_file_has();
    too_much_together();
    more_than_2_gib();
    far_in_the_file();
    limit_of_file_sizes();
    MPI_Finalize();
    return 0;
}
