/* Files that are opened, accessed and closed again and again: neither memory nor descriptors nor
   mappings grow, and nothing but the file is in its directory. Argument: how often. */
#include "../support/resources.h"
#include "file.h"

enum { words = 500, parts = 4 };

static char directory[64];

/* Words of the ranks by turns, written in four manners. */
static void access_own(MPI_File file, int round) {
    static int data[parts * words];
    MPI_Request requests[2];
    for (int i = 0; i < parts * words; i++)
        data[i] = round + rank * parts * words + i;
    MPI_File_write_at(file, 0, data, words, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at(file, words, data + words, words, MPI_INT, &requests[0]);
    MPI_File_iwrite_at_all(file, 2 * words, data + 2 * words, words, MPI_INT, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_File_seek(file, 3 * words, MPI_SEEK_SET);
    MPI_File_write_all_begin(file, data + 3 * words, words, MPI_INT);
    MPI_File_write_all_end(file, data + 3 * words, MPI_STATUS_IGNORE);
    memset(data, 0, sizeof data);
    MPI_File_read_at_all(file, 0, data, parts * words, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < parts * words; i++)
        CHECK(data[i] == round + rank * parts * words + i, "word %d of round %d is %d", i, round,
              data[i]);
}

static void access_shared(MPI_File file, int round) {
    int sent[2] = {round, rank}, got[2] = {0};
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_write_ordered(file, sent, 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_shared(file, sent, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered(file, got, 2, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(got[0] == round && got[1] == rank, "read (%d, %d) in round %d", got[0], got[1], round);
}

static void open_and_close(int round) {
    MPI_Datatype mine;
    MPI_Info info;
    MPI_File file;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", round % 2 == 0 ? "65536" : "8192");
    CHECK(MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file) ==
              MPI_SUCCESS,
          "opening %s", file_name);
    MPI_Info_free(&info);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    MPI_File_set_atomicity(file, round % 5 == 0);
    MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)size * (MPI_Aint)sizeof(int), &mine);
    MPI_Type_commit(&mine);
    MPI_File_set_view(file, rank * (MPI_Offset)sizeof(int), MPI_INT, mine,
                      round % 3 == 0 ? "external32" : "native", MPI_INFO_NULL);
    MPI_Type_free(&mine);
    access_own(file, round);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    access_shared(file, round);
    CHECK(directory_entries(directory) == 3, "the file is not alone"); /* ".", "..", it */
    MPI_File_close(&file);
}

static void rounds(int count) {
    for (int round = 0; round < count; round++)
        open_and_close(round);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Ranks may share a process, and the look itself opens a descriptor: one rank after the other. */
static int descriptors(void) {
    int count = 0;
    for (int turn = 0; turn < size; turn++) {
        if (turn == rank)
            count = directory_entries("/proc/self/fd");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return count;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int count = argc > 1 ? atoi(argv[1]) : 1000;
    file_begin("many");
    strcpy(directory, file_name);
    if (rank == 0)
        CHECK(mkdir(directory, 0700) == 0, "making %s", directory);
    strcat(file_name, "/file");
    MPI_Barrier(MPI_COMM_WORLD);
    rounds(count / 5);
    const long memory = file_number("/proc/self/status", "VmRSS:");
    const int maps = mappings(), opened = descriptors();
    rounds(count);
    const long grown = file_number("/proc/self/status", "VmRSS:") - memory;
#ifdef __SANITIZE_ADDRESS__
    const long most = 100000; /* the sanitizer keeps what was freed for a while */
#else
    const long most = 500;
#endif
    CHECK(grown < most, "%d files that are closed left %ld kB", count, grown);
    CHECK(mappings() <= maps + 10, "%d mappings became %d", maps, mappings());
    const int left = descriptors();
    /* One more: another thread of the process may just look at a file. */
    CHECK(left <= opened + 1, "%d descriptors became %d", opened, left);
    if (rank == 0)
        CHECK(unlink(file_name) == 0 && rmdir(directory) == 0, "removing %s", directory);
    MPI_Finalize();
    return 0;
}
