// Calls of libmpi_cxx.so.40, Open MPI's library of MPI 2's C++ classes (MPI::Intracomm and others),
// that the standard doesn't have. That library calls them for functions of the program that take
// such classes: of operations, keys and error handlers. All else is done by the standard's
// procedures.
//
// The layouts are those of Open MPI 4.0 and 4.1, the last that have the classes: an object is its
// table of virtual functions and the handle.

#include "classes.hpp"

#include <atomic>

#include "foreign/arguments.hpp"
#include "foreign/export.hpp"
#include "objects.hpp"

namespace warren::foreign {

namespace {

using UserFunction = void(void* in, void* inout, int* count, Datatype* type);
using OpIntercept = void(void* in, void* inout, int* count, Datatype* type, UserFunction* function);

// The library's own function that calls one which takes an MPI::Datatype: one for all operations.
std::atomic<OpIntercept*> op_intercept = nullptr;

void call_class_op(coll::Op::Function function, void* in, void* inout, void* count,
                   MPI_Datatype type) {
    Datatype datatype = handle::Datatype::foreign(type);
    op_intercept.load(std::memory_order_relaxed)(in, inout, static_cast<int*>(count), &datatype,
                                                 reinterpret_cast<UserFunction*>(function));
}

// An error handler whose function takes a class. The library writes into `object`, and its address
// is the handle that the program gets.
struct ClassHandler {
    char object[256];
    MPI_Errhandler core;
    const ClassHandler* next;
};

// All that a process has made. Invariant: handlers are added and never removed, since the program
// may keep an address; a freed one leads to a handle that the core refuses.
std::atomic<const ClassHandler*> handlers = nullptr;

} // namespace

} // namespace warren::foreign

using namespace warren::foreign;

extern "C" {

int make_comm_keyval(void* copy, void* remove, int* keyval,
                     void* extra_state) asm("PMPI_Comm_create_keyval");
int make_datatype_keyval(void* copy, void* remove, int* keyval,
                         void* extra_state) asm("PMPI_Type_create_keyval");
int make_window_keyval(void* copy, void* remove, int* keyval,
                       void* extra_state) asm("PMPI_Win_create_keyval");

// Functions and tables of libmpi_cxx.so.40, which is not there in programs without the classes.
#pragma GCC visibility push(default)
[[gnu::weak]] void ompi_mpi_cxx_comm_errhandler_invoke(Comm*, int*, const char*, void*);
[[gnu::weak]] void ompi_mpi_cxx_win_errhandler_invoke(Win*, int*, const char*, void*);
[[gnu::weak]] void ompi_mpi_cxx_file_errhandler_invoke(File*, int*, const char*, void*);
[[gnu::weak]] extern void* const _ZTVN3MPI9IntracommE[];
[[gnu::weak]] extern void* const _ZTVN3MPI9IntercommE[];
[[gnu::weak]] extern void* const _ZTVN3MPI8CartcommE[];
[[gnu::weak]] extern void* const _ZTVN3MPI9GraphcommE[];
#pragma GCC visibility pop

} // extern "C"

namespace warren::foreign {

namespace {

// An MPI::Intracomm, MPI::Intercomm, MPI::Cartcomm or MPI::Graphcomm.
struct ClassComm {
    void* const* functions;
    Comm comm;
};

// The library's data of a key whose functions take classes: of each kind of function, one of the
// two is null.
struct ClassKeyval {
    int (*copy)(Comm, int, void*, void*, void*, int*);
    int (*remove)(Comm, int, void*, void*);
    int (*class_copy)(const ClassComm&, int, void*, void*, void*, bool&);
    int (*class_remove)(ClassComm&, int, void*, void*);
    void* extra_state;
};

bool have_classes() {
    return _ZTVN3MPI9IntracommE != nullptr && _ZTVN3MPI9IntercommE != nullptr &&
           _ZTVN3MPI8CartcommE != nullptr && _ZTVN3MPI9GraphcommE != nullptr;
}

ClassComm class_of(MPI_Comm comm) {
    constexpr int before_functions = 2; // an offset and the type's description
    int inter = 0;
    int topology = MPI_UNDEFINED;
    core.Comm_test_inter(comm, &inter);
    if (inter == 0) {
        core.Topo_test(comm, &topology);
    }
    void* const* table = inter != 0              ? _ZTVN3MPI9IntercommE
                         : topology == MPI_CART  ? _ZTVN3MPI8CartcommE
                         : topology == MPI_GRAPH ? _ZTVN3MPI9GraphcommE
                                                 : _ZTVN3MPI9IntracommE;
    return {table + before_functions, handle::Comm::foreign(comm)};
}

int call_class_copy(comm::Keyval::Copy, void* object, int keyval, void* extra_state, void* value,
                    void** copied, int* wanted) {
    const auto& its = *static_cast<const ClassKeyval*>(extra_state);
    const auto comm = static_cast<MPI_Comm>(object);
    if (its.copy != nullptr) {
        return core_error(its.copy(handle::Comm::foreign(comm), foreign_keyval(keyval),
                                   its.extra_state, value, copied, wanted));
    }
    bool is_wanted = *wanted != 0;
    const int code = its.class_copy(class_of(comm), foreign_keyval(keyval), its.extra_state, value,
                                    copied, is_wanted);
    *wanted = is_wanted ? 1 : 0;
    return core_error(code);
}

int call_class_delete(comm::Keyval::Delete, void* object, int keyval, void* value,
                      void* extra_state) {
    const auto& its = *static_cast<const ClassKeyval*>(extra_state);
    const auto comm = static_cast<MPI_Comm>(object);
    if (its.remove != nullptr) {
        return core_error(its.remove(handle::Comm::foreign(comm), foreign_keyval(keyval), value,
                                     its.extra_state));
    }
    ClassComm argument = class_of(comm);
    return core_error(its.class_remove(argument, foreign_keyval(keyval), value, its.extra_state));
}

template <typename Kind>
using ClassInvoke = void(typename Kind::Foreign*, int*, const char*, void*);

template <typename Kind, ClassInvoke<Kind>* invoke>
int call_class_handler(comm::ErrorHandler::Function function, void* object, int code) {
    auto handle = Kind::foreign(static_cast<typename Kind::Core>(object));
    const int before = foreign_error(code);
    int error = before;
    char message[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    core.Error_string(code, message, &length);
    invoke(&handle, &error, message, reinterpret_cast<void*>(function));
    return error == before ? code : core_error(error);
}

template <typename Kind, ClassInvoke<Kind>* invoke, typename Create, typename Function>
MPI_Errhandler class_handler(Create create, Function* function) {
    MPI_Errhandler made = MPI_ERRHANDLER_NULL;
    if (invoke != nullptr && create(function, &made) == MPI_SUCCESS) {
        hooks.adapt_errhandler(made, call_class_handler<Kind, invoke>);
    }
    return made;
}

} // namespace

} // namespace warren::foreign

#pragma GCC visibility push(default)
extern "C" {

// Variables that the library's inline functions read. There are no codes of Open MPI's own.
int ompi_errcode_intern_lastused = 0;
PredefinedObject<256> ompi_errcodes_intern;

// MPI::Register_datarep appends to this list; nobody reads it.
struct DatarepList {
    char unused[0x20];
    void* next;
    void* previous;
    char rest[256 - 0x30];
} ompi_registered_datareps = {
    {}, &ompi_registered_datareps.unused[0x10], &ompi_registered_datareps.unused[0x10], {}};

// MPI::Op::Init has made the operation with the library's intercept; `function` is the program's.
void ompi_op_set_cxx_callback(Op op, UserFunction* function) {
    const auto intercept = hooks.adapt_op(handle::Op::core(op), call_class_op,
                                          reinterpret_cast<warren::coll::Op::Function>(function));
    if (intercept != nullptr) { // null: MPI_Op_create has failed
        op_intercept.store(reinterpret_cast<OpIntercept*>(intercept), std::memory_order_relaxed);
    }
}

// `type`: 1 communicators, 2 datatypes, 3 windows. `classes`: the key's data, for communicators
// whose functions take classes.
int ompi_attr_create_keyval(int type, void* copy, void* remove, int* keyval, void* extra_state, int,
                            const ClassKeyval* classes) {
    if (type == 1 && classes != nullptr) {
        if (!have_classes()) {
            return foreign_error(MPI_ERR_UNSUPPORTED_OPERATION);
        }
        int made = unset;
        const int code = core.Comm_create_keyval(
            reinterpret_cast<MPI_Comm_copy_attr_function*>(copy),
            reinterpret_cast<MPI_Comm_delete_attr_function*>(remove), &made, extra_state);
        if (made != unset) {
            hooks.adapt_keyval(made, warren::comm::AttributeOwner::communicator, call_class_copy,
                               call_class_delete);
            *keyval = foreign_keyval(made);
        }
        return foreign_error(code);
    }
    const auto create = type == 1   ? make_comm_keyval
                        : type == 2 ? make_datatype_keyval
                                    : make_window_keyval;
    return create(copy, remove, keyval, extra_state);
}

// `type`: 1 communicators, 2 windows, 3 files. Never null: the library writes into the object.
void* ompi_errhandler_create(int type, void (*function)(void*, int*, ...), int) {
    auto* handler = static_cast<ClassHandler*>(std::calloc(1, sizeof(ClassHandler)));
    if (handler == nullptr) {
        static ClassHandler none = {};
        return none.object;
    }
    if (type == 1) {
        handler->core = class_handler<handle::Comm, ompi_mpi_cxx_comm_errhandler_invoke>(
            core.Comm_create_errhandler, reinterpret_cast<MPI_Comm_errhandler_function*>(function));
    } else if (type == 2) {
        handler->core = class_handler<handle::Win, ompi_mpi_cxx_win_errhandler_invoke>(
            core.Win_create_errhandler, reinterpret_cast<MPI_Win_errhandler_function*>(function));
    } else {
        handler->core = class_handler<handle::File, ompi_mpi_cxx_file_errhandler_invoke>(
            core.File_create_errhandler, reinterpret_cast<MPI_File_errhandler_function*>(function));
    }
    handler->next = handlers.load();
    while (!handlers.compare_exchange_weak(handler->next, handler)) {
    }
    return handler->object;
}

// `object` is MPI::COMM_WORLD's or MPI::FILE_NULL's handle: of failures in the library itself.
int ompi_errhandler_invoke(void*, void* object, int, int code, const char*) {
    const std::uintptr_t found = predefined.core(object);
    const int error = core_error(code);
    if (found == reinterpret_cast<std::uintptr_t>(MPI_FILE_NULL)) {
        core.File_call_errhandler(MPI_FILE_NULL, error);
    } else {
        core.Comm_call_errhandler(reinterpret_cast<MPI_Comm>(found), error);
    }
    return code;
}

MPI_Errhandler ompi_warren_class_handler(const void* handle) {
    for (const ClassHandler* its = handlers.load(); its != nullptr; its = its->next) {
        if (its->object == handle) {
            return its->core;
        }
    }
    return reinterpret_cast<MPI_Errhandler>(invalid_handle);
}

} // extern "C"
#pragma GCC visibility pop
