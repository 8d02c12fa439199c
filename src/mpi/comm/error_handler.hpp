// ErrorHandler: what happens when a call fails (MPI chapter 9), and a rank's table of them.
//
// Predefined handlers are objects too, so that whoever has a handler never asks which it is until
// it is called. A handler lives as long as its handle or an object that it is attached to.
// Thread rule: the tables of a process are used under its mutex (mpi/entry/process.hpp).
#pragma once

#include <cstdint>

#include "base/late_handle_table.hpp"
#include "mpi.h"

namespace warren::comm {

class ErrorHandler {
  public:
    enum class Kind : std::uint8_t {
        fatal,   // MPI_ERRORS_ARE_FATAL
        aborts,  // MPI_ERRORS_ABORT
        returns, // MPI_ERRORS_RETURN
        communicator,
        window,
        file,
        session
    };

    // A user's function of any kind: they differ in the handle that they are given a pointer to.
    using Function = void (*)();
    // Calls a function whose type of handle is not the standard's (src/foreign); `handle` and the
    // code, which the function may change, are the standard's.
    using Adapter = int (*)(Function function, void* handle, int code);

    explicit ErrorHandler(Kind kind, Function function = nullptr)
        : kind_(kind), function_(function) {}

    Kind kind() const { return kind_; }
    bool predefined() const { return function_ == nullptr; }
    void adapt(Adapter adapter) { adapter_ = adapter; }

    // Whether it may be attached to, or called for, objects of a kind.
    bool fits(Kind object) const { return predefined() || kind_ == object; }

    // Calls the user's function for the object behind `handle`. Returns the code that the failed
    // call is to return: the function may have changed it.
    template <typename Handle>
    int call(Handle handle, int code) const {
        if (adapter_ != nullptr) {
            return adapter_(function_, handle, code);
        }
        reinterpret_cast<void (*)(Handle*, int*, ...)>(function_)(&handle, &code);
        return code;
    }

  private:
    friend class ErrorHandlers;

    Kind kind_;
    std::uint32_t handles_ = 1;    // that the program owns
    std::uint32_t references_ = 1; // those, and the objects that it is attached to
    Function function_;
    Adapter adapter_ = nullptr;
};

class ErrorHandlers {
  public:
    ErrorHandler& fatal() { return fatal_; }
    ErrorHandler& aborts() { return aborts_; }
    ErrorHandler& returns() { return returns_; }

    // Null for MPI_ERRHANDLER_NULL and what is no error handler.
    ErrorHandler* find(MPI_Errhandler handle);
    MPI_Errhandler handle_of(const ErrorHandler& handler) const;
    // The handle of a Fortran integer; MPI_ERRHANDLER_NULL when there is none.
    MPI_Errhandler of_integer(int integer) const;

    // Null when memory is out.
    ErrorHandler* insert(ErrorHandler::Kind kind, ErrorHandler::Function function) {
        return made_.insert(kind, function);
    }
    // An object refers to it, or no longer does.
    void retain(ErrorHandler& handler) { ++handler.references_; }
    void release(ErrorHandler& handler);
    // The program gets one more handle of it (MPI_Comm_get_errhandler; all have the same value), or
    // gives one back; the last makes the handle unknown.
    MPI_Errhandler share(ErrorHandler& handler) {
        ++handler.handles_;
        ++handler.references_;
        return handle_of(handler);
    }
    void free(ErrorHandler& handler);
    std::size_t live() const { return made_.live(); }

  private:
    ErrorHandler fatal_{ErrorHandler::Kind::fatal};
    ErrorHandler aborts_{ErrorHandler::Kind::aborts};
    ErrorHandler returns_{ErrorHandler::Kind::returns};
    LateHandleTable<ErrorHandler> made_;
};

} // namespace warren::comm
