/* A user's error handler changes the error code: the failed call returns what the handler has
   stored, on communicators, windows, files and sessions. */
#include "../point_to_point/check.h"

#include <malloc.h>

static int replacement; /* what the handlers store */
static int seen;        /* the class of what they were given */

static void change(int* code) {
    MPI_Error_class(*code, &seen);
    *code = replacement;
}
static void change_of_comm(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    change(code);
}
static void change_of_window(MPI_Win* window, int* code, ...) {
    (void)window;
    change(code);
}
static void change_of_file(MPI_File* file, int* code, ...) {
    (void)file;
    change(code);
}
static void change_of_session(MPI_Session* session, int* code, ...) {
    (void)session;
    change(code);
}

static MPI_Comm comm;
static MPI_Win window;
static MPI_Session session;
static int value;

static int fail_comm(void) {
    return MPI_Send(&value, 1, MPI_INT, 99, 0, comm);
}
/* A receive that will be truncated. */
static MPI_Request fail_later(void) {
    static char small;
    int rank;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    MPI_Irecv(&small, 1, MPI_CHAR, rank, 0, comm, &request);
    MPI_Send(&value, 1, MPI_INT, rank, 0, comm);
    return request;
}
static int fail_request(void) {
    MPI_Request request = fail_later();
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static int fail_all(void) {
    MPI_Request request = fail_later();
    return MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
}
static int fail_window(void) {
    return MPI_Win_unlock(99, window);
}
static int fail_open(void) {
    MPI_File file;
    return MPI_File_open(MPI_COMM_SELF, "no/such/folder", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
}
static int fail_session(void) {
    char name[8];
    int length = sizeof name;
    return MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 99, &length, name);
}

static int extent(MPI_Datatype type, MPI_Aint* bytes, void* state) {
    (void)type, (void)state;
    *bytes = 1;
    return MPI_SUCCESS;
}
static int fail_representation(void) {
    return MPI_Register_datarep("native", NULL, NULL, extent, NULL);
}

static const struct {
    const char* name;
    int (*call)(void);
    int error_class;
} calls[] = {{"communicator", fail_comm, MPI_ERR_RANK},
             {"request", fail_request, MPI_ERR_TRUNCATE},
             {"all requests", fail_all, MPI_ERR_TRUNCATE},
             {"window", fail_window, MPI_ERR_RANK},
             {"file", fail_open, MPI_ERR_NO_SUCH_FILE},
             {"session", fail_session, MPI_ERR_ARG},
             {"representation", fail_representation, MPI_ERR_DUP_DATAREP}};

/* A call that has failed keeps nothing, even if it returns MPI_SUCCESS. */
static void check_memory(void) {
    replacement = MPI_SUCCESS;
    const size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 20000; i++)
        CHECK(fail_representation() == MPI_SUCCESS, "call %d", i);
    const size_t after = mallinfo2().uordblks;
    CHECK(after < before + 100000, "%zu bytes were %zu before", after, before);
}

int main(int argc, char** argv) {
    int added_class, added;
    MPI_Errhandler of_comm, of_window, of_file, of_session;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_errhandler(change_of_comm, &of_comm);
    MPI_Win_create_errhandler(change_of_window, &of_window);
    MPI_File_create_errhandler(change_of_file, &of_file);
    MPI_Session_create_errhandler(change_of_session, &of_session);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, of_comm);
    MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_set_errhandler(window, of_window);
    MPI_File_set_errhandler(MPI_FILE_NULL, of_file);
    MPI_Session_init(MPI_INFO_NULL, of_session, &session);
    MPI_Add_error_class(&added_class);
    MPI_Add_error_code(added_class, &added);

    const int replacements[] = {MPI_SUCCESS, MPI_ERR_OTHER, added};
    for (int i = 0; i < 3; i++) {
        replacement = replacements[i];
        for (unsigned j = 0; j < sizeof calls / sizeof *calls; j++) {
            seen = MPI_SUCCESS;
            const int code = calls[j].call();
            CHECK(seen == calls[j].error_class, "%s: the handler got class %d", calls[j].name,
                  seen);
            CHECK(code == replacement, "%s: %d was returned, the handler stored %d", calls[j].name,
                  code, replacement);
        }
    }

    check_memory();
    MPI_Session_finalize(&session);
    MPI_Win_free(&window);
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&of_comm);
    MPI_Errhandler_free(&of_window);
    MPI_Errhandler_free(&of_file);
    MPI_Errhandler_free(&of_session);
    MPI_Finalize();
    return 0;
}
