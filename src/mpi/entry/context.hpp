// Context: everything that an MPI process is, its rank with all of the rooms' per-rank state.
//
// MPI_Init or the first session makes it; it ends when neither is left, to be taken up again by
// another session if there has been one (mpi/entry/sessions.hpp). A thread finds it by one
// thread-local load; a thread that has none yet adopts its rank's context at its first call, by way
// of the rank's state (mpi/entry/rank_state.hpp). Thread rule: members say; find_context by
// anybody.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <pthread.h>
#include <string>

#include "mpi/comm/attributes.hpp"
#include "mpi/comm/communicator.hpp"
#include "mpi/comm/session.hpp"
#include "mpi/datatype/type_table.hpp"
#include "mpi/entry/launcher.hpp"
#include "mpi/entry/partitioned.hpp"
#include "mpi/entry/ports.hpp"
#include "mpi/entry/process.hpp"
#include "mpi/entry/rank_state.hpp"
#include "mpi/io/file.hpp"
#include "mpi/job/name_service.hpp"
#include "mpi/message/engine.hpp"
#include "mpi/message/send_buffer.hpp"
#include "mpi/op/op.hpp"
#include "mpi/rank/rank.hpp"
#include "mpi/rma/window.hpp"

namespace warren::mpi {

struct Enrolment;

struct Context {
    Context(RankState& rank_state, Enrolment&& enrolment);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    RankState& rank_state;
    Process& process;
    comm::ErrorHandlers& error_handlers = process.error_handlers;
    comm::Infos& infos = process.infos;

    Rank rank;
    message::Engine messages;
    message::SendBuffer send_buffer; // of MPI_Buffer_attach
    comm::Keyvals keyvals;
    datatype::TypeTable datatypes;
    coll::Ops operations;
    comm::Communicators communicators;
    comm::Sessions sessions;
    PartitionedMatching partitioned;
    rma::WindowServer window_server;
    Ports ports;
    node::NameService names; // published
    Launcher launcher;
    MPI_Comm parent = MPI_COMM_NULL; // of a spawned world
    LateHandleTable<rma::Window> windows;
    LateHandleTable<io::File> files;
    io::Representations representations; // of data in files

    // The communicator that the running call's failure belongs to, when it isn't one of the call's
    // arguments (a request's): set by set_failed_on() of mpi/entry/release.hpp, under the lock.
    comm::Communicator* failed_on = nullptr;
    int failed_class = MPI_SUCCESS; // of the error in the status of that request

    // Handler of errors that belong to files that do not exist (yet).
    comm::ErrorHandler* file_error_handler = nullptr; // of MPI_FILE_NULL; null: MPI_ERRORS_RETURN

    int thread_level = MPI_THREAD_SINGLE; // of MPI_Init
    bool shared_by_threads = false;       // MPI_THREAD_MULTIPLE, of MPI_Init or a session
    // The thread that initialised. (A fibre has no kernel thread for good.)
    pthread_t main_thread;

    // Variables that the predefined attributes' values point to.
    struct {
        int tag_ub = 0;
        int host = MPI_PROC_NULL;
        int io = MPI_ANY_SOURCE;
        int wtime_is_global = 1;
        int universe_size = 1;
        int application = 0;
    } attributes;
};

// The largest tag: a message's envelope carries 31 bits of it.
inline constexpr int tag_limit = 0x7fffffff;

// constinit: without it, every use asks whether there is an initialiser to run.
extern constinit thread_local Context* own_context;

// The calling thread's context after the first look: adopts its rank's, or ends the program with
// the reason why there is none.
[[gnu::cold]] Context& adopt_context(std::uint32_t call);

inline Context& find_context(std::uint32_t call) {
    Context* context = own_context;
    if (context == nullptr) [[unlikely]] {
        return adopt_context(call);
    }
    return *context;
}

// The context of the calling thread's rank, or null when MPI is not initialised. For calls allowed
// at any time.
Context* process_context();

// Life of the rank. make_context is MPI_Init's work; an error leaves everything as it was.
// The end has two parts: what the program may still do while delete functions run, and the rest.
Life life();
Error make_context(int thread_level);
void begin_end_of_context();
void end_context();
// Life of the context for sessions. open_context finds the context, takes up the sleeping one or
// makes one, for threads that call at this level. close_context ends it with the last session,
// unless MPI_Init holds it.
Error open_context(int thread_level, Context*& context);
void close_context();

} // namespace warren::mpi
