// Intercommunicators: how they are made, from two intracommunicators and from others of their kind.

#include <algorithm>
#include <vector>

#include "mpi/coll/collectives.hpp"
#include "mpi/entry/communicators.hpp"
#include "mpi/entry/new_communicator.hpp"
#include "mpi/entry/other_worlds.hpp"
#include "mpi/entry/release.hpp"

namespace warren::mpi {

namespace {

// The message that the leaders exchange before their groups: the number of members, whose names
// follow, and the new communicator's properties (the second leader doesn't know them yet).
struct Introduction {
    std::int32_t members; // 0: the leader has found a mistake
    std::int32_t first;   // the listening group is the first of the two
    coll::NewCommunicator agreed;
};

using Processes = std::vector<node::ProcessName>;

message::Buffer bytes_of(Processes& processes) {
    return coll::bytes_of(processes.data(),
                          static_cast<MPI_Count>(processes.size() * sizeof(node::ProcessName)));
}

Error send_introduction(const coll::Channel& channel, Introduction own, Processes& processes,
                        int to) {
    if (Error error = channel.send(coll::bytes_of(&own, sizeof own), to)) {
        return error;
    }
    return channel.send(bytes_of(processes), to);
}

Error receive_introduction(const coll::Channel& channel, Introduction& remote, Processes& processes,
                           int from) {
    if (Error error = channel.receive(coll::bytes_of(&remote, sizeof remote), from)) {
        return error;
    }
    constexpr std::int64_t most_members = 1 << 24;
    if (remote.members < 0 || remote.members > most_members) {
        return fail(MPI_ERR_OTHER, "the remote leader names %lld processes",
                    static_cast<long long>(remote.members));
    }
    processes.resize(static_cast<std::size_t>(remote.members));
    return channel.receive(bytes_of(processes), from);
}

// The leaders exchange their groups and agree.
Error introduce(Context& context, const comm::Communicator& local_comm,
                const comm::Communicator* peer, int remote_leader, int tag, Introduction& remote,
                Processes& processes) {
    if (peer == nullptr) {
        return fail(MPI_ERR_COMM, "peer_comm is no communicator");
    }
    if (remote_leader < 0 || remote_leader >= peer->peers()) {
        return fail(MPI_ERR_RANK, "remote_leader = %d is not in 0 … %d", remote_leader,
                    peer->peers() - 1);
    }
    const Processes leaders = names_of(
        context, {context.communicators.own_world().endpoint(), peer->endpoint(remote_leader)});
    if (local_comm.map().rank_of(peer->endpoint(remote_leader)) != MPI_UNDEFINED) {
        return fail(MPI_ERR_RANK, "remote_leader = %d is in the local group", remote_leader);
    }
    std::vector<std::uint32_t> endpoints;
    endpoints.reserve(static_cast<std::size_t>(local_comm.size()));
    for (int rank = 0; rank < local_comm.size(); ++rank) {
        endpoints.push_back(local_comm.endpoint(rank));
    }
    Processes members = names_of(context, endpoints);
    Introduction introduction{.members = local_comm.size(), .first = 0, .agreed = {}};
    const coll::Channel channel(context.messages, *peer, coll::Tag::create_inter,
                                tag % static_cast<int>(coll::Tag::create_inter));
    // One hears first and the other speaks first. The first group is the one whose leader comes
    // first by its name; it takes the contexts.
    if (leaders[0] < leaders[1]) {
        if (Error error = receive_introduction(channel, remote, processes, remote_leader)) {
            return error;
        }
        if (Error error = endpoints_of(context, processes, endpoints)) {
            return error;
        }
        const bool spans = coll::spans_nodes(context.rank, local_comm.map()) ||
                           coll::spans_nodes(context.rank, comm::RankMap::of(endpoints));
        introduction.agreed = coll::take_new(context.rank, local_comm.size() + remote.members,
                                             coll::Kind::inter, spans);
        remote.agreed = introduction.agreed;
        remote.first = 1;
        return send_introduction(channel, introduction, members, remote_leader);
    }
    if (Error error = send_introduction(channel, introduction, members, remote_leader)) {
        return error;
    }
    return receive_introduction(channel, remote, processes, remote_leader);
}

// The two sides of an operation's outcome over both groups.
struct Sides {
    std::vector<int> local;  // ranks of the local group
    std::vector<int> remote; // ranks of the remote group
};

Sides sides_of(const comm::Communicator& inter, const std::vector<int>& united_members) {
    const int local_begin = inter.first() ? 0 : inter.peers();
    const int remote_begin = inter.first() ? inter.size() : 0;
    Sides sides;
    for (const int member : united_members) {
        const int local = member - local_begin;
        if (local >= 0 && local < inter.size()) {
            sides.local.push_back(local);
        } else {
            sides.remote.push_back(member - remote_begin);
        }
    }
    return sides;
}

comm::RankMap select(const comm::RankMap& map, const std::vector<int>& ranks) {
    return map.select(ranks.data(), static_cast<int>(ranks.size()));
}

} // namespace

Error intercomm_create(Context& context, comm::Communicator& local_comm, int local_leader,
                       MPI_Comm peer_comm, int remote_leader, int tag, MPI_Comm* newintercomm) {
    *newintercomm = MPI_COMM_NULL;
    if (local_comm.inter()) {
        return fail(MPI_ERR_COMM, "local_comm is an intercommunicator");
    }
    if (local_leader < 0 || local_leader >= local_comm.size()) {
        return fail(MPI_ERR_RANK, "local_leader = %d is not in 0 … %d", local_leader,
                    local_comm.size() - 1);
    }
    comm::Communicator* made = nullptr;
    if (Error error = connect(context, local_comm, local_leader,
                              context.communicators.find(peer_comm), remote_leader, tag, made)) {
        return error;
    }
    inherit(context, local_comm, *made);
    *newintercomm = context.communicators.handle_of(*made);
    return {};
}

Error connect(Context& context, comm::Communicator& local_comm, int local_leader,
              const comm::Communicator* peer, int remote_leader, int tag,
              comm::Communicator*& made) {
    Introduction remote{.members = 0, .first = 0, .agreed = {}};
    Processes processes;
    Error failed;
    if (local_comm.rank() == local_leader) {
        failed = introduce(context, local_comm, peer, remote_leader, tag, remote, processes);
        if (failed) {
            remote.members = 0;
        }
    }
    coll::Collectives local(context.messages, local_comm);
    Error told = local.bcast(coll::bytes_of(&remote, sizeof remote), local_leader);
    if (failed) {
        told.drop();
        return failed;
    }
    if (told) {
        return told;
    }
    if (remote.members == 0) {
        return fail(MPI_ERR_OTHER, "the local leader has found a mistake");
    }
    processes.resize(static_cast<std::size_t>(remote.members));
    if (Error error = local.bcast(bytes_of(processes), local_leader)) {
        return error;
    }
    if (remote.agreed.context == 0) {
        return fail(MPI_ERR_NO_MEM, "no number for another communicator");
    }
    std::vector<std::uint32_t> endpoints;
    if (Error error = endpoints_of(context, processes, endpoints)) {
        return error;
    }
    return make_agreed_inter(context, local_comm.map(), comm::RankMap::of(endpoints),
                             remote.first != 0, remote.agreed, made);
}

Error intercomm_merge(Context& context, comm::Communicator& intercomm, int high,
                      MPI_Comm* newintracomm) {
    *newintracomm = MPI_COMM_NULL;
    if (!intercomm.inter()) {
        return fail(MPI_ERR_COMM, "the communicator is not an intercommunicator");
    }
    // A split of all by `high`; the first group goes first when both say the same.
    comm::Communicator united = comm::united_of(intercomm);
    std::vector<int> members;
    if (Error error = coll::find_members(context.messages, united, 0, high != 0 ? 1 : 0, members)) {
        return error;
    }
    comm::Communicator* made = nullptr;
    if (Error error =
            make_of_members(context, united, members,
                            coll::Channel(context.messages, united, coll::Tag::agreement), made)) {
        return error;
    }
    inherit(context, intercomm, *made);
    *newintracomm = context.communicators.handle_of(*made);
    return {};
}

Error split_inter(Context& context, comm::Communicator& comm, int color, int key,
                  MPI_Comm* newcomm) {
    comm::Communicator united = comm::united_of(comm);
    std::vector<int> members;
    if (Error error = coll::find_members(context.messages, united, color, key, members)) {
        return error;
    }
    if (color < 0 && color != MPI_UNDEFINED) {
        return fail(MPI_ERR_ARG, "color %d is neither ≥ 0 nor MPI_UNDEFINED", color);
    }
    const Sides sides = sides_of(comm, members);
    // A colour that only one side has makes no communicator.
    if (sides.local.empty() || sides.remote.empty()) {
        return {};
    }
    coll::NewCommunicator agreed;
    if (Error error =
            coll::agree_among(coll::Channel(context.messages, united, coll::Tag::agreement),
                              members, coll::Kind::inter, agreed)) {
        return error;
    }
    comm::Communicator* made = nullptr;
    if (Error error =
            make_agreed_inter(context, select(comm.map(), sides.local),
                              select(comm.peer_map(), sides.remote), comm.first(), agreed, made)) {
        return error;
    }
    inherit(context, comm, *made);
    *newcomm = context.communicators.handle_of(*made);
    return {};
}

} // namespace warren::mpi
