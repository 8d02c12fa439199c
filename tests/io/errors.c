/* Error handlers of files, and what the system refuses. */
#include "file.h"

static int calls;
static MPI_File called_for;

static int noted; /* class of the code */

static void note(MPI_File* file, int* code, ...) {
    MPI_Error_class(*code, &noted);
    calls++;
    called_for = *file;
}

static void handlers(void) {
    MPI_Errhandler noting, set;
    MPI_File file;
    MPI_File_create_errhandler(note, &noting);
    MPI_File_get_errhandler(MPI_FILE_NULL, &set);
    CHECK(set == MPI_ERRORS_RETURN, "errors of files return unless a program says otherwise");
    MPI_File_set_errhandler(MPI_FILE_NULL, noting);
    MPI_File_open(MPI_COMM_WORLD, "nowhere", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CHECK(calls == 1 && called_for == MPI_FILE_NULL, "%d", calls);
    /* New files get it. */
    MPI_File_open(MPI_COMM_WORLD, file_name,
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_get_errhandler(file, &set);
    CHECK(set == noting, "-");
    MPI_Errhandler_free(&set);
    MPI_File_seek(file, -1, MPI_SEEK_SET);
    CHECK(calls == 2 && called_for == file, "%d", calls);
    MPI_File_call_errhandler(file, MPI_ERR_FILE);
    CHECK(calls == 3 && called_for == file, "%d", calls);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    MPI_File_call_errhandler(file, MPI_ERR_FILE);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&noting);
    MPI_File_close(&file);
    int code = MPI_File_close(&file);
    CHECK(check_class(code) == MPI_ERR_FILE, "class %d", check_class(code));
}

/* A call that returns MPI_ERR_IN_STATUS hands the handler the code in the status. */
static void in_status(void) {
    MPI_Errhandler noting;
    MPI_File file;
    MPI_Request request;
    MPI_Status status;
    int value = 0;
    if (MPI_File_open(MPI_COMM_SELF, "/dev/full", MPI_MODE_RDWR, MPI_INFO_NULL, &file))
        return;
    MPI_File_create_errhandler(note, &noting);
    MPI_File_set_errhandler(file, noting);
    MPI_Errhandler_free(&noting);
    MPI_File_iwrite_at(file, 0, &value, 1, MPI_INT, &request);
    calls = 0;
    int code = MPI_Waitall(1, &request, &status);
    CHECK(check_class(code) == MPI_ERR_IN_STATUS, "class %d", check_class(code));
    CHECK(check_class(status.MPI_ERROR) == MPI_ERR_NO_SPACE, "class %d",
          check_class(status.MPI_ERROR));
    CHECK(calls == 1 && noted == MPI_ERR_NO_SPACE, "%d calls, class %d", calls, noted);
    MPI_File_close(&file);
}

/* /dev/full takes nothing. */
static void no_space(void) {
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_RDWR, MPI_INFO_NULL, &file))
        return;
    int value = 0;
    for (int collective = 0; collective < 2; collective++) {
        int code = collective
                       ? MPI_File_write_at_all(file, rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE)
                       : MPI_File_write_at(file, rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
        CHECK(check_class(code) == MPI_ERR_NO_SPACE, "class %d", check_class(code));
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(code, text, &length);
        CHECK(strstr(text, "/dev/full") != NULL && strstr(text, "No space left") != NULL, "%s",
              text);
    }
    /* One that is staged: all ranks learn of it. */
    MPI_Datatype tile;
    MPI_Type_create_resized(MPI_INT, 0, 4 * size, &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, rank * 4, MPI_INT, tile, "native", MPI_INFO_NULL);
    int* values = calloc(30000, sizeof(int));
    int code = MPI_File_write_all(file, values, 30000, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(check_class(code) == MPI_ERR_NO_SPACE, "class %d", check_class(code));
    free(values);
    MPI_Type_free(&tile);
    MPI_File_close(&file);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    file_begin("errors");
    handlers();
    no_space();
    in_status();
    MPI_Finalize();
    return 0;
}
