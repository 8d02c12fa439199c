// Every argument check of the entry points: each call of the generated table must come back with
// the standard's error class, after one call of the right communicator's error handler.
#include <climits>
#include <cstdio>
#include <cstring>
#include <iterator>

#include <mpi.h>

namespace {

// What a failure belongs to.
enum class On {
    communicator, // good.comm
    self,         // MPI_COMM_SELF
    handler,      // the error handler among the arguments
    window,       // good.win
    file,         // good.file
    null_file,    // MPI_FILE_NULL
};

struct WrongCall {
    const char* procedure;
    const char* argument;
    int error_class;
    On on;
    int (*call)();
};

// What the calls of the table are made of. Right arguments:
struct Good {
    MPI_Comm comm = MPI_COMM_NULL; // of one rank
    int size = 1;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info infos[4] = {MPI_INFO_NULL, MPI_INFO_NULL, MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Errhandler errhandler = MPI_ERRORS_RETURN;
    MPI_Errhandler comm_handler = MPI_ERRHANDLER_NULL; // they count
    MPI_Errhandler session_handler = MPI_ERRHANDLER_NULL;
    MPI_Datatype datatype = MPI_INT;
    MPI_Datatype datatypes[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    MPI_Op op = MPI_SUM;
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Win win = MPI_WIN_NULL; // of good.comm
    MPI_File file = MPI_FILE_NULL;
    MPI_Request request = MPI_REQUEST_NULL; // persistent and inactive
    MPI_Request requests[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                               MPI_REQUEST_NULL};
    MPI_Message message = MPI_MESSAGE_NO_PROC;
    char buffer[256] = {};
    char other_buffer[256] = {};
    char text[16] = "text";
    alignas(16) char place[16384] = {};

    // Memory for results and arrays.
    template <typename Type>
    Type* array() {
        return reinterpret_cast<Type*>(place);
    }
} good;

// Handles of objects that are gone.
struct Freed {
    MPI_Comm comm;
    MPI_Group group;
    MPI_Info info;
    MPI_Errhandler errhandler;
    MPI_Datatype datatype;
    MPI_Op op;
    MPI_Request request;
    MPI_Message message;
    MPI_Session session;
    MPI_Win win;
    MPI_File file;
} freed;

MPI_Datatype uncommitted;

// A handle that nobody made.
template <typename Handle>
Handle invented() {
    return reinterpret_cast<Handle>(0x7654321);
}

// A handle where a call wants a pointer to it.
template <typename Handle>
Handle* place(Handle handle) {
    static Handle here;
    here = handle;
    return &here;
}

MPI_Request* requests_with(MPI_Request request) {
    static MPI_Request requests[1];
    requests[0] = request;
    return requests;
}

#include "wrong_calls.inc"

int handled;
MPI_Comm handled_on;
int handled_code;

void count_error(MPI_Comm* comm, int* code, ...) {
    ++handled;
    handled_on = *comm;
    handled_code = *code;
}

// Counts as if it were MPI_COMM_SELF's: calls with a session have no communicator.
void count_session_error(MPI_Session* session, int* code, ...) {
    ++handled;
    handled_on = *session == good.session ? MPI_COMM_SELF : MPI_COMM_NULL;
    handled_code = *code;
}

// Counts as if it were good.comm's, which the window is of.
void count_window_error(MPI_Win* win, int* code, ...) {
    ++handled;
    handled_on = *win == good.win ? good.comm : MPI_COMM_NULL;
    handled_code = *code;
}

// Counts as if it were good.comm's or MPI_COMM_SELF's.
void count_file_error(MPI_File* file, int* code, ...) {
    ++handled;
    handled_on = *file == good.file       ? good.comm
                 : *file == MPI_FILE_NULL ? MPI_COMM_SELF
                                          : MPI_COMM_NULL;
    handled_code = *code;
}

// Of the calling rank alone.
MPI_File open_file() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char name[64];
    std::snprintf(name, sizeof name, "wrong_arguments_file_%d", rank);
    MPI_File file;
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    return file;
}

void make_files() {
    MPI_Errhandler counting;
    MPI_File_create_errhandler(count_file_error, &counting);
    MPI_File stale = open_file();
    freed.file = stale;
    MPI_File_close(&stale);
    good.file = open_file();
    MPI_File_set_errhandler(good.file, counting);
    MPI_File_set_errhandler(MPI_FILE_NULL, counting);
    MPI_Errhandler_free(&counting);
}

void user_function(void*, void*, int*, MPI_Datatype*) {}

void make_objects() {
    MPI_Errhandler counting;
    MPI_Comm_create_errhandler(count_error, &counting);
    MPI_Comm_dup(MPI_COMM_SELF, &good.comm);
    MPI_Comm_set_errhandler(good.comm, counting);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, counting);
    MPI_Comm_group(good.comm, &good.group);
    MPI_Win stale;
    MPI_Win_create(good.place, sizeof good.place, 1, MPI_INFO_NULL, good.comm, &good.win);
    MPI_Win_create(good.place, sizeof good.place, 1, MPI_INFO_NULL, good.comm, &stale);
    freed.win = stale;
    MPI_Win_free(&stale);
    MPI_Errhandler counting_windows;
    MPI_Win_create_errhandler(count_window_error, &counting_windows);
    MPI_Win_set_errhandler(good.win, counting_windows);
    MPI_Errhandler_free(&counting_windows);
    make_files();
    MPI_Info_create(&good.info);
    MPI_Recv_init(good.buffer, 1, MPI_INT, MPI_PROC_NULL, 0, good.comm, &good.request);

    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    freed.comm = comm;
    MPI_Comm_free(&comm);
    MPI_Group group;
    const int rank = 0;
    MPI_Group_incl(good.group, 1, &rank, &group);
    freed.group = group;
    MPI_Group_free(&group);
    MPI_Info info;
    MPI_Info_create(&info);
    freed.info = info;
    MPI_Info_free(&info);
    freed.errhandler = counting;
    // The handle goes, the handler stays with its communicators.
    MPI_Errhandler_free(&counting);
    MPI_Datatype datatype;
    MPI_Type_contiguous(3, MPI_INT, &datatype);
    freed.datatype = datatype;
    MPI_Type_free(&datatype);
    MPI_Op op;
    MPI_Op_create(user_function, 1, &op);
    freed.op = op;
    MPI_Op_free(&op);
    MPI_Request request;
    MPI_Recv_init(good.buffer, 1, MPI_INT, MPI_PROC_NULL, 0, good.comm, &request);
    freed.request = request;
    MPI_Request_free(&request);
    MPI_Comm_create_errhandler(count_error, &good.comm_handler);
    MPI_Session_create_errhandler(count_session_error, &good.session_handler);
    MPI_Session_init(MPI_INFO_NULL, good.session_handler, &good.session);
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    freed.session = session;
    MPI_Session_finalize(&session);
    freed.message = invented<MPI_Message>();
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
}

bool check(const WrongCall& wrong) {
    handled = 0;
    handled_on = good.comm;
    std::memset(good.place, 0, sizeof good.place);
    const int code = wrong.call();
    int error_class = code;
    MPI_Error_class(code, &error_class);
    const MPI_Comm expected =
        wrong.on == On::communicator || wrong.on == On::window || wrong.on == On::file ? good.comm
        : wrong.on == On::self || wrong.on == On::null_file ? MPI_COMM_SELF
                                                            : MPI_COMM_NULL;
    if (error_class == wrong.error_class && handled == 1 && handled_on == expected &&
        handled_code == code) {
        char text[MPI_MAX_ERROR_STRING];
        int length = 0;
        MPI_Error_string(code, text, &length);
        if (std::strstr(text, wrong.procedure) == text) {
            return true;
        }
        std::printf("%s, %s: the message does not name the call: %s\n", wrong.procedure,
                    wrong.argument, text);
        return false;
    }
    std::printf("%s, %s: class %d, expected %d; handler called %d times, on the %s communicator\n",
                wrong.procedure, wrong.argument, error_class, wrong.error_class, handled,
                handled_on == expected ? "right" : "wrong");
    return false;
}

// Checks that are not generated.
constexpr WrongCall more_wrong_calls[] = {
    {"MPI_Reduce_scatter", "recvcounts", MPI_ERR_ARG, On::communicator,
     [] {
         return MPI_Reduce_scatter(good.buffer, good.other_buffer, nullptr, MPI_INT, MPI_SUM,
                                   good.comm);
     }},
    {"MPI_Pack", "outbuf", MPI_ERR_BUFFER, On::communicator,
     [] {
         int position = 0;
         return MPI_Pack(good.buffer, 1, MPI_INT, nullptr, 8, &position, good.comm);
     }},
    {"MPI_Unpack", "inbuf", MPI_ERR_BUFFER, On::communicator,
     [] {
         int position = 0;
         return MPI_Unpack(nullptr, 8, &position, good.buffer, 1, MPI_INT, good.comm);
     }},
    {"MPI_Pack_external", "outbuf", MPI_ERR_BUFFER, On::self,
     [] {
         MPI_Aint position = 0;
         return MPI_Pack_external("external32", good.buffer, 1, MPI_INT, nullptr, 8, &position);
     }},
    {"MPI_Op_create", "user_fn", MPI_ERR_ARG, On::self,
     [] {
         MPI_Op op;
         return MPI_Op_create(nullptr, 1, &op);
     }},
};

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    make_objects();
    int failures = 0;
    for (const WrongCall& wrong : wrong_calls) {
        failures += !check(wrong);
    }
    for (const WrongCall& wrong : more_wrong_calls) {
        failures += !check(wrong);
    }
    std::printf("%zu wrong calls, %d not refused as they should be\n",
                std::size(wrong_calls) + std::size(more_wrong_calls), failures);
    MPI_Request_free(&good.request);
    MPI_Group_free(&good.group);
    MPI_Info_free(&good.info);
    MPI_Type_free(&uncommitted);
    MPI_Comm_free(&good.comm);
    MPI_Win_free(&good.win);
    MPI_File_close(&good.file);
    MPI_Session_finalize(&good.session);
    MPI_Errhandler_free(&good.comm_handler);
    MPI_Errhandler_free(&good.session_handler);
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
