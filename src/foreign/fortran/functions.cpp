// Functions of the program in Fortran: operations, error handlers, generalised requests. All their
// arguments come by reference.

#include <new>

#include "foreign/fortran/arguments.hpp"

namespace warren::foreign::fortran {

namespace {

using OpFunction = void(void* in, void* inout, int* count, int* type);

void call_fortran_op(coll::Op::Function function, void* in, void* inout, void* count,
                     MPI_Datatype type) {
    int number = integer::Type::to(handle::Datatype::foreign(type));
    reinterpret_cast<OpFunction*>(function)(in, inout, static_cast<int*>(count), &number);
}

using ErrorFunction = void(int* object, int* code);

template <typename Conversion>
int call_fortran_handler(comm::ErrorHandler::Function function, void* object, int code) {
    using Kind = typename Conversion::Kind;
    int number = Conversion::to(Kind::foreign(static_cast<typename Kind::Core>(object)));
    const int before = foreign_error(code);
    int error = before;
    reinterpret_cast<ErrorFunction*>(function)(&number, &error);
    return error == before ? code : core_error(error);
}

template <typename Conversion, typename Function>
void create_handler(int (*create)(Function*, MPI_Errhandler*), ErrorFunction* function,
                    int* errhandler, int* ierror) {
    MPI_Errhandler made = MPI_ERRHANDLER_NULL;
    const int code = create(reinterpret_cast<Function*>(function), &made);
    if (code == MPI_SUCCESS) {
        hooks.adapt_errhandler(made, call_fortran_handler<Conversion>);
        *errhandler = integer::Errhandler::to(handle::Errhandler::foreign(made));
    }
    finish(ierror, foreign_error(code));
}

using QueryFunction = void(MPI_Aint* extra_state, int* status, int* ierror);
using FreeFunction = void(MPI_Aint* extra_state, int* ierror);
using CancelFunction = void(MPI_Aint* extra_state, int* complete, int* ierror);

// (Functions change the program's variable, as in other libraries: extra_state is its address.)
struct FortranRequest {
    QueryFunction* query;
    FreeFunction* free;
    CancelFunction* cancel;
    MPI_Aint* extra_state;
};

int query_fortran(void* extra_state, MPI_Status* status) {
    auto& request = *static_cast<FortranRequest*>(extra_state);
    Status made{};
    int ierror = MPI_SUCCESS;
    request.query(request.extra_state, reinterpret_cast<int*>(&made), &ierror);
    *status = load_status(made);
    return core_error(ierror);
}

int free_fortran(void* extra_state) {
    auto* request = static_cast<FortranRequest*>(extra_state);
    int ierror = MPI_SUCCESS;
    request->free(request->extra_state, &ierror);
    delete request;
    return core_error(ierror);
}

int cancel_fortran(void* extra_state, int complete) {
    auto& request = *static_cast<FortranRequest*>(extra_state);
    int ierror = MPI_SUCCESS;
    request.cancel(request.extra_state, &complete, &ierror);
    return core_error(ierror);
}

} // namespace

WARREN_FORTRAN(op_create, OP_CREATE, (OpFunction * function, int* commute, int* op, int* ierror)) {
    MPI_Op made = MPI_OP_NULL;
    const int code =
        core.Op_create(reinterpret_cast<MPI_User_function*>(function), *commute != 0, &made);
    if (code == MPI_SUCCESS) {
        hooks.adapt_op(made, call_fortran_op, nullptr);
        *op = integer::Op::to(handle::Op::foreign(made));
    }
    finish(ierror, foreign_error(code));
}

WARREN_FORTRAN(comm_create_errhandler, COMM_CREATE_ERRHANDLER,
               (ErrorFunction * function, int* errhandler, int* ierror)) {
    create_handler<integer::Comm>(core.Comm_create_errhandler, function, errhandler, ierror);
}
WARREN_FORTRAN(errhandler_create, ERRHANDLER_CREATE,
               (ErrorFunction * function, int* errhandler, int* ierror)) {
    create_handler<integer::Comm>(core.Comm_create_errhandler, function, errhandler, ierror);
}
WARREN_FORTRAN(win_create_errhandler, WIN_CREATE_ERRHANDLER,
               (ErrorFunction * function, int* errhandler, int* ierror)) {
    create_handler<integer::Win>(core.Win_create_errhandler, function, errhandler, ierror);
}
WARREN_FORTRAN(file_create_errhandler, FILE_CREATE_ERRHANDLER,
               (ErrorFunction * function, int* errhandler, int* ierror)) {
    create_handler<integer::File>(core.File_create_errhandler, function, errhandler, ierror);
}
WARREN_FORTRAN(session_create_errhandler, SESSION_CREATE_ERRHANDLER,
               (ErrorFunction * function, int* errhandler, int* ierror)) {
    create_handler<integer::Session>(core.Session_create_errhandler, function, errhandler, ierror);
}
WARREN_FORTRAN(errhandler_set, ERRHANDLER_SET, (int* comm, int* errhandler, int* ierror)) {
    finish(ierror, foreign_error(core.Comm_set_errhandler(
                       handle::Comm::core(integer::Comm::from(*comm)),
                       handle::Errhandler::core(integer::Errhandler::from(*errhandler)))));
}
WARREN_FORTRAN(errhandler_get, ERRHANDLER_GET, (int* comm, int* errhandler, int* ierror)) {
    MPI_Errhandler found = MPI_ERRHANDLER_NULL;
    const int code =
        core.Comm_get_errhandler(handle::Comm::core(integer::Comm::from(*comm)), &found);
    *errhandler = integer::Errhandler::to(handle::Errhandler::foreign(found));
    finish(ierror, foreign_error(code));
}

WARREN_FORTRAN(grequest_start, GREQUEST_START,
               (QueryFunction * query, FreeFunction* free, CancelFunction* cancel,
                MPI_Aint* extra_state, int* request, int* ierror)) {
    auto* record = new (std::nothrow) FortranRequest{query, free, cancel, extra_state};
    if (record == nullptr) {
        finish(ierror, no_memory());
        return;
    }
    MPI_Request made = MPI_REQUEST_NULL;
    const int code =
        core.Grequest_start(query_fortran, free_fortran, cancel_fortran, record, &made);
    if (code != MPI_SUCCESS) {
        delete record;
    }
    *request = integer::Request::to(handle::Request::foreign(made));
    finish(ierror, foreign_error(code));
}

} // namespace warren::foreign::fortran
