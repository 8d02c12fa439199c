// Entry: what every generated entry point does around its call of the core: finds the context,
// checks arguments, takes the lock, and turns an Error into a code through the error handler.
//
// An entry point reads
//     Entry entry(calls::MPI_Send);
//     if (!entry.find("comm", comm, comm_) || !entry.count("count", count) || …) return
//     entry.refuse(); return entry.run(calls::MPI_Send, [&] { return send(entry.context, …); });
// Each check is a comparison or a table look-up; what a failed one says is made out of line, in
// entry.cpp. The communicator is looked up first: later failures belong to it.
// Thread rule: one per call, on its stack.
#pragma once

#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "base/page.hpp"
#include "mpi/calls.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/count_array.hpp"
#include "mpi/entry/failure.hpp"
#include "mpi/entry/release.hpp"

namespace warren::mpi {

// Whether a tag or a source may be a wildcard, beside a number of its range.
enum class Wildcard : bool { refused, allowed };
// Whom the blocks of a buffer are for.
enum class Peers : bool { ranks, neighbours };

[[gnu::cold]] Error no_memory();

// The checks that need no object.
class PlainChecks {
  public:
    bool count(const char* name, MPI_Count value) {
        return value >= 0 || negative(MPI_ERR_COUNT, name, value);
    }
    bool length(const char* name, MPI_Count value) {
        return value >= 0 || negative(MPI_ERR_ARG, name, value);
    }
    bool tag(const char* name, int value, Wildcard wildcard) {
        return value >= 0 || (wildcard == Wildcard::allowed && value == MPI_ANY_TAG) ||
               bad_tag(name, value);
    }
    bool not_null(const char* name, const void* pointer) {
        return pointer != nullptr || null_pointer(name);
    }
    // An array of `elements`.
    bool array(const char* name, const void* pointer, MPI_Count elements) {
        return pointer != nullptr || elements == 0 || null_pointer(name);
    }

  protected:
    explicit PlainChecks(std::uint32_t call) : call_(call) {}

    // Each makes error_ and returns false.
    [[gnu::cold]] bool no_object(int error_class, const char* name, const char* kind,
                                 const void* handle);
    [[gnu::cold]] bool negative(int error_class, const char* name, MPI_Count value);
    [[gnu::cold]] bool bad_tag(const char* name, int value);
    [[gnu::cold]] bool null_pointer(const char* name);

    const std::uint32_t call_;
    Error error_;
};

class Entry : public PlainChecks {
  public:
    explicit Entry(std::uint32_t call) : PlainChecks(call), context(find_context(call)) {}

    Context& context;

    // --- Handles to objects. MPI_ERR_COMM, MPI_ERR_TYPE, …: null handles, freed ones, inventions.
    bool find(const char* name, MPI_Comm handle, comm::Communicator*& object) {
        object = context.communicators.find(handle);
        communicator_ = object;
        return object != nullptr || no_object(MPI_ERR_COMM, name, "communicator", handle);
    }
    bool find_or_null(const char* name, MPI_Comm handle, comm::Communicator*& object) {
        object = nullptr;
        return handle == MPI_COMM_NULL || find(name, handle, object);
    }
    // A second communicator argument: errors go on belonging to the first.
    bool find_other(const char* name, MPI_Comm handle, comm::Communicator*& object) {
        object = context.communicators.find(handle);
        return object != nullptr || no_object(MPI_ERR_COMM, name, "communicator", handle);
    }
    [[gnu::always_inline]] bool find(const char* name, MPI_Datatype handle,
                                     const datatype::Datatype*& object) {
        object = context.datatypes.find(handle);
        return object != nullptr || no_object(MPI_ERR_TYPE, name, "datatype", handle);
    }
    bool find_or_null(const char* name, MPI_Datatype handle, const datatype::Datatype*& object) {
        object = nullptr;
        return handle == MPI_DATATYPE_NULL || find(name, handle, object);
    }
    // A datatype for communication.
    [[gnu::always_inline]] bool find_committed(const char* name, MPI_Datatype handle,
                                               const datatype::Datatype*& object) {
        return find(name, handle, object) && (object->committed || not_committed(name, handle));
    }
    // The alternative to find_committed: a message of nothing, or to or from nobody, may have
    // MPI_DATATYPE_NULL.
    [[gnu::cold]] bool of_nothing(int peer, MPI_Count count, MPI_Datatype handle,
                                  const datatype::Datatype*& object);
    bool find(const char* name, MPI_Group handle, comm::Group*& object) {
        object = context.communicators.find(handle);
        return object != nullptr || no_object(MPI_ERR_GROUP, name, "group", handle);
    }
    bool find(const char* name, MPI_Op handle, coll::Op*& object) {
        object = context.operations.find(handle);
        return object != nullptr || no_object(MPI_ERR_OP, name, "operation", handle);
    }
    bool find(const char* name, MPI_Info handle, comm::Info*& object) {
        object = context.infos.find(handle);
        return object != nullptr || no_object(MPI_ERR_INFO, name, "info object", handle);
    }
    bool find_or_null(const char* name, MPI_Info handle, comm::Info*& object) {
        if (handle == MPI_INFO_NULL) {
            object = nullptr;
            return true;
        }
        return find(name, handle, object);
    }
    bool find(const char* name, MPI_Errhandler handle, comm::ErrorHandler*& object) {
        object = context.error_handlers.find(handle);
        return object != nullptr || no_object(MPI_ERR_ERRHANDLER, name, "error handler", handle);
    }
    bool find(const char* name, MPI_Request handle, message::Request*& object) {
        object = context.messages.requests().held(handle);
        return object != nullptr || no_object(MPI_ERR_REQUEST, name, "request", handle);
    }
    bool find_or_null(const char* name, MPI_Request handle, message::Request*& object) {
        object = context.messages.requests().held(handle);
        return object != nullptr || handle == MPI_REQUEST_NULL ||
               no_object(MPI_ERR_REQUEST, name, "request", handle);
    }
    // Matched messages are the callee's; here only that there is one.
    bool message(const char* name, MPI_Message handle) {
        return handle != MPI_MESSAGE_NULL || no_object(MPI_ERR_REQUEST, name, "message", handle);
    }
    // Failures of the call belong to the session.
    bool find(const char* name, MPI_Session handle, comm::Session*& object) {
        object = context.sessions.find(handle);
        object_ = object;
        belongs_to_ = BelongsTo::session;
        return object != nullptr || no_object(MPI_ERR_SESSION, name, "session", handle);
    }
    // The handler of a communicator to be made, which failures of the call belong to.
    bool find_for_new(const char* name, MPI_Errhandler handle, comm::ErrorHandler*& object) {
        const bool found = find(name, handle, object);
        handler_ = object;
        return found;
    }
    // Failures of the call belong to the window.
    bool find(const char* name, MPI_Win handle, rma::Window*& object) {
        object = context.windows.find(handle);
        object_ = object;
        belongs_to_ = BelongsTo::window;
        return object != nullptr || no_object(MPI_ERR_WIN, name, "window", handle);
    }
    bool find_or_null(const char* name, MPI_Win handle, rma::Window*& object) {
        object = nullptr;
        return handle == MPI_WIN_NULL || find(name, handle, object);
    }
    // Failures of the call belong to its file, or to MPI_FILE_NULL while it has none.
    void of_files() {
        object_ = this; // stands for MPI_FILE_NULL
        belongs_to_ = BelongsTo::file;
    }
    bool find(const char* name, MPI_File handle, io::File*& object) {
        object = context.files.find(handle);
        object_ = object != nullptr ? static_cast<void*>(object) : this;
        return object != nullptr || no_object(MPI_ERR_FILE, name, "file", handle);
    }
    bool find_or_null(const char* name, MPI_File handle, io::File*& object) {
        object = nullptr;
        return handle == MPI_FILE_NULL || find(name, handle, object);
    }
    // The alternative to find_committed for what MPI_NO_OP makes meaningless.
    [[gnu::cold]] bool of_no_op(MPI_Op op, const datatype::Datatype*& object);

    // --- Numbers.
    bool destination(const char* name, int rank, const comm::Communicator* communicator) {
        return static_cast<unsigned>(rank) < static_cast<unsigned>(communicator->peers()) ||
               rank == MPI_PROC_NULL || no_rank(MPI_ERR_RANK, name, rank, *communicator);
    }
    bool source(const char* name, int rank, const comm::Communicator* communicator) {
        return static_cast<unsigned>(rank) < static_cast<unsigned>(communicator->peers()) ||
               rank == MPI_ANY_SOURCE || rank == MPI_PROC_NULL ||
               no_rank(MPI_ERR_RANK, name, rank, *communicator);
    }
    // The root of a collective operation: a rank, or on an intercommunicator also MPI_ROOT and
    // MPI_PROC_NULL.
    bool root(const char* name, int rank, const comm::Communicator* communicator) {
        return static_cast<unsigned>(rank) < static_cast<unsigned>(communicator->peers()) ||
               (communicator->inter() && (rank == MPI_ROOT || rank == MPI_PROC_NULL)) ||
               no_rank(MPI_ERR_ROOT, name, rank, *communicator);
    }
    // The target of a one-sided operation, or of its synchronisation.
    bool target(const char* name, int rank, const rma::Window* window) {
        return static_cast<unsigned>(rank) < static_cast<unsigned>(window->size()) ||
               rank == MPI_PROC_NULL || no_rank(MPI_ERR_RANK, name, rank, window->communicator());
    }
    // --- Memory.
    // A buffer of `count` elements may be null only when nothing of it is touched, or when it is
    // MPI_BOTTOM (the same address) and the datatype names addresses: data in the first page, which
    // nobody has, is a mistake.
    bool buffer(const char* name, const void* base, MPI_Count elements,
                const datatype::Datatype* type) {
        MPI_Count bytes;
        return (reinterpret_cast<std::uintptr_t>(base) > in_place_address ||
                no_memory_there(name, base, elements, type)) &&
               (type->bytes_of(elements, bytes) || too_many(name, elements));
    }
    // Away from a collective operation's root, MPI_IN_PLACE has no meaning.
    bool not_in_place(const char* name, const void* base) {
        return base != MPI_IN_PLACE || in_place(name);
    }

    // In a collective operation a rank must not send `count` elements to itself from the memory
    // where it receives them; MPI_IN_PLACE is for that. (Only overlaps that begin at the same
    // address are detected.)
    bool apart(const void* from, const void* to, MPI_Count count, const datatype::Datatype* sent,
               const datatype::Datatype* received) {
        return from != to || count == 0 || not_same_memory(from, sent, received);
    }
    bool apart(const void* from, const void* to, MPI_Count count, MPI_Datatype sent,
               MPI_Datatype received) {
        return from != to || count == 0 ||
               not_same_memory(from, context.datatypes.find(sent),
                               context.datatypes.find(received));
    }

    // --- The ways out.
    // A check has failed.
    [[gnu::cold, gnu::noinline]] int refuse() { return failed(std::exchange(error_, Error())); }

    // A check of a call that all ranks of a file take part in has failed: the others hear of it.
    [[gnu::cold]] int refuse(io::File& file, io::File::Call call);
    // A check of MPI_File_open has failed.
    [[gnu::cold]] int refuse_open(comm::Communicator& comm);
    // …of a procedure that makes a window.
    [[gnu::cold]] int refuse_window(comm::Communicator& comm);

    // Calls the core under the rank's lock. `call` is call_, as a constant: a member would be
    // loaded.
    template <typename Core>
    int run(std::uint32_t call, Core core) {
        return run(call, core, [] {});
    }

    // …of a collective operation: measure() calls measured(), and is called for a profile only.
    template <typename Core, typename Measure>
    int run(std::uint32_t call, Core core, Measure measure) {
        if (context.rank.lock.guarded()) [[unlikely]] {
            if (enter()) {
                measure();
            }
        }
        context.messages.current_call = call;
        Error error;
        try {
            error = core();
        } catch (const std::bad_alloc&) {
            error = no_memory();
        }
        if (error) [[unlikely]] {
            return failed_under_lock(error);
        }
        if (context.failed_on != nullptr) [[unlikely]] {
            set_failed_on(context, nullptr);
        }
        if (context.rank.lock.guarded()) [[unlikely]] {
            leave();
        }
        return MPI_SUCCESS;
    }

    // For a profile: what this rank brings to a collective operation, or gets where that is all.
    [[gnu::cold]] void measured(Profile::Pattern pattern, int root, std::uint64_t bytes);
    std::uint64_t bytes(MPI_Count count, MPI_Datatype datatype) const;
    // Blocks for all of these.
    std::uint64_t bytes(Peers peers, MPI_Count count, MPI_Datatype datatype) const;
    std::uint64_t bytes(Peers peers, CountArray counts, MPI_Datatype datatype) const;
    std::uint64_t bytes(Peers peers, CountArray counts, const MPI_Datatype datatypes[]) const;
    // The calling rank's own element.
    std::uint64_t own_bytes(CountArray counts, MPI_Datatype datatype) const;

    // Calls a core that neither changes nor awaits anything of the rank.
    template <typename Core>
    int run_unlocked(Core core) {
        Error error = core();
        if (error) [[unlikely]] {
            return failed(error);
        }
        return MPI_SUCCESS;
    }

  private:
    template <typename BytesFor>
    std::uint64_t sum_for(Peers peers, BytesFor bytes_for) const;

    // The begin, which tells whether there is a profile, and the end of a call of a rank whose lock
    // is guarded. (Not cold: gcc would move the end of all calls there.)
    [[gnu::noinline]] bool enter();
    [[gnu::noinline]] void leave();

    [[gnu::cold, gnu::noinline]] int failed(Error error);
    [[gnu::cold, gnu::noinline]] int failed_under_lock(Error error);

    [[gnu::cold]] bool not_committed(const char* name, MPI_Datatype handle);
    [[gnu::cold]] bool no_rank(int error_class, const char* name, int rank,
                               const comm::Communicator& communicator);
    static constexpr std::uintptr_t in_place_address = 1; // MPI_IN_PLACE
    bool no_memory_there(const char* name, const void* base, MPI_Count elements,
                         const datatype::Datatype* type) {
        if (base == MPI_IN_PLACE) {
            return in_place(name);
        }
        return elements == 0 || type->size == 0 ||
               type->true_lower_bound >= MPI_Aint{first_address} || type->true_lower_bound < 0 ||
               null_buffer(name, elements);
    }
    [[gnu::cold]] bool null_buffer(const char* name, MPI_Count elements);
    [[gnu::cold]] bool too_many(const char* name, MPI_Count elements);
    [[gnu::cold]] bool in_place(const char* name);
    [[gnu::cold]] bool not_same_memory(const void* place, const datatype::Datatype* sent,
                                       const datatype::Datatype* received);

    comm::Communicator* communicator_ = nullptr;
    // A session, window or file that failures of the call belong to, and which of them it is: that
    // is set with it only, since every call pays for what is set beforehand.
    void* object_ = nullptr;
    enum class BelongsTo : std::uint8_t { session, window, file };
    BelongsTo belongs_to_;
    comm::ErrorHandler* handler_ = nullptr;
    Profile::Call profiled_; // set by enter() if there is a profile
};

// The entry of a call that may come at any time: before MPI_Init, after MPI_Finalize.
class AnytimeEntry : public PlainChecks {
  public:
    explicit AnytimeEntry(std::uint32_t call) : PlainChecks(call), process(find_process()) {}

    Process& process;

    bool find(const char* name, MPI_Info handle, comm::Info*& object) {
        const std::lock_guard lock(process.mutex);
        object = process.infos.find(handle);
        return object != nullptr || no_object(MPI_ERR_INFO, name, "info object", handle);
    }
    bool find_or_null(const char* name, MPI_Info handle, comm::Info*& object) {
        object = nullptr;
        return handle == MPI_INFO_NULL || find(name, handle, object);
    }
    bool find(const char* name, MPI_Errhandler handle, comm::ErrorHandler*& object) {
        const std::lock_guard lock(process.mutex);
        object = process.error_handlers.find(handle);
        return object != nullptr || no_object(MPI_ERR_ERRHANDLER, name, "error handler", handle);
    }

    // The handler of a session to be made, which failures of the call belong to.
    bool find_for_new(const char* name, MPI_Errhandler handle, comm::ErrorHandler*& object) {
        const bool found = find(name, handle, object);
        handler_ = object;
        return found;
    }

    [[gnu::cold, gnu::noinline]] int refuse() { return failed(std::exchange(error_, Error())); }

    template <typename Core>
    int run(Core core) {
        std::unique_lock lock(process.mutex);
        Error error;
        try {
            error = core();
        } catch (const std::bad_alloc&) {
            error = no_memory();
        }
        lock.unlock();
        return error ? failed(error) : MPI_SUCCESS;
    }

    // Calls a core that looks after itself.
    template <typename Core>
    int run_unlocked(Core core) {
        Error error = core();
        return error ? failed(error) : MPI_SUCCESS;
    }

  private:
    [[gnu::cold, gnu::noinline]] int failed(Error error);

    comm::ErrorHandler* handler_ = nullptr;
};

// Narrows a result to the int of a call's original form: MPI_UNDEFINED when it does not fit, or an
// error in calls that have no such value.
inline int narrow_or_undefined(MPI_Count value) {
    return value == static_cast<int>(value) ? static_cast<int>(value) : MPI_UNDEFINED;
}
Error narrow(const char* name, MPI_Count value, int* result);

// The datatype that stands for one without meaning (the send side under MPI_IN_PLACE).
inline const datatype::Datatype* unused_type() {
    return datatype::predefined(MPI_BYTE);
}

// A rank's part of a collective operation's buffer, by its place in elements or in bytes.
inline const void* part_at(const void* base, MPI_Count bytes) {
    return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(base) +
                                         static_cast<std::uintptr_t>(bytes));
}
inline const void* part_at(const void* base, MPI_Count elements, const datatype::Datatype* type) {
    return part_at(base, static_cast<MPI_Count>(static_cast<std::uint64_t>(elements) *
                                                static_cast<std::uint64_t>(type->extent)));
}

// Whether the calling rank is the root of a collective operation.
inline bool is_root(const comm::Communicator* communicator, int root) {
    return communicator->inter() ? root == MPI_ROOT : root == communicator->rank();
}

// Whether the calling rank sends to, or receives from, the root: all of an intracommunicator do,
// and the group of an intercommunicator that the root is not in.
inline bool is_member(const comm::Communicator* communicator, int root) {
    return !communicator->inter() || root >= 0;
}

// A procedure that is not implemented.
[[gnu::cold]] int unsupported(std::uint32_t call, MPI_Comm communicator = MPI_COMM_NULL);

} // namespace warren::mpi
