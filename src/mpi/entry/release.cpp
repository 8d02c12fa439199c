#include "mpi/entry/release.hpp"

#include <new>

#include "mpi/coll/agreement.hpp"
#include "mpi/coll/levels.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/other_worlds.hpp"

namespace warren::mpi {

Error release_attached(Context& context, comm::Communicator& communicator) {
    if (communicator.attributes != nullptr) {
        const MPI_Comm handle = context.communicators.handle_of(communicator);
        if (Error error = communicator.attributes->clear(context.rank.lock, handle)) {
            return error;
        }
        delete std::exchange(communicator.attributes, nullptr);
    }
    delete std::exchange(communicator.info, nullptr);
    return {};
}

void end_communicator(Context& context, comm::Communicator& communicator) {
    if (communicator.error_handler != nullptr) {
        const std::lock_guard lock(context.process.mutex);
        context.error_handlers.release(*std::exchange(communicator.error_handler, nullptr));
    }
    coll::end_levels(context.rank, communicator);
    release_members(context, communicator);
    const coll::NewCommunicator contexts = {
        communicator.context(), communicator.inter() ? communicator.local().context() : 0};
    coll::give_back(context.rank, contexts);
    if (communicator.is_disconnected()) {
        coll::give_back_connecting(context.rank, contexts);
    }
    context.communicators.destroy(communicator);
}

void set_failed_on(Context& context, comm::Communicator* communicator, int error_class) {
    context.failed_class = error_class;
    if (communicator != nullptr) {
        context.communicators.retain(*communicator);
    }
    if (comm::Communicator* before = std::exchange(context.failed_on, communicator)) {
        release(context, *before);
    }
}

Error duplicate_attached(Context& context, const comm::Communicator& from, comm::Communicator& to,
                         bool copy_info) {
    inherit(context, from, to);
    if (copy_info && from.info != nullptr) {
        to.info = new comm::Info(*from.info);
    }
    if (from.attributes == nullptr || from.attributes->empty()) {
        return {};
    }
    to.attributes = new comm::Attributes(context.keyvals);
    return to.attributes->copy_from(context.rank.lock, context.communicators.handle_of(from),
                                    *from.attributes);
}

void inherit(Context& context, const comm::Communicator& from, comm::Communicator& to) {
    to.session = from.session;
    to.error_handler = from.error_handler;
    if (to.error_handler != nullptr) {
        const std::lock_guard lock(context.process.mutex);
        context.error_handlers.retain(*to.error_handler);
    }
}

} // namespace warren::mpi
