// Open MPI's library of C++ classes, libmpi_cxx.so.40, calls functions of libmpi.so.40 that the
// standard lacks. The program stands for that library: it has its functions, with its layouts of
// classes.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#pragma GCC diagnostic ignored "-Wcast-function-type" // as the library does

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
    if (!holds) {
        ++failures;
        std::fprintf(stderr, "does not hold: %s\n", what);
    }
}
#define EXPECT(...) expect(__VA_ARGS__, #__VA_ARGS__)

} // namespace

#pragma GCC visibility push(default)

namespace MPI {

class Comm {
  public:
    explicit Comm(MPI_Comm of) : handle(of) {}
    virtual ~Comm() = default;
    virtual int kind() const { return 0; }
    MPI_Comm handle;
};

#define KIND_OF_COMM(name, number)                                                                 \
    class name : public Comm {                                                                     \
      public:                                                                                      \
        using Comm::Comm;                                                                          \
        int kind() const override;                                                                 \
    };                                                                                             \
    int name::kind() const {                                                                       \
        return number;                                                                             \
    }
KIND_OF_COMM(Intracomm, 1)
KIND_OF_COMM(Intercomm, 2)
KIND_OF_COMM(Cartcomm, 3)
KIND_OF_COMM(Graphcomm, 4)

} // namespace MPI

extern "C" {

using OpFunction = void(const void* in, void* inout, int count, MPI_Datatype type);

// The library's.
void ompi_mpi_cxx_op_intercept(void* in, void* inout, int* count, MPI_Datatype* type,
                               MPI_User_function* function) {
    reinterpret_cast<OpFunction*>(function)(in, inout, *count, *type);
}
void ompi_mpi_cxx_comm_errhandler_invoke(MPI_Comm* comm, int* code, const char* message,
                                         void* function) {
    EXPECT(std::strlen(message) > 0);
    MPI::Intracomm its(*comm);
    reinterpret_cast<void (*)(MPI::Comm&, int*)>(function)(its, code);
}
void ompi_mpi_cxx_win_errhandler_invoke(MPI_Win* win, int* code, const char*, void* function) {
    reinterpret_cast<void (*)(MPI_Win, int*)>(function)(*win, code);
}
void ompi_mpi_cxx_file_errhandler_invoke(MPI_File* file, int* code, const char*, void* function) {
    reinterpret_cast<void (*)(MPI_File, int*)>(function)(*file, code);
}

// Of libmpi.so.40.
extern int ompi_errcode_intern_lastused;
extern char ompi_mpi_errors_throw_exceptions[];
extern char ompi_registered_datareps[];
void ompi_op_set_cxx_callback(MPI_Op op, MPI_User_function* function);
int ompi_attr_create_keyval(int type, void (*copy)(), void (*remove)(), int* keyval,
                            void* extra_state, int flags, void* classes);
void* ompi_errhandler_create(int type, void (*function)(), int language);
int ompi_errhandler_invoke(void* handler, void* object, int type, int code, const char* message);

} // extern "C"

#pragma GCC visibility pop

namespace {

void add(const void* in, void* inout, int count, MPI_Datatype type) {
    EXPECT(type == MPI_INT);
    for (int i = 0; i < count; ++i) {
        static_cast<int*>(inout)[i] += static_cast<const int*>(in)[i];
    }
}

void operations(int rank, int size) {
    MPI_Op op;
    MPI_Op_create(reinterpret_cast<MPI_User_function*>(ompi_mpi_cxx_op_intercept), 1, &op);
    ompi_op_set_cxx_callback(op, reinterpret_cast<MPI_User_function*>(add));
    int values[2] = {rank, 1};
    int sums[2] = {-1, -1};
    MPI_Allreduce(values, sums, 2, MPI_INT, op, MPI_COMM_WORLD);
    EXPECT(sums[0] == size * (size - 1) / 2);
    EXPECT(sums[1] == size);
    ompi_op_set_cxx_callback(MPI_OP_NULL, nullptr); // after a failed MPI_Op_create
    MPI_Allreduce(values, sums, 2, MPI_INT, op, MPI_COMM_WORLD);
    EXPECT(sums[1] == size);
    MPI_Op_free(&op);
}

// A key's data, as the library has them.
struct Keyval {
    int (*copy)(MPI_Comm, int, void*, void*, void*, int*);
    int (*remove)(MPI_Comm, int, void*, void*);
    int (*class_copy)(const MPI::Comm&, int, void*, void*, void*, bool&);
    int (*class_remove)(MPI::Comm&, int, void*, void*);
    void* extra_state;
};

int copied_kind = 0;
int removed_kind = 0;
char state;

int copy(const MPI::Comm& comm, int, void* extra_state, void* value, void* place, bool& wanted) {
    EXPECT(extra_state == &state);
    int size = 0;
    EXPECT(MPI_Comm_size(comm.handle, &size) == MPI_SUCCESS);
    copied_kind = comm.kind();
    *static_cast<void**>(place) = value;
    wanted = true;
    return MPI_SUCCESS;
}
int remove_value(MPI::Comm& comm, int, void*, void* extra_state) {
    EXPECT(extra_state == &state);
    removed_kind = comm.kind();
    return MPI_SUCCESS;
}
int copy_in_c(MPI_Comm, int, void* extra_state, void* value, void* place, int* wanted) {
    EXPECT(extra_state == &state);
    *static_cast<void**>(place) = value;
    *wanted = 1;
    return MPI_SUCCESS;
}

void never_called() {
    EXPECT(false && "the library's own function got a handle that it would follow");
}

void duplicate(MPI_Comm comm, int keyval, int kind) {
    int found = 0;
    void* value = nullptr;
    MPI_Comm_set_attr(comm, keyval, &found);
    MPI_Comm duplicate;
    MPI_Comm_dup(comm, &duplicate);
    EXPECT(copied_kind == kind);
    MPI_Comm_get_attr(duplicate, keyval, &value, &found);
    EXPECT(found != 0 && value == &found);
    MPI_Comm_free(&duplicate);
    EXPECT(removed_kind == kind);
    MPI_Comm_delete_attr(comm, keyval);
}

void keys(int size) {
    Keyval classes = {nullptr, nullptr, copy, remove_value, &state};
    int keyval = MPI_KEYVAL_INVALID;
    EXPECT(ompi_attr_create_keyval(1, never_called, never_called, &keyval, &classes, 0, &classes) ==
           MPI_SUCCESS);
    duplicate(MPI_COMM_WORLD, keyval, 1);
    MPI_Comm line;
    int periodic = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &line);
    duplicate(line, keyval, 3);
    MPI_Comm_free(&line);
    MPI_Comm_free_keyval(&keyval);

    Keyval mixed = {copy_in_c, nullptr, nullptr, remove_value, &state};
    ompi_attr_create_keyval(1, never_called, never_called, &keyval, &mixed, 0, &mixed);
    copied_kind = 1; // of no copy
    duplicate(MPI_COMM_SELF, keyval, 1);
    MPI_Comm_free_keyval(&keyval);

    for (int type = 1; type <= 3; ++type) { // functions without classes
        ompi_attr_create_keyval(type, reinterpret_cast<void (*)()>(MPI_COMM_DUP_FN),
                                reinterpret_cast<void (*)()>(MPI_COMM_NULL_DELETE_FN), &keyval,
                                &state, 0, nullptr);
        EXPECT(keyval != MPI_KEYVAL_INVALID);
        if (type == 1) {
            MPI_Comm_free_keyval(&keyval);
        } else if (type == 2) {
            MPI_Type_free_keyval(&keyval);
        } else {
            MPI_Win_free_keyval(&keyval);
        }
    }
}

int handled = MPI_SUCCESS;

void handle(MPI::Comm& comm, int* code) {
    EXPECT(comm.kind() == 1);
    MPI_Error_class(*code, &handled);
}
void handle_file(MPI_File, int* code) {
    MPI_Error_class(*code, &handled);
}

void error_handlers() {
    auto handler = static_cast<MPI_Errhandler>(
        ompi_errhandler_create(1, reinterpret_cast<void (*)()>(handle), 1));
    std::memset(static_cast<void*>(handler), 1, 0x90); // as the library writes into it
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    EXPECT(MPI_Comm_set_errhandler(comm, handler) == MPI_SUCCESS);
    MPI_Errhandler got;
    EXPECT(MPI_Comm_get_errhandler(comm, &got) == MPI_SUCCESS);
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&handler);
    EXPECT(handler == MPI_ERRHANDLER_NULL);
    MPI_Send(nullptr, 1, MPI_INT, 1 << 20, 0, comm);
    EXPECT(handled == MPI_ERR_RANK);

    // It ends the job at a failure, as an exception that nobody catches does.
    auto throwing = reinterpret_cast<MPI_Errhandler>(ompi_mpi_errors_throw_exceptions);
    EXPECT(MPI_Comm_set_errhandler(comm, throwing) == MPI_SUCCESS);
    EXPECT(MPI_Comm_get_errhandler(comm, &got) == MPI_SUCCESS);
    EXPECT(got == MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);

    handler = static_cast<MPI_Errhandler>(
        ompi_errhandler_create(3, reinterpret_cast<void (*)()>(handle_file), 1));
    EXPECT(MPI_File_set_errhandler(MPI_FILE_NULL, handler) == MPI_SUCCESS);
    handled = MPI_SUCCESS;
    EXPECT(ompi_errhandler_invoke(nullptr, MPI_FILE_NULL, 0, MPI_ERR_ARG, "MPI::File") ==
           MPI_ERR_ARG);
    EXPECT(handled == MPI_ERR_ARG);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

// As the library appends a representation to its list.
void representations() {
    struct Item {
        void* unused[2];
        Item* next;
        Item* previous;
    } item = {};
    auto* last = reinterpret_cast<Item*>(ompi_registered_datareps + 0x10);
    item.previous = last->previous;
    last->previous->next = &item;
    item.next = last;
    last->previous = &item;
    EXPECT(last->next == &item);
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(ompi_errcode_intern_lastused == 0);
    operations(rank, size);
    keys(size);
    error_handlers();
    representations();
    MPI_Finalize();
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
