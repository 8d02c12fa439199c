// Error handlers: the program's functions get handles and codes of the foreign ABI.

#include "foreign/arguments.hpp"
#include "foreign/export.hpp"

namespace warren::foreign {

namespace {

template <typename Kind>
using HandlerFunction = void(typename Kind::Foreign*, int*, ...);

template <typename Kind>
int call_error_handler(comm::ErrorHandler::Function function, void* object, int code) {
    auto handle = Kind::foreign(static_cast<typename Kind::Core>(object));
    const int before = foreign_error(code);
    int error = before;
    reinterpret_cast<HandlerFunction<Kind>*>(function)(&handle, &error);
    return error == before ? code : core_error(error);
}

template <typename Kind, typename Create, typename Function>
int create_error_handler(Create create, Function* function, Errhandler* errhandler) {
    HandlePointer<handle::Errhandler, Way::out> errhandler_(errhandler);
    const int code = create(function, errhandler_.data());
    if (errhandler_.made()) {
        hooks.adapt_errhandler(*errhandler_.data(), call_error_handler<Kind>);
    }
    return foreign_error(code);
}

} // namespace

WARREN_FOREIGN(int, Comm_create_errhandler,
               (HandlerFunction<handle::Comm> * function, Errhandler* errhandler)) {
    return create_error_handler<handle::Comm>(
        core.Comm_create_errhandler, reinterpret_cast<MPI_Comm_errhandler_function*>(function),
        errhandler);
}

WARREN_FOREIGN(int, Win_create_errhandler,
               (HandlerFunction<handle::Win> * function, Errhandler* errhandler)) {
    return create_error_handler<handle::Win>(
        core.Win_create_errhandler, reinterpret_cast<MPI_Win_errhandler_function*>(function),
        errhandler);
}

WARREN_FOREIGN(int, File_create_errhandler,
               (HandlerFunction<handle::File> * function, Errhandler* errhandler)) {
    return create_error_handler<handle::File>(
        core.File_create_errhandler, reinterpret_cast<MPI_File_errhandler_function*>(function),
        errhandler);
}

WARREN_FOREIGN(int, Session_create_errhandler,
               (HandlerFunction<handle::Session> * function, Errhandler* errhandler)) {
    return create_error_handler<handle::Session>(
        core.Session_create_errhandler,
        reinterpret_cast<MPI_Session_errhandler_function*>(function), errhandler);
}

// Removed from the standard by MPI 3.0.
WARREN_FOREIGN(int, Errhandler_create,
               (HandlerFunction<handle::Comm> * function, Errhandler* errhandler)) {
    return call_Comm_create_errhandler(function, errhandler);
}

WARREN_FOREIGN(int, Errhandler_set, (Comm comm, Errhandler errhandler)) {
    return foreign_error(
        core.Comm_set_errhandler(handle::Comm::core(comm), handle::Errhandler::core(errhandler)));
}

WARREN_FOREIGN(int, Errhandler_get, (Comm comm, Errhandler* errhandler)) {
    HandlePointer<handle::Errhandler, Way::out> errhandler_(errhandler);
    return foreign_error(core.Comm_get_errhandler(handle::Comm::core(comm), errhandler_.data()));
}

} // namespace warren::foreign
