#include "mpi/entry/error_handlers.hpp"

#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "mpi/entry/context.hpp"
#include "mpi/entry/failure.hpp"

namespace warren::mpi {

namespace {

using Kind = comm::ErrorHandler::Kind;

template <typename Function>
Error create(Process& process, Kind kind, Function* function, MPI_Errhandler* errhandler) {
    if (function == nullptr) {
        return fail(MPI_ERR_ARG, "the function is a null pointer");
    }
    const comm::ErrorHandler* made = process.error_handlers.insert(
        kind, reinterpret_cast<comm::ErrorHandler::Function>(function));
    if (made == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory for an error handler");
    }
    *errhandler = process.error_handlers.handle_of(*made);
    return {};
}

Error check_code(const ErrorCodes& codes, const char* name, int code) {
    if (!codes.known(code)) {
        return fail(MPI_ERR_ARG, "%s = %d is no error code or class", name, code);
    }
    return {};
}

} // namespace

Error check_kind(const comm::ErrorHandler& handler, Kind kind, const char* objects) {
    if (!handler.fits(kind)) {
        return fail(MPI_ERR_ERRHANDLER, "errhandler was not created for %s", objects);
    }
    return {};
}

void set_handler(Context& context, comm::ErrorHandler*& place, comm::ErrorHandler& handler) {
    const std::lock_guard lock(context.process.mutex);
    context.error_handlers.retain(handler);
    if (comm::ErrorHandler* before = std::exchange(place, &handler)) {
        context.error_handlers.release(*before);
    }
}

MPI_Errhandler share_handler(Context& context, comm::ErrorHandler* place,
                             comm::ErrorHandler& otherwise) {
    const std::lock_guard lock(context.process.mutex);
    return context.error_handlers.share(place != nullptr ? *place : otherwise);
}

Error comm_create_errhandler(Process& process, MPI_Comm_errhandler_function* function,
                             MPI_Errhandler* errhandler) {
    return create(process, Kind::communicator, function, errhandler);
}

Error file_create_errhandler(Process& process, MPI_File_errhandler_function* function,
                             MPI_Errhandler* errhandler) {
    return create(process, Kind::file, function, errhandler);
}

Error win_create_errhandler(Process& process, MPI_Win_errhandler_function* function,
                            MPI_Errhandler* errhandler) {
    return create(process, Kind::window, function, errhandler);
}

Error session_create_errhandler(Process& process, MPI_Session_errhandler_function* function,
                                MPI_Errhandler* errhandler) {
    return create(process, Kind::session, function, errhandler);
}

Error errhandler_free(Process& process, comm::ErrorHandler& errhandler) {
    process.error_handlers.free(errhandler);
    return {};
}

Error error_class(Process& process, int errorcode, int* errorclass) {
    if (Error error = check_code(process.error_codes, "errorcode", errorcode)) {
        return error;
    }
    *errorclass = process.error_codes.class_of(errorcode);
    return {};
}

Error error_string(Process& process, int errorcode, char* string, int* resultlen) {
    if (Error error = check_code(process.error_codes, "errorcode", errorcode)) {
        return error;
    }
    const std::string text = process.error_codes.text_of(errorcode);
    const std::size_t bytes = std::min<std::size_t>(text.size(), MPI_MAX_ERROR_STRING - 1);
    std::memcpy(string, text.data(), bytes);
    string[bytes] = '\0';
    *resultlen = static_cast<int>(bytes);
    return {};
}

Error add_error_class(Process& process, int* errorclass) {
    *errorclass = process.error_codes.add_class();
    return {};
}

Error add_error_code(Process& process, int errorclass, int* errorcode) {
    const ErrorCodes& codes = process.error_codes;
    if (!codes.known(errorclass) || codes.class_of(errorclass) != errorclass) {
        return fail(MPI_ERR_ARG, "errorclass = %d is no error class", errorclass);
    }
    *errorcode = process.error_codes.add_code(errorclass);
    return {};
}

Error add_error_string(Process& process, int errorcode, const char* string) {
    return process.error_codes.set_text(errorcode, string);
}

Error remove_error_class(Process& process, int errorclass) {
    return process.error_codes.remove_class(errorclass);
}

Error remove_error_code(Process& process, int errorcode) {
    return process.error_codes.remove_code(errorcode);
}

Error remove_error_string(Process& process, int errorcode) {
    return process.error_codes.remove_text(errorcode);
}

Error comm_set_errhandler(Context& context, comm::Communicator& comm,
                          comm::ErrorHandler& errhandler) {
    if (Error error = check_kind(errhandler, Kind::communicator, "communicators")) {
        return error;
    }
    set_handler(context, comm.error_handler, errhandler);
    return {};
}

Error comm_get_errhandler(Context& context, comm::Communicator& comm, MPI_Errhandler* errhandler) {
    *errhandler = share_handler(context, comm.error_handler, context.error_handlers.fatal());
    return {};
}

Error comm_call_errhandler(Context& context, comm::Communicator& comm, int errorcode) {
    call_handler(context, comm, errorcode);
    return {};
}

Error win_set_errhandler(Context& context, rma::Window& win, comm::ErrorHandler& errhandler) {
    if (Error error = check_kind(errhandler, Kind::window, "windows")) {
        return error;
    }
    set_handler(context, win.error_handler, errhandler);
    return {};
}

Error win_get_errhandler(Context& context, rma::Window& win, MPI_Errhandler* errhandler) {
    *errhandler = share_handler(context, win.error_handler, context.error_handlers.fatal());
    return {};
}

Error win_call_errhandler(Context& context, rma::Window& win, int errorcode) {
    call_handler(context, win, errorcode);
    return {};
}

namespace {

comm::ErrorHandler*& handler_place(Context& context, io::File* file) {
    return file != nullptr ? file->error_handler : context.file_error_handler;
}

} // namespace

Error file_set_errhandler(Context& context, io::File* file, comm::ErrorHandler& errhandler) {
    if (Error error = check_kind(errhandler, Kind::file, "files")) {
        return error;
    }
    set_handler(context, handler_place(context, file), errhandler);
    return {};
}

Error file_get_errhandler(Context& context, io::File* file, MPI_Errhandler* errhandler) {
    *errhandler =
        share_handler(context, handler_place(context, file), context.error_handlers.returns());
    return {};
}

Error file_call_errhandler(Context& context, io::File* fh, int errorcode) {
    call_handler(context, fh, errorcode);
    return {};
}

} // namespace warren::mpi
