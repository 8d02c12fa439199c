#include "mpi/entry/communicator_info.hpp"

#include <memory>
#include <mutex>
#include <string>

#include "mpi/entry/context.hpp"
#include "mpi/entry/info.hpp"
#include "mpi/entry/memory_kinds.hpp"

namespace warren::mpi {

Error comm_set_info(Context& context, comm::Communicator& comm, comm::Info& info) {
    const std::lock_guard lock(context.process.mutex);
    if (comm.info == nullptr) {
        comm.info = new comm::Info();
    }
    for (int i = 0; i < info.keys(); ++i) {
        comm.info->set(info.key(i), *info.find(info.key(i)));
    }
    return {};
}

Error comm_get_info(Context& context, comm::Communicator& comm, MPI_Info* info_used) {
    const std::lock_guard lock(context.process.mutex);
    comm::Info info = comm.info != nullptr ? *comm.info : comm::Info();
    const comm::Session* session = context.sessions.find(comm.session);
    info.set(memory_kinds_key,
             session != nullptr ? session->memory_kinds : granted_memory_kinds(""));
    const std::string* asserted = info.find(memory_kinds_assertion);
    if (asserted != nullptr && !has_memory_kinds(*asserted)) {
        info.remove(memory_kinds_assertion);
    }
    return make_info(context.process, &info, info_used);
}

Error comm_get_parent(Context& context, MPI_Comm* parent) {
    // (Null again when the program has freed it.)
    *parent =
        context.communicators.find(context.parent) != nullptr ? context.parent : MPI_COMM_NULL;
    return {};
}

} // namespace warren::mpi
