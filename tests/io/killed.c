/* mpiexec --keep-going: rank 1 is killed in the middle of accesses. Others go on with those of
   their own, and hear of it in collective ones; words in the file are old or new ones. io.killed
   sieved | atomic | shared | nonblocking | nonblocking_all | collective | read | split | ordered |
   whole | open */
#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "file.h"

enum { words = 800 }; /* of all ranks together enough to be staged */

static const char* kind;
static MPI_File file;
static uint64_t data[words];
static uint64_t round_number;

static int is(const char* other) {
    return strcmp(kind, other) == 0;
}

/* No rank gets on without the others. */
static int all_wait(void) {
    return is("collective") || is("read") || is("split") || is("ordered") || is("whole") ||
           is("open");
}

/* Words say whose they are, and of which round. */
static uint64_t word_of(int whose, uint64_t number) {
    return (number << 24 | (uint64_t)whose << 16) + (number * 40503 + (uint64_t)whose) % 65521;
}

static void check_word(uint64_t word, int whose) {
    CHECK(word == 0 || word == word_of(whose, word >> 24), "half a word of rank %d: %llx", whose,
          (unsigned long long)word);
}

static int set_view(void) {
    MPI_Datatype tile;
    MPI_Type_create_resized(MPI_UINT64_T, 0, 8 * size, &tile);
    MPI_Type_commit(&tile);
    const int code = MPI_File_set_view(file, 8 * rank, MPI_UINT64_T, tile, "native", MPI_INFO_NULL);
    MPI_Type_free(&tile);
    return code;
}

static int access_once(void) {
    MPI_Request request;
    int code;
    round_number++;
    for (int i = 0; i < words; i++)
        data[i] = word_of(rank, round_number);
    if (is("shared"))
        return MPI_File_write_shared(file, data, 2, MPI_UINT64_T, MPI_STATUS_IGNORE);
    if (is("ordered"))
        return MPI_File_write_ordered(file, data, 2, MPI_UINT64_T, MPI_STATUS_IGNORE);
    if (is("collective"))
        return MPI_File_write_at_all(file, 0, data, words, MPI_UINT64_T, MPI_STATUS_IGNORE);
    if (is("nonblocking") || is("nonblocking_all")) {
        code = (is("nonblocking") ? MPI_File_iwrite_at : MPI_File_iwrite_at_all)(
            file, 0, data, words, MPI_UINT64_T, &request);
        return code ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (is("read"))
        return MPI_File_read_at_all(file, 0, data, words, MPI_UINT64_T, MPI_STATUS_IGNORE);
    if (is("split")) {
        code = MPI_File_write_at_all_begin(file, 0, data, words, MPI_UINT64_T);
        return code ? code : MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE);
    }
    if (is("whole")) {
        code = MPI_File_set_size(file, 8 * words * size);
        code = code ? code : MPI_File_preallocate(file, 8 * words * size);
        code = code ? code : MPI_File_seek_shared(file, 0, MPI_SEEK_END);
        code = code ? code : MPI_File_set_atomicity(file, round_number % 2 == 0);
        code = code ? code : set_view();
        return code ? code : MPI_File_sync(file);
    }
    if (is("open")) {
        MPI_File again;
        code = MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_RDWR, MPI_INFO_NULL, &again);
        return code ? code : MPI_File_close(&again);
    }
    /* Every third one is one word: a shared lock. */
    return MPI_File_write_at(file, 0, data, round_number % 3 ? words : 1, MPI_UINT64_T,
                             MPI_STATUS_IGNORE);
}

static void open_file(void) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "8192");
    CHECK(MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file) ==
              MPI_SUCCESS,
          "open");
    MPI_Info_free(&info);
    if (is("atomic"))
        MPI_File_set_atomicity(file, 1);
    if (!is("shared") && !is("ordered"))
        set_view();
    /* What is read later. */
    if (is("read"))
        MPI_File_write_at_all(file, 0, data, words, MPI_UINT64_T, MPI_STATUS_IGNORE);
}

static void check_file(void) {
    uint64_t word;
    int descriptor = open(file_name, O_RDONLY);
    CHECK(descriptor >= 0, "%s", file_name);
    for (long i = 0; pread(descriptor, &word, sizeof word, i * 8) == sizeof word; i++) {
        const int whose = is("shared") || is("ordered") ? (int)(word >> 16 & 255) : (int)(i % size);
        check_word(word, whose);
        if (!is("shared") && !all_wait() && whose == rank && i < size)
            CHECK(word == word_of(rank, round_number), "the last write is not there");
    }
    close(descriptor);
}

int main(int argc, char** argv) {
    int code = MPI_SUCCESS, other = 0;
    pid_t pid = getpid();
    MPI_Init(&argc, &argv);
    kind = argc > 1 ? argv[1] : "sieved";
    file_begin(kind);
    CHECK(size == 3, "%d ranks", size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    open_file();
    MPI_Bcast(&pid, (int)sizeof pid, MPI_BYTE, 1, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    const double end = begin + 0.01 + (double)(pid % 97) * 2e-4;
    int killed = 0;
    while (code == MPI_SUCCESS && (rank == 1 || MPI_Wtime() < begin + 0.3)) {
        code = access_once();
        if (rank == 0 && !killed && MPI_Wtime() > end) {
            kill(pid, SIGKILL);
            killed = 1;
        }
    }
    if (all_wait())
        CHECK(check_class(code) == MPI_ERR_PROC_ABORTED, "class %d", check_class(code));
    else
        CHECK(code == MPI_SUCCESS, "class %d", check_class(code));
    check_file();
    /* Neither of the two ends before the other has heard of rank 1's end. */
    MPI_Sendrecv(&rank, 1, MPI_INT, 2 - rank, 0, &other, 1, MPI_INT, 2 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (rank == 0)
        unlink(file_name);
    printf("rank %d has gone on\n", rank);
    fflush(stdout);
    _exit(0);
}
