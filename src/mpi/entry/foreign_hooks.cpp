#include "mpi/entry/foreign_hooks.hpp"

#include <mutex>
#include <new>

#include "mpi/coll/schedule.hpp"
#include "mpi/comm/topology.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/tool_calls.hpp"

namespace warren::mpi {

namespace {

coll::Op::Function adapt_op(MPI_Op handle, coll::Op::Adapter adapter, coll::Op::Function function) {
    Context* context = process_context();
    coll::Op* op = context != nullptr ? context->operations.find(handle) : nullptr;
    return op != nullptr && !op->predefined() ? op->adapt(adapter, function) : nullptr;
}

void adapt_errhandler(MPI_Errhandler handle, comm::ErrorHandler::Adapter adapter) {
    Process& process = find_process();
    const std::lock_guard lock(process.mutex);
    comm::ErrorHandler* handler = process.error_handlers.find(handle);
    if (handler != nullptr && !handler->predefined()) {
        handler->adapt(adapter);
    }
}

void adapt_keyval(int keyval, comm::AttributeOwner owner, comm::Keyval::CopyAdapter copy_adapter,
                  comm::Keyval::DeleteAdapter delete_adapter) {
    Context* context = process_context();
    if (context == nullptr) {
        return;
    }
    const std::lock_guard lock(context->rank.lock);
    if (comm::Keyval* found = context->keyvals.find(keyval, owner)) {
        found->copy_adapter = copy_adapter;
        found->delete_adapter = delete_adapter;
    }
}

bool make_number(MPI_Aint number, void** address) {
    *address = nullptr;
    if (Context* context = process_context()) {
        const std::lock_guard lock(context->rank.lock);
        try {
            *address = context->keyvals.numbers().make(number);
        } catch (const std::bad_alloc&) {
            return false;
        }
    }
    return true;
}

void free_number(void* address) {
    if (Context* context = process_context()) {
        const std::lock_guard lock(context->rank.lock);
        context->keyvals.numbers().free_unused(address);
    }
}

bool number_at(void* value, MPI_Aint* number) {
    Context* context = process_context();
    if (context == nullptr) {
        return false;
    }
    const std::lock_guard lock(context->rank.lock);
    const MPI_Aint* found = context->keyvals.numbers().find(value);
    if (found != nullptr) {
        *number = *found;
    }
    return found != nullptr;
}

void adapt_event(MPI_T_event_registration handle, int (*number)(int)) {
    if (tool::Tool* its = find_tool()) {
        tool::Tool::Guard guard(*its);
        if (tool::Registration* found = guard.events().find(handle)) {
            found->safety_number = number;
        }
    }
}

bool hold_copy(MPI_Request handle, const SectionCopy& copy) {
    Context& context = *process_context(); // it has just made the request
    const std::lock_guard lock(context.rank.lock);
    message::Request* request = context.messages.requests().held(handle);
    if (request->operation != message::Operation::collective ||
        (request->complete && !request->persistent)) {
        return false;
    }
    static_cast<coll::Schedule*>(request->attachment)
        ->hold_copy({copy.section, 1, context.datatypes.find(copy.layout)},
                    {copy.copy, copy.bytes, context.datatypes.find(MPI_BYTE)},
                    {.fill = request->persistent, .goes_back = copy.goes_back});
    return true;
}

const comm::Communicator* communicator(MPI_Comm comm) {
    Context* context = process_context();
    return context != nullptr ? context->communicators.find(comm) : nullptr;
}

int peers(MPI_Comm comm) {
    const comm::Communicator* found = communicator(comm);
    return found != nullptr ? found->peers() : 0;
}

int neighbours_in(MPI_Comm comm) {
    const comm::Communicator* found = communicator(comm);
    return found != nullptr && found->topology != nullptr
               ? static_cast<int>(found->topology->sources.size())
               : 0;
}

int neighbours_out(MPI_Comm comm) {
    const comm::Communicator* found = communicator(comm);
    return found != nullptr && found->topology != nullptr
               ? static_cast<int>(found->topology->destinations.size())
               : 0;
}

Context* const* context_place() {
    return &own_context;
}

bool has_representation(const char* name, const void* extra_state) {
    Context* context = process_context();
    if (context == nullptr || name == nullptr) {
        return false;
    }
    const std::lock_guard lock(context->rank.lock);
    const io::Representation* found = context->representations.find(name);
    return found != nullptr && found->extra_state == extra_state;
}

} // namespace

} // namespace warren::mpi

extern "C" __attribute__((
    visibility("default"))) constexpr warren::mpi::ForeignHooks warren_foreign_hooks = {
    warren::mpi::adapt_op,
    warren::mpi::adapt_errhandler,
    warren::mpi::adapt_keyval,
    warren::mpi::make_number,
    warren::mpi::free_number,
    warren::mpi::number_at,
    warren::mpi::adapt_event,
    warren::mpi::hold_copy,
    warren::mpi::peers,
    warren::mpi::neighbours_in,
    warren::mpi::neighbours_out,
    warren::mpi::context_place,
    warren::datatype::short_sizes.data(),
    warren::mpi::has_representation};
