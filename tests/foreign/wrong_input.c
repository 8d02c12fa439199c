/* Wrong input to libraries of other ABIs: handles out of thin air and null handles of every kind,
 * arrays of exactly as many statuses as requests, names longer than the ABI's. Each comes back with
 * the ABI's number of the standard's error class. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static int class_of(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

/* What a handle that names no object leads to, as each kind. `bits`: also those of null handles. */
static void windows_and_files(MPI_Win win, MPI_File file) {
    int value = 0;
    void* place = NULL;
    int found = 0;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Status status;
    MPI_Offset size = 0;
    CHECK(class_of(MPI_Win_fence(0, win)) == MPI_ERR_WIN);
    CHECK(class_of(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win)) == MPI_ERR_WIN);
    CHECK(class_of(MPI_Win_get_attr(win, MPI_WIN_BASE, &place, &found)) == MPI_ERR_WIN);
    CHECK(class_of(MPI_Win_get_group(win, &group)) == MPI_ERR_WIN && group == MPI_GROUP_NULL);
    MPI_Win freed = win;
    CHECK(class_of(MPI_Win_free(&freed)) == MPI_ERR_WIN && freed == win);
    CHECK(class_of(MPI_File_read(file, &value, 1, MPI_INT, &status)) == MPI_ERR_FILE);
    CHECK(class_of(MPI_File_get_size(file, &size)) == MPI_ERR_FILE);
    MPI_File closed = file;
    CHECK(class_of(MPI_File_close(&closed)) == MPI_ERR_FILE && closed == file);
}

static void infos_and_sessions(MPI_Info info, MPI_Session session) {
    int value = 0;
    MPI_Info made = MPI_INFO_NULL;
    CHECK(class_of(MPI_Info_set(info, "key", "value")) == MPI_ERR_INFO);
    CHECK(class_of(MPI_Info_get_nkeys(info, &value)) == MPI_ERR_INFO);
    CHECK(class_of(MPI_Info_dup(info, &made)) == MPI_ERR_INFO && made == MPI_INFO_NULL);
    MPI_Info freed = info;
    CHECK(class_of(MPI_Info_free(&freed)) == MPI_ERR_INFO && freed == info);
    CHECK(class_of(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &value)) != MPI_SUCCESS);
    CHECK(class_of(MPI_Session_get_info(session, &made)) != MPI_SUCCESS && made == MPI_INFO_NULL);
    MPI_Session finalized = session;
    CHECK(class_of(MPI_Session_finalize(&finalized)) != MPI_SUCCESS && finalized == session);
}

static void handlers_and_messages(MPI_Errhandler handler, MPI_Message message) {
    int value = 0;
    MPI_Status status;
    CHECK(class_of(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler)) == MPI_ERR_ERRHANDLER);
    MPI_Errhandler freed = handler;
    CHECK(class_of(MPI_Errhandler_free(&freed)) == MPI_ERR_ERRHANDLER && freed == handler);
    MPI_Message received = message;
    CHECK(class_of(MPI_Mrecv(&value, 1, MPI_INT, &received, &status)) == MPI_ERR_REQUEST);
    CHECK(received == message);
}

static void operations_and_types(MPI_Op op, MPI_Datatype type) {
    int value = 0;
    MPI_Datatype made = MPI_DATATYPE_NULL;
    int length = 1;
    const MPI_Aint place = 0;
    CHECK(class_of(MPI_Reduce_local(&value, &length, 1, MPI_INT, op)) == MPI_ERR_OP);
    MPI_Op freed_op = op;
    CHECK(class_of(MPI_Op_free(&freed_op)) == MPI_ERR_OP && freed_op == op);
    CHECK(class_of(MPI_Type_size(type, &value)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Type_contiguous(2, type, &made)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Type_create_struct(1, &length, &place, &type, &made)) == MPI_ERR_TYPE);
    CHECK(made == MPI_DATATYPE_NULL);
    MPI_Datatype freed = type;
    CHECK(class_of(MPI_Type_free(&freed)) == MPI_ERR_TYPE && freed == type);
    CHECK(class_of(MPI_Type_commit(&freed)) == MPI_ERR_TYPE && freed == type);
}

static void communicators_and_groups(MPI_Comm comm, MPI_Group group) {
    int value = 0;
    const int rank = 0;
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Group other = MPI_GROUP_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(class_of(MPI_Comm_rank(comm, &value)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Irecv(&value, 1, MPI_INT, 0, 0, comm, &request)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Barrier(comm)) == MPI_ERR_COMM && request == MPI_REQUEST_NULL);
    CHECK(class_of(MPI_Comm_split(comm, 0, 0, &made)) == MPI_ERR_COMM && made == MPI_COMM_NULL);
    CHECK(class_of(MPI_Alltoallw(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, comm)) ==
          MPI_ERR_COMM);
    CHECK(class_of(MPI_Neighbor_alltoallw(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, comm)) ==
          MPI_ERR_COMM);
    MPI_Comm freed = comm;
    CHECK(class_of(MPI_Comm_free(&freed)) == MPI_ERR_COMM && freed == comm);
    CHECK(class_of(MPI_Group_incl(group, 1, &rank, &other)) == MPI_ERR_GROUP);
    CHECK(class_of(MPI_Group_union(group, group, &other)) == MPI_ERR_GROUP);
    CHECK(class_of(MPI_Comm_create_group(MPI_COMM_SELF, group, 0, &made)) == MPI_ERR_GROUP);
    CHECK(made == MPI_COMM_NULL && other == MPI_GROUP_NULL);
}

static void out_of_thin_air(void) {
    const long inventions[] = {1,          7,          0x44000007, 0x4c00ffff,
                               0xc0000000, 0xdeadbeef, 0x8c00000f, 0x7fffffff,
                               0x1000,     0x400000,   0x1fff,     (long)0x8000000000000203,
                               -1};
    for (size_t i = 0; i < sizeof inventions / sizeof *inventions; ++i) {
        const long bits = inventions[i];
        windows_and_files((MPI_Win)bits, (MPI_File)bits);
        infos_and_sessions((MPI_Info)bits, (MPI_Session)bits);
        handlers_and_messages((MPI_Errhandler)bits, (MPI_Message)bits);
        operations_and_types((MPI_Op)bits, (MPI_Datatype)bits);
        communicators_and_groups((MPI_Comm)bits, (MPI_Group)bits);
    }
}

static void null_handles(void) {
    windows_and_files(MPI_WIN_NULL, MPI_FILE_NULL);
    infos_and_sessions(MPI_INFO_NULL, MPI_SESSION_NULL);
    handlers_and_messages(MPI_ERRHANDLER_NULL, MPI_MESSAGE_NULL);
    operations_and_types(MPI_OP_NULL, MPI_DATATYPE_NULL);
    communicators_and_groups(MPI_COMM_NULL, MPI_GROUP_NULL);
}

/* All calls that store statuses get memory of exactly their number: sanitizers see a byte more. */
enum { most = 150 };

static int received[most], indices[most];

static MPI_Request* start(int rank, int number) {
    static const int sent = 17;
    MPI_Request* requests = malloc((size_t)number * sizeof *requests);
    for (int i = 0; i < number; ++i) {
        received[i] = 0;
        MPI_Irecv(&received[i], 1, MPI_INT, rank, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Send(&sent, 1, MPI_INT, rank, i, MPI_COMM_WORLD);
    }
    return requests;
}

static int is_of(const MPI_Status* status, int rank, int tag) {
    int count = -1;
    MPI_Get_count(status, MPI_INT, &count);
    return status->MPI_SOURCE == rank && status->MPI_TAG == tag && count == 1 &&
           received[tag] == 17;
}

/* `test`: by MPI_Testsome. */
static void some(int rank, int number, int test) {
    MPI_Request* requests = start(rank, number);
    for (int left = number; left > 0;) {
        MPI_Status* statuses = malloc((size_t)number * sizeof *statuses);
        int done = 0;
        CHECK((test ? MPI_Testsome : MPI_Waitsome)(number, requests, &done, indices, statuses) ==
              MPI_SUCCESS);
        for (int i = 0; i < done; ++i) {
            CHECK(is_of(&statuses[i], rank, indices[i]));
        }
        free(statuses);
        left -= done;
    }
    free(requests);
}

static void all(int rank, int number) {
    MPI_Request* requests = start(rank, number);
    MPI_Status* statuses = malloc((size_t)number * sizeof *statuses);
    for (int done = 0; !done;) {
        CHECK(MPI_Testall(number, requests, &done, statuses) == MPI_SUCCESS);
    }
    for (int i = 0; i < number; ++i) {
        CHECK(is_of(&statuses[i], rank, i));
    }
    free(statuses);
    free(requests);
}

/* A failure among several: each status has its error, in the ABI's numbers. */
static void failures_among(int rank) {
    enum { three = 3 };
    const int sent[2] = {1, 2};
    int places[three];
    MPI_Request* requests = malloc(three * sizeof *requests);
    MPI_Status* statuses = malloc(three * sizeof *statuses);
    for (int i = 0; i < three; ++i) {
        MPI_Irecv(&places[i], 1, MPI_INT, rank, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Send(sent, i == 1 ? 2 : 1, MPI_INT, rank, i, MPI_COMM_WORLD);
    }
    CHECK(class_of(MPI_Waitall(three, requests, statuses)) == MPI_ERR_IN_STATUS);
    for (int i = 0; i < three; ++i) {
        CHECK(class_of(statuses[i].MPI_ERROR) == (i == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    }
    free(statuses);
    free(requests);
}

static void statuses(int rank) {
    for (int number = 1; number <= most; number += 74) {
        some(rank, number, 0);
        some(rank, number, 1);
        all(rank, number);
    }
    failures_among(rank);
}

/* Strings that are longer than the ABI allows, and places of exactly the ABI's lengths. */
static void strings(void) {
    enum { too_long = 10000 };
    char* text = malloc(too_long);
    memset(text, 'x', too_long - 1);
    text[too_long - 1] = '\0';
    MPI_Info info;
    MPI_Info_create(&info);
    CHECK(class_of(MPI_Info_set(info, text, "value")) == MPI_ERR_INFO_KEY);
    CHECK(class_of(MPI_Info_set(info, "key", text)) == MPI_ERR_INFO_VALUE);
    MPI_Info_free(&info);
    MPI_Comm comm;
    CHECK(class_of(MPI_Comm_connect(text, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm)) != MPI_SUCCESS);
    CHECK(class_of(MPI_Unpublish_name(text, MPI_INFO_NULL, text)) != MPI_SUCCESS);
    char* name = malloc(MPI_MAX_OBJECT_NAME);
    int length = -1;
    MPI_Datatype type;
    MPI_Type_contiguous(2, MPI_INT, &type);
    CHECK(MPI_Type_set_name(type, text) == MPI_SUCCESS);
    CHECK(MPI_Type_get_name(type, name, &length) == MPI_SUCCESS);
    CHECK(length == MPI_MAX_OBJECT_NAME - 1 && strlen(name) == (size_t)length);
    MPI_Type_free(&type);
    free(name);
    int code = 0;
    MPI_Add_error_code(MPI_ERR_OTHER, &code);
    char* message = malloc(MPI_MAX_ERROR_STRING);
    text[MPI_MAX_ERROR_STRING - 1] = '\0';
    CHECK(MPI_Add_error_string(code, text) == MPI_SUCCESS);
    CHECK(MPI_Error_string(code, message, &length) == MPI_SUCCESS && strcmp(message, text) == 0);
    free(message);
    char* port = malloc(MPI_MAX_PORT_NAME);
    CHECK(MPI_Open_port(MPI_INFO_NULL, port) == MPI_SUCCESS && strlen(port) < MPI_MAX_PORT_NAME);
    CHECK(MPI_Close_port(port) == MPI_SUCCESS);
    free(port);
    free(text);
}

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    out_of_thin_air();
    null_handles();
    statuses(rank);
    strings();
    MPI_Finalize();
    return failures != 0;
}
