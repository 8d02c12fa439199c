/* Nonblocking accesses, independent and collective; progress without calls of MPI. */
#include "file.h"

#include <time.h>

static void several_at_once(void) {
    enum { requests = 20, words = 5000 };
    MPI_File file = file_new();
    MPI_Request all[requests];
    MPI_Status statuses[requests];
    int* data = malloc(requests * words * sizeof(int));
    int* back = calloc(requests * words, sizeof(int));
    for (int i = 0; i < requests * words; i++)
        data[i] = i + rank * 1000000;
    MPI_File_set_view(file, (MPI_Offset)rank * requests * words * 4, MPI_INT, MPI_INT, "native",
                      MPI_INFO_NULL);
    for (int i = 0; i < requests; i++) {
        if (i % 2)
            MPI_File_iwrite(file, data + i * words, words, MPI_INT, &all[i]);
        else
            MPI_File_iwrite_all(file, data + i * words, words, MPI_INT, &all[i]);
    }
    MPI_Waitall(requests, all, statuses);
    for (int i = 0; i < requests; i++)
        check_count(&statuses[i], words * 4, "iwrite");
    for (int i = 0; i < requests; i++) {
        if (i % 2)
            MPI_File_iread_at(file, i * words, back + i * words, words, MPI_INT, &all[i]);
        else
            MPI_File_iread_at_all(file, i * words, back + i * words, words, MPI_INT, &all[i]);
    }
    for (int left = requests; left > 0; left--) {
        int index;
        MPI_Waitany(requests, all, &index, MPI_STATUS_IGNORE);
        CHECK(index != MPI_UNDEFINED, "-");
    }
    CHECK(memcmp(back, data, requests * words * sizeof(int)) == 0, "-");
    MPI_File_close(&file);
    free(data);
    free(back);
}

static void without_calls(void) {
    enum { bytes = 4 << 20 };
    MPI_File file = file_new();
    char* data = malloc(bytes);
    memset(data, 'x', bytes);
    MPI_Request request;
    MPI_File_iwrite_at(file, (MPI_Offset)rank * bytes, data, bytes, MPI_CHAR, &request);
    /* The last byte comes to the file while this rank calls nothing of MPI. */
    int found = 0;
    for (int i = 0; i < 5000 && !found; i++) {
        struct timespec pause = {0, 2000000};
        nanosleep(&pause, NULL);
        found = file_byte((long)rank * bytes + bytes - 1) == 'x';
    }
    CHECK(found, "nothing is written without calls of MPI");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    free(data);
}

static void given_up(void) {
    MPI_File file = file_new();
    static char data[1000];
    MPI_Request request;
    MPI_File_iwrite_at(file, rank * 1000, data, 1000, MPI_CHAR, &request);
    MPI_Request_free(&request);
    MPI_Datatype every_other;
    MPI_Type_vector(500, 1, 2, MPI_CHAR, &every_other);
    MPI_Type_commit(&every_other);
    MPI_File_iread_at(file, 0, data, 1, every_other, &request);
    MPI_Type_free(&every_other);
    MPI_Status status;
    int flag = 0;
    while (!flag)
        MPI_Test(&request, &flag, &status);
    MPI_File_close(&file);
}

/* Each rank its own file, at the same time: descriptors belong to a rank. */
static void own_files(void) {
    enum { words = 20000 };
    char name[200];
    snprintf(name, sizeof name, "%s_own_%d", file_name, rank);
    MPI_File file;
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    int* data = malloc(words * sizeof(int));
    MPI_Request request;
    MPI_Status status;
    for (int i = 0; i < words; i++)
        data[i] = rank * 100000 + i;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_iwrite_at(file, 0, data, words * 4, MPI_BYTE, &request);
    MPI_Wait(&request, &status);
    memset(data, 0, words * sizeof(int));
    MPI_File_iread_at(file, 0, data, words * 4, MPI_BYTE, &request);
    MPI_Wait(&request, &status);
    check_count(&status, words * 4, "iread_at");
    for (int i = 0; i < words; i++)
        CHECK(data[i] == rank * 100000 + i, "word %d is %d", i, data[i]);
    MPI_File_close(&file);
    free(data);
}

static void errors_belong_to_the_file(void) {
    char name[200];
    snprintf(name, sizeof name, "%s_%d", file_name, rank);
    MPI_File file;
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    /* An address that is not there. */
    MPI_Request request;
    MPI_Status status;
    MPI_File_iwrite_at(file, 0, (char*)16, 100, MPI_CHAR, &request);
    int code = MPI_Wait(&request, &status);
    CHECK(check_class(code) == MPI_ERR_IO, "class %d", check_class(code));
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, name) != NULL, "the error does not name the file: %s", text);
    MPI_File_close(&file);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    file_begin("nonblocking");
    several_at_once();
    without_calls();
    given_up();
    own_files();
    errors_belong_to_the_file();
    MPI_Finalize();
    return 0;
}
