/* Opening in all modes, deletion, sizes, group, hints; nothing is left behind. */
#include "file.h"

static void modes_that_are_refused(void) {
    const int wrong[] = {0,
                         MPI_MODE_RDONLY | MPI_MODE_RDWR,
                         MPI_MODE_CREATE | MPI_MODE_RDONLY,
                         MPI_MODE_EXCL | MPI_MODE_RDONLY,
                         MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL,
                         MPI_MODE_RDWR | 0x10000};
    for (int i = 0; i < (int)(sizeof wrong / sizeof *wrong); i++) {
        MPI_File file = (MPI_File)&file;
        int code = MPI_File_open(MPI_COMM_WORLD, file_name, wrong[i], MPI_INFO_NULL, &file);
        CHECK(check_class(code) == MPI_ERR_AMODE, "amode %d: class %d", wrong[i],
              check_class(code));
        CHECK(file == MPI_FILE_NULL, "a handle of a file that is not open");
    }
}

static void files_that_exist_or_not(void) {
    MPI_File file;
    int code = MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    CHECK(check_class(code) == MPI_ERR_NO_SUCH_FILE, "class %d", check_class(code));
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, file_name) != NULL, "the error does not name the file: %s", text);
    code = MPI_File_open(MPI_COMM_WORLD, "no_folder/file", MPI_MODE_CREATE | MPI_MODE_WRONLY,
                         MPI_INFO_NULL, &file);
    CHECK(check_class(code) == MPI_ERR_NO_SUCH_FILE, "class %d", check_class(code));
    code = MPI_File_open(MPI_COMM_WORLD, ".", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CHECK(check_class(code) == MPI_ERR_BAD_FILE, "class %d", check_class(code));
    code = MPI_File_delete(file_name, MPI_INFO_NULL);
    CHECK(check_class(code) == MPI_ERR_NO_SUCH_FILE, "class %d", check_class(code));

    file = file_open(MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);
    MPI_File_close(&file);
    CHECK(file == MPI_FILE_NULL, "the handle is still there");
    code = MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR,
                         MPI_INFO_NULL, &file);
    CHECK(check_class(code) == MPI_ERR_FILE_EXISTS, "class %d", check_class(code));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        CHECK(MPI_File_delete(file_name, MPI_INFO_NULL) == MPI_SUCCESS, "deleting");
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Pipes and sockets: an open of theirs could wait for ever. */
static void what_has_no_offsets(void) {
    const int modes[] = {MPI_MODE_RDONLY, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL,
                         MPI_MODE_RDWR | MPI_MODE_CREATE};
    for (int is_socket = 0; is_socket < 2; is_socket++) {
        const mode_t kind = is_socket ? S_IFSOCK : S_IFIFO;
        if (rank == 0)
            CHECK(mknod(file_name, kind | 0600, 0) == 0, "mknod");
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < 3; i++) {
            MPI_File file;
            int code = MPI_File_open(MPI_COMM_WORLD, file_name, modes[i], MPI_INFO_NULL, &file);
            CHECK(check_class(code) == MPI_ERR_IO, "class %d", check_class(code));
            char text[MPI_MAX_ERROR_STRING];
            int length;
            MPI_Error_string(code, text, &length);
            CHECK(strstr(text, is_socket ? "socket without offsets" : "pipe without offsets"), "%s",
                  text);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            CHECK(MPI_File_delete(file_name, MPI_INFO_NULL) == MPI_SUCCESS, "deleting");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File file;
    int byte = 1;
    CHECK(MPI_File_open(MPI_COMM_WORLD, "/dev/zero", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) ==
              MPI_SUCCESS,
          "a device with offsets");
    MPI_File_read_at_all(file, 5, &byte, sizeof byte, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(byte == 0, "%d", byte);
    MPI_File_close(&file);
}

static MPI_Offset displacement_of(MPI_File file) {
    MPI_Offset displacement = -1;
    MPI_Datatype etype, filetype;
    char representation[MPI_MAX_DATAREP_STRING];
    MPI_File_get_view(file, &displacement, &etype, &filetype, representation);
    return displacement;
}

static void access_that_the_mode_forbids(void) {
    char byte = 'a';
    MPI_File file = file_open(MPI_MODE_CREATE | MPI_MODE_WRONLY);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    CHECK(MPI_File_write_at(file, rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS, "-");
    int code = MPI_File_read_at(file, rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(check_class(code) == MPI_ERR_ACCESS, "class %d", check_class(code));
    MPI_File_close(&file);

    file = file_open(MPI_MODE_RDONLY);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    code = MPI_File_write_at_all(file, rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(check_class(code) == MPI_ERR_READ_ONLY, "class %d", check_class(code));
    code = MPI_File_set_size(file, 3);
    CHECK(check_class(code) == MPI_ERR_READ_ONLY, "class %d", check_class(code));
    MPI_File_close(&file);

    /* Sequential: the shared pointer alone. */
    file = file_open(MPI_MODE_SEQUENTIAL | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    code = MPI_File_write_at(file, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(check_class(code) == MPI_ERR_UNSUPPORTED_OPERATION, "class %d", check_class(code));
    code = MPI_File_seek(file, 0, MPI_SEEK_SET);
    CHECK(check_class(code) == MPI_ERR_UNSUPPORTED_OPERATION, "class %d", check_class(code));
    CHECK(MPI_File_write_shared(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS, "-");
    code = MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    CHECK(check_class(code) == MPI_ERR_ARG, "class %d", check_class(code));
    MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    CHECK(displacement_of(file) == size, "%lld", (long long)displacement_of(file));
    MPI_File_close(&file);
}

/* The view of a sequential file begins behind what all ranks have accessed, also those that come
   late to MPI_File_set_view. */
static void views_of_sequential_files(void) {
    const char bytes[] = "sequential";
    MPI_File file = file_open(MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL | MPI_MODE_WRONLY |
                              MPI_MODE_DELETE_ON_CLOSE);
    for (int turn = 0; turn < 2 * size; turn++) {
        if (rank == turn % size) {
            usleep(20000);
            MPI_File_write_shared(file, bytes, 10, MPI_CHAR, MPI_STATUS_IGNORE);
        }
        MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_CHAR, MPI_CHAR, "native",
                          MPI_INFO_NULL);
        CHECK(displacement_of(file) == 10 * (turn + 1), "turn %d: %lld", turn,
              (long long)displacement_of(file));
    }
    MPI_Datatype nothing;
    MPI_Type_contiguous(0, MPI_CHAR, &nothing);
    MPI_Type_commit(&nothing);
    for (int turn = 0; turn < 2; turn++) {
        const MPI_Datatype type = turn == 0 ? nothing : MPI_CHAR;
        MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, type, type, "native", MPI_INFO_NULL);
        CHECK(displacement_of(file) == 20 * size, "%lld", (long long)displacement_of(file));
    }
    MPI_Type_free(&nothing);
    /* One rank's arguments are wrong. */
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    const int wrong = rank == size - 1;
    int code =
        MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, wrong ? MPI_DATATYPE_NULL : MPI_CHAR,
                          MPI_CHAR, "native", MPI_INFO_NULL);
    CHECK(check_class(code) == MPI_ERR_TYPE, "class %d", check_class(code));
    code = MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_CHAR, MPI_CHAR,
                             wrong ? "no such" : "native", MPI_INFO_NULL);
    CHECK(check_class(code) == MPI_ERR_UNSUPPORTED_DATAREP, "class %d", check_class(code));
    CHECK(displacement_of(file) == 20 * size, "%lld", (long long)displacement_of(file));
    MPI_File_close(&file);
}

/* Names with a kind of file system before them; a program that goes elsewhere. */
static void deletion(void) {
    char name[200], folder[1000];
    MPI_File file;
    snprintf(name, sizeof name, "ufs:%s", file_name);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(access(file_name, F_OK) == 0, "no file");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        CHECK(MPI_File_delete(name, MPI_INFO_NULL) == MPI_SUCCESS, "deleting %s", name);
    MPI_Barrier(MPI_COMM_WORLD);
    file = file_new();
    CHECK(getcwd(folder, sizeof folder) != NULL, "getcwd");
    MPI_Barrier(MPI_COMM_WORLD); /* thread ranks may be in one folder */
    CHECK(chdir("/") == 0, "chdir");
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS, "close");
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(chdir(folder) == 0, "chdir");
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(access(file_name, F_OK) != 0, "the file was to be deleted");
}

static void sizes(void) {
    MPI_File file = file_new();
    MPI_Offset bytes = -1;
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == 0, "%lld", (long long)bytes);
    MPI_File_set_size(file, ((MPI_Offset)5 << 30) + 7);
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == ((MPI_Offset)5 << 30) + 7, "%lld", (long long)bytes);
    MPI_File_set_size(file, 10);
    MPI_File_preallocate(file, 5);
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == 10, "preallocation has shrunk the file to %lld", (long long)bytes);
    MPI_File_preallocate(file, 10000);
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == 10000, "%lld", (long long)bytes);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    int code = MPI_File_set_size(file, -1);
    CHECK(check_class(code) == MPI_ERR_ARG, "class %d", check_class(code));
    if (size > 1) {
        code = MPI_File_set_size(file, rank);
        CHECK(check_class(code) == MPI_ERR_NOT_SAME, "class %d", check_class(code));
    }
    MPI_File_close(&file);
    CHECK(access(file_name, F_OK) != 0, "the file was to be deleted");
}

static void appending(void) {
    MPI_File file = file_open(MPI_MODE_CREATE | MPI_MODE_WRONLY);
    MPI_File_set_size(file, 100);
    MPI_File_close(&file);
    file = file_open(MPI_MODE_WRONLY | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Offset at = -1;
    MPI_File_get_position(file, &at);
    CHECK(at == 100, "%lld", (long long)at);
    MPI_File_get_position_shared(file, &at);
    CHECK(at == 100, "%lld", (long long)at);
    char mine = (char)('a' + rank % 26);
    MPI_File_write_ordered(file, &mine, 1, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(file_byte(100 + rank) == mine, "%d", file_byte(100 + rank));
    MPI_File_close(&file);
}

static void what_a_file_says_of_itself(void) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "65536");
    MPI_Info_set(info, "romio_ds_write", "disable");
    MPI_Info_set(info, "striping_factor", "4");
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, file_name,
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file);
    MPI_Info_free(&info);
    MPI_File_get_info(file, &info);
    char value[MPI_MAX_INFO_VAL + 1];
    int known;
    MPI_Info_get(info, "cb_buffer_size", MPI_MAX_INFO_VAL, value, &known);
    CHECK(known && strcmp(value, "65536") == 0, "cb_buffer_size");
    MPI_Info_get(info, "romio_ds_write", MPI_MAX_INFO_VAL, value, &known);
    CHECK(known && strcmp(value, "disable") == 0, "romio_ds_write");
    MPI_Info_get(info, "striping_factor", MPI_MAX_INFO_VAL, value, &known);
    CHECK(!known, "a hint without effect is reported");
    MPI_Info_free(&info);
    int amode = 0, flag = -1, same = 0;
    MPI_File_get_amode(file, &amode);
    CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE), "%d", amode);
    MPI_Group group, world;
    MPI_File_get_group(file, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &same);
    CHECK(same == MPI_IDENT, "%d", same);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_File_get_atomicity(file, &flag);
    CHECK(flag == 0, "%d", flag);
    MPI_File_set_atomicity(file, 1);
    MPI_File_get_atomicity(file, &flag);
    CHECK(flag == 1, "%d", flag);
    CHECK(MPI_File_fromint(MPI_File_toint(file)) == file, "the handle as a number");
    MPI_File_sync(file);
    MPI_File_close(&file);
}

static int descriptors(void) {
    int open_ones = 0;
    for (int i = 0; i < 1024; i++)
        open_ones += fcntl(i, F_GETFD) >= 0;
    return open_ones;
}

/* Mappings of this process, and kilobytes of memory that it uses. */
static int mappings(long* kilobytes) {
    char line[500];
    int lines = 0;
    FILE* maps = fopen("/proc/self/smaps_rollup", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        sscanf(line, "Private_Dirty: %ld", kilobytes);
    if (maps != NULL)
        fclose(maps);
    maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        lines++;
    if (maps != NULL)
        fclose(maps);
    return lines;
}

/* A staged write, a nonblocking one, a conversion and a split one, each time. */
static void use_of_all_kinds(MPI_Datatype tile, int* data, int words) {
    MPI_Request request;
    MPI_File file = file_new();
    MPI_File_set_view(file, rank * 4, MPI_INT, tile, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 0, data, words, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at(file, 0, data, words, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL);
    MPI_File_read_at_all_begin(file, 0, data, words, MPI_INT);
    MPI_File_read_at_all_end(file, data, MPI_STATUS_IGNORE);
    MPI_File_write_ordered(file, data, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

static int ranks_here(void) {
    MPI_Comm here;
    int ranks;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_size(here, &ranks);
    MPI_Comm_free(&here);
    return ranks;
}

static void many_times(void) {
    enum { words = 8192, times = 1000, settled = 50 };
    int* data = calloc(words, sizeof(int));
    int before = 0, maps_before = 0;
    long memory_before = 0, memory = 0;
    MPI_Datatype tile;
    MPI_Type_create_resized(MPI_INT, 0, 4 * size, &tile);
    MPI_Type_commit(&tile);
    for (int i = 0; i < times; i++) {
        if (i == settled) {
            MPI_Barrier(MPI_COMM_WORLD);
            before = descriptors();
            MPI_Barrier(MPI_COMM_WORLD); /* others open files to look at their memory */
            maps_before = mappings(&memory_before);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (i % 10 == 0) {
            use_of_all_kinds(tile, data, words);
        } else {
            MPI_File file = file_new();
            MPI_File_write_at_all(file, rank, "x", 1, MPI_CHAR, MPI_STATUS_IGNORE);
            MPI_File_close(&file);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const int after = descriptors();
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(after <= before, "%d descriptors were open before, %d after", before, after);
    const int maps = mappings(&memory);
    /* Thread ranks allocate beside each other; workers that files block get spare ones. */
    CHECK(maps <= maps_before + 40, "%d mappings before, %d after", maps_before, maps);
#ifndef __SANITIZE_ADDRESS__ /* it keeps what is freed */
    /* Buffers of the network are touched one after the other. */
    const long buffers = ranks_here() < size ? 6000 : 0;
    CHECK(memory <= memory_before + 2000 + 200 * size + buffers, "%ld kB before, %ld after",
          memory_before, memory);
#endif
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&tile);
    free(data);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    file_begin("opening");
    modes_that_are_refused();
    files_that_exist_or_not();
    what_has_no_offsets();
    access_that_the_mode_forbids();
    views_of_sequential_files();
    deletion();
    sizes();
    appending();
    what_a_file_says_of_itself();
    many_times();
    MPI_Finalize();
    return 0;
}
