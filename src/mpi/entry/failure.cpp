#include "mpi/entry/failure.hpp"
#include "mpi/entry/file_release.hpp"
#include "mpi/entry/window_release.hpp"

#include <algorithm>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "mpi/calls.hpp"

namespace warren::mpi {

namespace {

std::string name_of(Context& context, const comm::Communicator& communicator) {
    if (communicator.name()[0] != '\0') {
        return communicator.name();
    }
    if (&communicator == &context.communicators.world()) {
        return "MPI_COMM_WORLD";
    }
    if (&communicator == &context.communicators.self()) {
        return "MPI_COMM_SELF";
    }
    return "a communicator of " + std::to_string(communicator.size()) + " ranks";
}

std::string name_of(const rma::Window& window) {
    return !window.name.empty() ? window.name
                                : "a window of " + std::to_string(window.size()) + " ranks";
}

std::string name_of(const io::File* file) {
    return file != nullptr ? "file " + file->path() : "MPI_FILE_NULL";
}

// The place of a file's handler; nobody has set one: errors return.
comm::ErrorHandler* const& handler_of(Context& context, io::File* file) {
    comm::ErrorHandler*& place = file != nullptr ? file->error_handler : context.file_error_handler;
    if (place == nullptr) {
        const std::lock_guard lock(context.process.mutex);
        place = &context.error_handlers.returns();
        context.error_handlers.retain(*place);
    }
    return place;
}

void say(const char* text) {
    // One write, so that lines of several ranks don't mix.
    const std::string line = std::string("warren: ") + text + "\n";
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) {
        return; // nowhere left to say it
    }
}

// Exit codes have 8 bits: a failure must not become a success by losing the others.
int exit_code(int code) {
    return (code & 0xff) != 0 || code == 0 ? code & 0xff : 1;
}

} // namespace

void end_job(Context& context, node::JobEnd end, int code, const char* text) {
    flush_output(); // what the program has printed so far belongs to the story
    context.rank.slot.state.store(node::RankStage::aborting, std::memory_order_release);
    switch (context.rank.bootstrap().abort(end, code, text)) {
    case node::Bootstrap::Told::launcher:
        break;
    case node::Bootstrap::Told::before: {
        // The launcher is to hear first of who was quicker, and ends this rank with the others.
        constexpr useconds_t patience_us = 200'000;
        usleep(patience_us);
        break;
    }
    case node::Bootstrap::Told::nobody:
        say(text);
        break;
    }
    _exit(exit_code(code));
}

void end_part(Context& context, const comm::Communicator& communicator, int code) {
    std::vector<std::uint32_t> members;
    for (const comm::RankMap* map : {&communicator.map(), &communicator.peer_map()}) {
        for (int rank = 0; rank < map->size(); ++rank) {
            members.push_back(comm::World::endpoint_of((*map)[rank]));
        }
    }
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    if (members.size() == context.rank.world_size || members.back() >= context.rank.size) {
        return; // of several nodes: all
    }
    flush_output();
    auto initialised = node::RankStage::initialised;
    if (!context.rank.slot.state.compare_exchange_strong(initialised, node::RankStage::aborting)) {
        pause(); // another member was quicker
    }
    say(("rank " + std::to_string(context.rank.world_rank) + " called MPI_Abort with code " +
         std::to_string(code) + " on " + name_of(context, communicator))
            .c_str());
    for (const std::uint32_t member : members) {
        node::RankSlot& slot = context.rank.segment.slot(member);
        initialised = node::RankStage::initialised;
        // Not one that has come to its end by itself, or aborts too.
        if (slot.state.compare_exchange_strong(initialised, node::RankStage::doomed)) {
            kill(slot.pid.load(std::memory_order_relaxed), SIGKILL);
        }
    }
    _exit(exit_code(code));
}

void end_process(const char* format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    flush_output();
    say(text);
    exit_rank(1);
}

namespace {

bool is_fatal(const comm::ErrorHandler* handler) {
    using Kind = comm::ErrorHandler::Kind;
    return handler == nullptr || handler->kind() == Kind::fatal || handler->kind() == Kind::aborts;
}

} // namespace

namespace {

// Hands a code of the program's to the handler of an object (`what`), or ends the job.
template <typename Handle>
void call(Context& context, comm::ErrorHandler* const& place, comm::ErrorHandler::Kind kind,
          Handle handle, const char* procedure, const std::string& what, int code) {
    std::unique_lock lock(context.process.mutex);
    const comm::ErrorHandler* handler = place;
    if (is_fatal(handler)) {
        const ErrorCodes& codes = context.process.error_codes;
        const std::string text =
            std::string(procedure) + " on " + what + ": " +
            (codes.known(code) ? codes.text_of(code) : "code " + std::to_string(code));
        end_job(context, node::JobEnd::fatal_error, codes.class_of(code), text.c_str());
    }
    lock.unlock();
    if (handler->kind() == kind) {
        handler->call(handle, code);
    }
}

// Hands the error of a call to the handler of an object (`what`), or ends the job. Returns the
// code that the call is to return. A handler hears `status_class` in place of MPI_ERR_IN_STATUS.
template <typename Handle>
int raise_on(Context& context, std::uint32_t procedure, comm::ErrorHandler* const& place,
             comm::ErrorHandler::Kind kind, Handle handle, const std::string& what, Error error,
             int status_class = MPI_ERR_IN_STATUS) {
    const std::unique_ptr<ErrorRecord> record(error.take());
    const char* class_name = error_class_name(record->error_class);
    std::string text = std::string(call_name(procedure)) + " on " + what + ": " + record->text;
    if (class_name != nullptr) {
        text += std::string(" (") + class_name + ")";
    }
    std::unique_lock lock(context.process.mutex);
    ErrorCodes& codes = context.process.error_codes;
    const comm::ErrorHandler* handler = place;
    if (is_fatal(handler)) {
        end_job(context, node::JobEnd::fatal_error, codes.class_of(record->error_class),
                text.c_str());
    }
    const int code = codes.instance(record->error_class, std::move(text));
    lock.unlock();
    if (handler->kind() != kind) {
        return code;
    }
    const int heard = code == MPI_ERR_IN_STATUS ? status_class : code;
    const int stored = handler->call(handle, heard);
    return stored == heard ? code : stored;
}

} // namespace

void call_handler(Context& context, comm::Communicator& communicator, int code) {
    call(context, communicator.error_handler, comm::ErrorHandler::Kind::communicator,
         context.communicators.handle_of(communicator), "MPI_Comm_call_errhandler",
         name_of(context, communicator), code);
}

void call_handler(Context& context, comm::Session& session, int code) {
    call(context, session.error_handler, comm::ErrorHandler::Kind::session,
         context.sessions.handle_of(session), "MPI_Session_call_errhandler", "a session", code);
}

void call_handler(Context& context, rma::Window& window, int code) {
    call(context, window.error_handler, comm::ErrorHandler::Kind::window, handle_of(window),
         "MPI_Win_call_errhandler", name_of(window), code);
}

void call_handler(Context& context, io::File* file, int code) {
    call(context, handler_of(context, file), comm::ErrorHandler::Kind::file, handle_of(file),
         "MPI_File_call_errhandler", name_of(file), code);
}

namespace {

// Where errors without an object go: MPI_COMM_SELF since MPI 4.0, MPI_COMM_WORLD before. Programs
// that have only set the latter's handler, as was right then, get what they expect.
comm::Communicator& default_communicator(Context& context) {
    const std::lock_guard lock(context.process.mutex);
    comm::Communicator& self = context.communicators.self();
    comm::Communicator& world = context.communicators.world();
    return self.error_handler == nullptr && world.error_handler != nullptr ? world : self;
}

} // namespace

int raise(Context& context, std::uint32_t call, comm::Communicator* communicator, Error error,
          int status_class) {
    if (communicator == nullptr) {
        communicator = &default_communicator(context);
    }
    return raise_on(context, call, communicator->error_handler,
                    comm::ErrorHandler::Kind::communicator,
                    context.communicators.handle_of(*communicator), name_of(context, *communicator),
                    error, status_class);
}

int raise(Context& context, std::uint32_t call, comm::Session& session, Error error) {
    return raise_on(context, call, session.error_handler, comm::ErrorHandler::Kind::session,
                    context.sessions.handle_of(session), "a session", error);
}

int raise(Context& context, std::uint32_t call, rma::Window& window, Error error) {
    return raise_on(context, call, window.error_handler, comm::ErrorHandler::Kind::window,
                    handle_of(window), name_of(window), error);
}

int raise_on_file(Context& context, std::uint32_t call, io::File* file, Error error,
                  int status_class) {
    return raise_on(context, call, handler_of(context, file), comm::ErrorHandler::Kind::file,
                    handle_of(file), name_of(file), error, status_class);
}

int raise_for_new(std::uint32_t call, comm::ErrorHandler& handler, comm::ErrorHandler::Kind kind,
                  Error error) {
    using Kind = comm::ErrorHandler::Kind;
    if (is_fatal(&handler) || !handler.fits(kind)) {
        return raise_anytime(call, error);
    }
    const std::unique_ptr<ErrorRecord> record(error.take());
    Process& process = find_process();
    std::unique_lock lock(process.mutex);
    const int code = process.error_codes.instance(
        record->error_class, std::string(call_name(call)) + ": " + record->text);
    lock.unlock();
    if (handler.kind() == Kind::communicator) {
        return handler.call(MPI_COMM_NULL, code);
    }
    return handler.kind() == Kind::session ? handler.call(MPI_SESSION_NULL, code) : code;
}

int raise_anytime(std::uint32_t call, Error error) {
    Context* context = process_context();
    if (context != nullptr) {
        return raise(*context, call, nullptr, error);
    }
    const std::unique_ptr<ErrorRecord> record(error.take());
    const char* class_name = error_class_name(record->error_class);
    end_process("%s: %s (%s)", call_name(call), record->text.c_str(),
                class_name != nullptr ? class_name : "an error of the program's own");
}

} // namespace warren::mpi
