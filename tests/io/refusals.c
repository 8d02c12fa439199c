/* One rank's arguments of a collective call are wrong: no other rank waits for it, nothing is
   touched, and the file is of use afterwards. */
#include "file.h"

static MPI_File file;
static char data[64];
static MPI_Datatype uncommitted;

static int write_at_all(int count, MPI_Datatype type) {
    return MPI_File_write_at_all(file, rank, data, count, type, MPI_STATUS_IGNORE);
}
static int read_at_all(int count, MPI_Datatype type) {
    return MPI_File_read_at_all(file, rank, data, count, type, MPI_STATUS_IGNORE);
}
static int write_all(int count, MPI_Datatype type) {
    return MPI_File_write_all(file, data, count, type, MPI_STATUS_IGNORE);
}
static int read_all(int count, MPI_Datatype type) {
    return MPI_File_read_all_c(file, data, count, type, MPI_STATUS_IGNORE);
}
static int write_ordered(int count, MPI_Datatype type) {
    return MPI_File_write_ordered(file, data, count, type, MPI_STATUS_IGNORE);
}
static int read_ordered(int count, MPI_Datatype type) {
    return MPI_File_read_ordered(file, data, count, type, MPI_STATUS_IGNORE);
}
static int write_at_all_begin(int count, MPI_Datatype type) {
    return MPI_File_write_at_all_begin(file, rank, data, count, type);
}
static int read_all_begin(int count, MPI_Datatype type) {
    return MPI_File_read_all_begin(file, data, count, type);
}
static int write_ordered_begin(int count, MPI_Datatype type) {
    return MPI_File_write_ordered_begin(file, data, count, type);
}
static int set_view(int count, MPI_Datatype type) {
    return MPI_File_set_view(file, count, type, type, "native", MPI_INFO_NULL);
}

static int (*const calls[])(int, MPI_Datatype) = {
    write_at_all,       read_at_all,    write_all,           read_all, write_ordered, read_ordered,
    write_at_all_begin, read_all_begin, write_ordered_begin, set_view};

static const struct {
    int count;
    MPI_Datatype* type; /* null: MPI_CHAR */
    int error_class;
} wrong[] = {{-1, NULL, MPI_ERR_COUNT}, {3, &uncommitted, MPI_ERR_TYPE}};

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    file_begin("refusals");
    file = file_new();
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    MPI_Type_vector(2, 1, 2, MPI_CHAR, &uncommitted);
    const int calls_made = (int)(sizeof calls / sizeof *calls);
    for (int who = 0; who < size; who++)
        for (int i = 0; i < calls_made; i++)
            for (int j = 0; j < 2; j++) {
                const int mine = rank == who;
                const MPI_Datatype type = mine && wrong[j].type ? *wrong[j].type : MPI_CHAR;
                /* A displacement that is wrong is an argument, a count that is wrong a count. */
                int expected = wrong[j].error_class;
                if (calls[i] == set_view && expected == MPI_ERR_COUNT)
                    expected = MPI_ERR_ARG;
                const int code = calls[i](mine ? wrong[j].count : 1, type);
                CHECK(check_class(code) == expected, "call %d, fault %d of rank %d: class %d", i, j,
                      who, check_class(code));
            }
    MPI_Offset at = -1, bytes = -1;
    MPI_File_get_position(file, &at);
    CHECK(at == 0, "the pointer has moved to %lld", (long long)at);
    MPI_File_get_position_shared(file, &at);
    CHECK(at == 0, "the shared pointer has moved to %lld", (long long)at);
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == 0, "%lld bytes were written", (long long)bytes);
    /* No split access was begun. */
    data[0] = (char)('a' + rank);
    CHECK(write_at_all(1, MPI_CHAR) == MPI_SUCCESS, "-");
    MPI_Barrier(MPI_COMM_WORLD);
    data[0] = 0;
    CHECK(read_all(1, MPI_CHAR) == MPI_SUCCESS, "-");
    CHECK(data[0] == 'a', "%d", data[0]);
    MPI_Type_free(&uncommitted);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
