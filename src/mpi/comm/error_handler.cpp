#include "mpi/comm/error_handler.hpp"

namespace warren::comm {

ErrorHandler* ErrorHandlers::find(MPI_Errhandler handle) {
    if (handle == MPI_ERRORS_RETURN) {
        return &returns_;
    }
    if (handle == MPI_ERRORS_ARE_FATAL) {
        return &fatal_;
    }
    if (handle == MPI_ERRORS_ABORT) {
        return &aborts_;
    }
    ErrorHandler* found = made_.find(handle);
    return found != nullptr && found->handles_ != 0 ? found : nullptr;
}

MPI_Errhandler ErrorHandlers::handle_of(const ErrorHandler& handler) const {
    switch (handler.kind()) {
    case ErrorHandler::Kind::fatal:
        return MPI_ERRORS_ARE_FATAL;
    case ErrorHandler::Kind::aborts:
        return MPI_ERRORS_ABORT;
    case ErrorHandler::Kind::returns:
        return MPI_ERRORS_RETURN;
    default:
        return static_cast<MPI_Errhandler>(LateHandleTable<ErrorHandler>::handle_of(handler));
    }
}

MPI_Errhandler ErrorHandlers::of_integer(int integer) const {
    const auto bits = static_cast<std::uint32_t>(integer);
    if (bits < first_handle) {
        const auto handle = reinterpret_cast<MPI_Errhandler>(std::uintptr_t{bits});
        return handle == MPI_ERRORS_RETURN || handle == MPI_ERRORS_ARE_FATAL ||
                       handle == MPI_ERRORS_ABORT
                   ? handle
                   : MPI_ERRHANDLER_NULL;
    }
    void* handle = made_.from_integer(bits);
    return handle != nullptr ? static_cast<MPI_Errhandler>(handle) : MPI_ERRHANDLER_NULL;
}

void ErrorHandlers::release(ErrorHandler& handler) {
    if (!handler.predefined() && --handler.references_ == 0) {
        made_.remove(handler);
    }
}

void ErrorHandlers::free(ErrorHandler& handler) {
    if (!handler.predefined()) {
        --handler.handles_;
        release(handler);
    }
}

} // namespace warren::comm
