// MPI_Comm_idup: the agreement of MPI_Comm_dup as messages under way.
//
// The duplicate is there at once, with its attributes as they are now; what it lacks until the
// request completes is its contexts, which come down a binomial tree over the ranks (of both groups
// of an intercommunicator).

#include <vector>

#include "mpi/entry/communicators.hpp"
#include "mpi/entry/new_communicator.hpp"
#include "mpi/entry/release.hpp"
#include "mpi/entry/requests.hpp"

namespace warren::mpi {

using message::Request;

namespace {

struct Duplication {
    Context& context;
    comm::Communicator* made; // null: nobody waits for it any more
    coll::NewCommunicator agreed;
    Request* receive = nullptr; // null at the root
    bool sending = false;
    message::Envelope envelope;          // of what is sent
    std::vector<std::uint32_t> children; // endpoints
    std::vector<Request*> sends;
    int error_class = MPI_SUCCESS;
};

message::Buffer buffer_of(Duplication& duplication) {
    return coll::bytes_of(&duplication.agreed, sizeof duplication.agreed);
}

bool start_sends(Duplication& duplication) {
    message::Engine& engine = duplication.context.messages;
    for (const std::uint32_t child : duplication.children) {
        Request* send = engine.make();
        if (send == nullptr) {
            return false;
        }
        message::Engine::prepare_send(*send, message::Operation::send, buffer_of(duplication),
                                      child, duplication.envelope);
        if (Error error = engine.start(*send)) {
            error.drop();
            engine.discard(*send);
            return false;
        }
        duplication.sends.push_back(send);
    }
    return true;
}

bool step(Request& request) {
    auto& duplication = *static_cast<Duplication*>(request.attachment);
    if (!duplication.sending) {
        if (duplication.receive != nullptr && !duplication.receive->complete) {
            return false;
        }
        duplication.sending = true;
        if (!start_sends(duplication)) {
            duplication.error_class = MPI_ERR_NO_MEM;
        }
    }
    for (const Request* send : duplication.sends) {
        if (!send->complete) {
            return false;
        }
    }
    if (duplication.agreed.context == 0) {
        duplication.error_class = MPI_ERR_NO_MEM;
    } else if (duplication.made == nullptr) {
        coll::give_back(duplication.context.rank, duplication.agreed);
    } else {
        duplication.context.communicators.set_contexts(
            *duplication.made, duplication.agreed.context, duplication.agreed.local_context);
        coll::expect_place(duplication.context.rank, *duplication.made);
    }
    request.outcome.error_class = duplication.error_class;
    return true;
}

void end(Request& request) {
    auto* duplication = static_cast<Duplication*>(request.attachment);
    Context& context = duplication->context;
    if (duplication->receive != nullptr) {
        context.messages.discard(*duplication->receive);
    }
    for (Request* send : duplication->sends) {
        context.messages.discard(*send);
    }
    if (duplication->made != nullptr) {
        release(context, *duplication->made);
    }
    delete duplication;
    release(context, *static_cast<comm::Communicator*>(request.communicator));
}

// Begins the agreement of all ranks of `group`, which stands for `comm` or for both of its groups.
Error start_agreement(Context& context, comm::Communicator& comm, const comm::Communicator& group,
                      coll::Kind kind, comm::Communicator& made, Request*& request) {
    message::Engine& engine = context.messages;
    request = engine.make();
    if (request == nullptr) {
        return no_memory_for_request();
    }
    auto* duplication = new Duplication{.context = context,
                                        .made = &made,
                                        .agreed = {},
                                        .envelope = {},
                                        .children = {},
                                        .sends = {}};
    const int rank = group.rank();
    const int size = group.size();
    // Duplications of a communicator that are under way at once have different tags.
    duplication->envelope = {.context = group.collective_context(),
                             .source = rank,
                             .tag = static_cast<int>(coll::Tag::duplicate) +
                                    static_cast<int>(comm.duplications++ % (1u << 26))};
    int distance = 1;
    while (distance < size && (rank & distance) == 0) {
        distance *= 2;
    }
    for (int step_down = distance / 2; step_down > 0; step_down /= 2) {
        if (rank + step_down < size) {
            duplication->children.push_back(group.endpoint(rank + step_down));
        }
    }
    request->operation = message::Operation::combined;
    request->envelope = duplication->envelope;
    request->buffer = {};
    request->attachment = duplication;
    bind(context, *request, comm);
    request->stepping.step = step;
    request->release = end;
    context.communicators.retain(made);
    if (rank == 0) {
        duplication->agreed =
            coll::take_new(context.rank, size, kind, coll::spans_nodes(context.rank, group.map()));
    } else {
        duplication->receive = engine.make();
        if (duplication->receive == nullptr) {
            engine.discard(*request);
            return no_memory_for_request();
        }
        message::Envelope from = duplication->envelope;
        from.source = rank - distance;
        message::Engine::prepare_receive(*duplication->receive, buffer_of(*duplication), from);
        if (Error error = engine.start(*duplication->receive)) {
            engine.discard(*request);
            return error;
        }
    }
    engine.start_stepping(*request);
    return {};
}

} // namespace

Error comm_idup_with_info(Context& context, comm::Communicator& comm, comm::Info* info,
                          MPI_Comm* newcomm, MPI_Request* handle) {
    *newcomm = MPI_COMM_NULL;
    const coll::NewCommunicator later;
    comm::Communicator* made = nullptr;
    Error error = comm.inter() ? make_agreed_inter(context, comm.map(), comm.peer_map(),
                                                   comm.first(), later, made)
                               : make_agreed(context, comm.map(), later, made);
    if (error) {
        return error;
    }
    Request* request = nullptr;
    if (comm.inter()) {
        const comm::Communicator united = comm::united_of(comm);
        error = start_agreement(context, comm, united, coll::Kind::inter, *made, request);
    } else {
        error = start_agreement(context, comm, comm, coll::Kind::intra, *made, request);
    }
    if (error) {
        give_up(context, *made);
        return error;
    }
    made->topology = comm.topology;
    if (info != nullptr) {
        made->info = new comm::Info(*info);
    }
    if (Error failed = duplicate_attached(context, comm, *made, false)) {
        // The others go on, and this rank passes on to them what it hears.
        release_attached(context, *made).drop();
        auto* duplication = static_cast<Duplication*>(request->attachment);
        release(context, *std::exchange(duplication->made, nullptr));
        give_up(context, *made);
        context.messages.discard(*request);
        return failed;
    }
    // Not before the next progress: the program may have nothing to wait for yet.
    *newcomm = context.communicators.handle_of(*made);
    *handle = request_handle(*request);
    return {};
}

Error comm_idup(Context& context, comm::Communicator& comm, MPI_Comm* newcomm,
                MPI_Request* request) {
    return comm_idup_with_info(context, comm, nullptr, newcomm, request);
}

} // namespace warren::mpi
