// Session: a program's, or a library's, own way into MPI (MPI chapter 11), and a rank's table of
// them.
//
// All sessions of a process share its context, and the ranks of its job: a session is what errors
// belong to, whose hints are known, and who has a buffer for buffered sends. Groups and
// communicators know their session by its handle, which goes on to what is made from them; it may
// outlive the session.
// Thread rule: under the rank's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/late_handle_table.hpp"
#include "mpi.h"
#include "mpi/comm/info.hpp"
#include "mpi/message/send_buffer.hpp"

namespace warren::comm {

class ErrorHandler;

struct Session {
    explicit Session(int level) : thread_level(level) {}

    ErrorHandler* error_handler = nullptr; // null: MPI_ERRORS_ARE_FATAL
    int thread_level;
    std::string memory_kinds; // granted to it (mpi/entry/memory_kinds.hpp)
    // Buffer of buffered sends in communicators that come from this session; null until attached.
    std::unique_ptr<message::SendBuffer> send_buffer;
};

class Sessions {
  public:
    Session* find(MPI_Session handle) { return made_.find(handle); }
    MPI_Session handle_of(const Session& session) const {
        return static_cast<MPI_Session>(LateHandleTable<Session>::handle_of(session));
    }
    // The handle of a Fortran integer; MPI_SESSION_NULL when there is none.
    MPI_Session of_integer(int integer) const {
        void* handle = made_.from_integer(static_cast<std::uint32_t>(integer));
        return handle != nullptr ? static_cast<MPI_Session>(handle) : MPI_SESSION_NULL;
    }
    // Null when memory is out.
    Session* insert(int thread_level) {
        ++opened_;
        return made_.insert(thread_level);
    }
    void remove(Session& session) { made_.remove(session); }
    std::size_t live() const { return made_.live(); }
    // How many there have been.
    std::uint64_t opened() const { return opened_; }

  private:
    LateHandleTable<Session> made_;
    std::uint64_t opened_ = 0;
};

} // namespace warren::comm
