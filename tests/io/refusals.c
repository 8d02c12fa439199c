/* One rank's arguments of a collective call are wrong, or it makes another call than the others: no
   other rank waits for it, nothing is touched, and the file is of use afterwards. */
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

/* One rank's arguments of MPI_File_open are wrong: all ranks fail, and no file is made. */
static void check_open(int who) {
    enum { no_name, bad_info, bad_amode, other_amode, faults };
    static const int classes[faults] = {MPI_ERR_ARG, MPI_ERR_INFO, MPI_ERR_AMODE, MPI_ERR_NOT_SAME};
    char missing[160];
    snprintf(missing, sizeof missing, "%s.missing", file_name);
    for (int fault = 0; fault < faults; fault++) {
        if (fault == other_amode && size == 1)
            continue;
        int amode = MPI_MODE_CREATE | MPI_MODE_RDWR;
        const char* name = missing;
        MPI_Info info = MPI_INFO_NULL;
        if (rank == who) {
            amode = fault == bad_amode     ? MPI_MODE_CREATE
                    : fault == other_amode ? MPI_MODE_CREATE | MPI_MODE_WRONLY
                                           : amode;
            name = fault == no_name ? NULL : name;
            info = fault == bad_info ? (MPI_Info)&fault : info;
        }
        MPI_File opened = MPI_FILE_NULL;
        const int code = MPI_File_open(MPI_COMM_WORLD, name, amode, info, &opened);
        CHECK(check_class(code) == classes[fault], "open, fault %d of rank %d: class %d", fault,
              who, check_class(code));
        CHECK(opened == MPI_FILE_NULL, "-");
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(access(missing, F_OK) != 0, "fault %d of rank %d has made a file", fault, who);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* One rank's other collective calls are wrong. */
static void check_others(int who) {
    const int mine = rank == who;
    const int same = size == 1 ? MPI_ERR_ARG : MPI_ERR_NOT_SAME;
    int code = MPI_File_set_size(file, mine ? -1 : 7);
    CHECK(check_class(code) == MPI_ERR_ARG, "set_size: class %d", check_class(code));
    code = MPI_File_preallocate(file, mine ? -1 : 7);
    CHECK(check_class(code) == MPI_ERR_ARG, "preallocate: class %d", check_class(code));
    code = MPI_File_seek_shared(file, 0, mine ? 12345 : MPI_SEEK_SET);
    CHECK(check_class(code) == same, "seek_shared: class %d", check_class(code));
    code =
        MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, mine ? "no such" : "native", MPI_INFO_NULL);
    CHECK(check_class(code) == MPI_ERR_UNSUPPORTED_DATAREP, "set_view: class %d",
          check_class(code));
    if (size > 1) {
        code = MPI_File_set_atomicity(file, mine);
        CHECK(check_class(code) == MPI_ERR_NOT_SAME, "set_atomicity: class %d", check_class(code));
    }
}

static int set_size(int count, MPI_Datatype type) {
    (void)type;
    return MPI_File_set_size(file, count);
}
static int preallocate(int count, MPI_Datatype type) {
    (void)type;
    return MPI_File_preallocate(file, count);
}
static int set_atomicity(int count, MPI_Datatype type) {
    (void)type;
    return MPI_File_set_atomicity(file, count);
}
static int sync_file(int count, MPI_Datatype type) {
    (void)count, (void)type;
    return MPI_File_sync(file);
}
static int close_file(int count, MPI_Datatype type) {
    (void)count, (void)type;
    return MPI_File_close(&file);
}

/* One rank makes another collective call. */
static void check_unequal(int who) {
    static int (*const pairs[][2])(int, MPI_Datatype) = {
        {write_at_all, read_at_all},    {write_all, write_ordered}, {read_ordered, write_ordered},
        {read_ordered, read_all},       {set_size, preallocate},    {set_atomicity, set_size},
        {write_at_all_begin, read_all}, {sync_file, close_file},    {close_file, set_atomicity}};
    for (int i = 0; i < (int)(sizeof pairs / sizeof *pairs); i++) {
        const int code = pairs[i][rank == who](1, MPI_CHAR);
        CHECK(check_class(code) == MPI_ERR_OTHER, "pair %d, rank %d: class %d", i, who,
              check_class(code));
    }
}

/* One rank has not ended its split access when all begin another. */
static void check_split(int who) {
    CHECK(MPI_File_read_at_all_begin(file, 0, data, 0, MPI_CHAR) == MPI_SUCCESS, "-");
    if (rank != who)
        CHECK(MPI_File_read_at_all_end(file, data, MPI_STATUS_IGNORE) == MPI_SUCCESS, "-");
    int code = MPI_File_read_ordered_begin(file, data, 1, MPI_CHAR);
    CHECK(check_class(code) == MPI_ERR_IO, "class %d", check_class(code));
    code = MPI_File_write_all_begin(file, data, 1, MPI_CHAR);
    CHECK(check_class(code) == MPI_ERR_IO, "class %d", check_class(code));
    if (rank == who)
        CHECK(MPI_File_read_at_all_end(file, data, MPI_STATUS_IGNORE) == MPI_SUCCESS, "-");
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    file_begin("refusals");
    for (int who = 0; who < size; who++)
        check_open(who);
    file = file_new();
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    MPI_Type_vector(2, 1, 2, MPI_CHAR, &uncommitted);
    const int calls_made = (int)(sizeof calls / sizeof *calls);
    for (int who = 0; who < size; who++) {
        check_others(who);
        check_split(who);
        if (size > 1)
            check_unequal(who);
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
