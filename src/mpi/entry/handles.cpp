#include "mpi/entry/handles.hpp"

#include <mutex>

#include "mpi/entry/context.hpp"

namespace warren::mpi {

namespace {

template <typename Handle>
int to_integer(Handle handle) {
    return static_cast<int>(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle)));
}

template <typename Handle>
Handle predefined(int integer) {
    return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(integer));
}

// Handles below first_handle are the standard's and mean themselves. Others are looked up, if
// there is where to look.
template <typename Handle, typename LookUp>
Handle from_integer(int integer, Handle null, LookUp look_up) {
    if (integer >= 0 && static_cast<std::uint32_t>(integer) < first_handle) {
        return predefined<Handle>(integer);
    }
    Context* context = process_context();
    if (context == nullptr) {
        return null;
    }
    const std::lock_guard lock(context->rank.lock);
    const auto found = static_cast<Handle>(look_up(*context, integer));
    return found != nullptr ? found : null;
}

// from_integer for objects that live outside of MPI_Init and MPI_Finalize.
template <typename Handle, typename LookUp>
Handle from_integer_anytime(int integer, LookUp look_up) {
    if (integer >= 0 && static_cast<std::uint32_t>(integer) < first_handle) {
        return predefined<Handle>(integer);
    }
    Process& process = find_process();
    const std::lock_guard lock(process.mutex);
    return look_up(process, integer);
}

} // namespace

int comm_toint(MPI_Comm comm) {
    return to_integer(comm);
}
int errhandler_toint(MPI_Errhandler errhandler) {
    return to_integer(errhandler);
}
int file_toint(MPI_File file) {
    return to_integer(file);
}
int group_toint(MPI_Group group) {
    return to_integer(group);
}
int info_toint(MPI_Info info) {
    return to_integer(info);
}
int message_toint(MPI_Message message) {
    return to_integer(message);
}
int op_toint(MPI_Op op) {
    return to_integer(op);
}
int request_toint(MPI_Request request) {
    return to_integer(request);
}
int session_toint(MPI_Session session) {
    return to_integer(session);
}
int type_toint(MPI_Datatype datatype) {
    return to_integer(datatype);
}
int win_toint(MPI_Win win) {
    return to_integer(win);
}

MPI_Comm comm_fromint(int comm) {
    return from_integer(comm, MPI_COMM_NULL, [](Context& context, int integer) {
        return context.communicators.communicator_of_integer(integer);
    });
}

MPI_Errhandler errhandler_fromint(int errhandler) {
    return from_integer_anytime<MPI_Errhandler>(errhandler, [](Process& process, int integer) {
        return process.error_handlers.of_integer(integer);
    });
}

MPI_File file_fromint(int file) {
    return from_integer(file, MPI_FILE_NULL, [](Context& context, int integer) {
        return static_cast<MPI_File>(
            context.files.from_integer(static_cast<std::uint32_t>(integer)));
    });
}

MPI_Group group_fromint(int group) {
    return from_integer(group, MPI_GROUP_NULL, [](Context& context, int integer) {
        return context.communicators.group_of_integer(integer);
    });
}

MPI_Info info_fromint(int info) {
    return from_integer_anytime<MPI_Info>(
        info, [](Process& process, int integer) { return process.infos.of_integer(integer); });
}

MPI_Message message_fromint(int message) {
    return from_integer(message, MPI_MESSAGE_NULL, [](Context& context, int integer) {
        return static_cast<MPI_Message>(
            context.messages.matched().from_integer(static_cast<std::uint32_t>(integer)));
    });
}

MPI_Op op_fromint(int op) {
    return from_integer(op, MPI_OP_NULL, [](Context& context, int integer) {
        return context.operations.of_integer(integer);
    });
}

MPI_Request request_fromint(int request) {
    return from_integer(request, MPI_REQUEST_NULL, [](Context& context, int integer) {
        return static_cast<MPI_Request>(
            context.messages.requests().from_integer(static_cast<std::uint32_t>(integer)));
    });
}

MPI_Session session_fromint(int session) {
    return from_integer(session, MPI_SESSION_NULL, [](Context& context, int integer) {
        return context.sessions.of_integer(integer);
    });
}

MPI_Datatype type_fromint(int datatype) {
    return from_integer(datatype, MPI_DATATYPE_NULL, [](Context& context, int integer) {
        return context.datatypes.from_integer(static_cast<std::uint32_t>(integer));
    });
}

MPI_Win win_fromint(int win) {
    return from_integer(win, MPI_WIN_NULL, [](Context& context, int integer) {
        return static_cast<MPI_Win>(
            context.windows.from_integer(static_cast<std::uint32_t>(integer)));
    });
}

} // namespace warren::mpi
