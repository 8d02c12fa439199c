#include "mpi/entry/communicators.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "mpi/coll/agreement.hpp"
#include "mpi/coll/collectives.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/new_communicator.hpp"
#include "mpi/entry/other_worlds.hpp"
#include "mpi/entry/release.hpp"

namespace warren::mpi {

namespace {

Error give(Context& context, comm::RankMap map, MPI_Session session, MPI_Group* newgroup) {
    *newgroup = context.communicators.insert_group(std::move(map), session);
    return *newgroup != MPI_GROUP_NULL ? Error()
                                       : fail(MPI_ERR_NO_MEM, "no memory for another group");
}

Error no_member(int rank) {
    return fail(MPI_ERR_GROUP, "rank %d of the group is not in the communicator", rank);
}

// The members of a group as ranks of a communicator that must have them all.
Error members_of(const comm::Communicator& comm, const comm::Group& group,
                 std::vector<int>& members) {
    members.resize(static_cast<std::size_t>(group.size()));
    for (int rank = 0; rank < group.size(); ++rank) {
        const int member = comm.map().rank_of(group.map[rank]);
        if (member == MPI_UNDEFINED) {
            return no_member(rank);
        }
        members[static_cast<std::size_t>(rank)] = member;
    }
    return {};
}

// The first member of a group as a rank of the communicator, which must have all members.
// MPI_UNDEFINED for an empty group.
Error first_member_of(const comm::Communicator& comm, const comm::Group& group, int& first) {
    first = group.size() > 0 ? comm.map().rank_of(group.map[0]) : MPI_UNDEFINED;
    for (int rank = 0; rank < group.size(); ++rank) {
        if (comm.map().rank_of(group.map[rank]) == MPI_UNDEFINED) {
            return no_member(rank);
        }
    }
    return {};
}

Error no_intercommunicator() {
    return fail(MPI_ERR_COMM, "the communicator is not an intercommunicator");
}

Error give(Context& context, Error error, comm::Communicator*& made, MPI_Comm* newcomm) {
    if (!error && made != nullptr) {
        *newcomm = context.communicators.handle_of(*made);
    }
    return error;
}

} // namespace

void give_up(Context& context, comm::Communicator& comm) {
    if (comm.send_buffer != nullptr) {
        comm.send_buffer->abandon(context.messages);
    }
    context.communicators.hide(comm);
    release(context, comm);
}

Error make_agreed(Context& context, const comm::RankMap& map, const coll::NewCommunicator& agreed,
                  comm::Communicator*& made) {
    made = context.communicators.insert(agreed.context, map);
    if (made == nullptr) {
        coll::give_back(context.rank, agreed);
        return fail(MPI_ERR_NO_MEM, "no memory for another communicator");
    }
    coll::expect_place(context.rank, *made);
    retain_members(context, *made);
    return {};
}

namespace {

Error make_of_agreed_members(Context& context, const comm::Communicator& parent,
                             const std::vector<int>& members, const coll::NewCommunicator& agreed,
                             comm::Communicator*& made) {
    if (Error error = make_agreed(
            context, parent.map().select(members.data(), static_cast<int>(members.size())), agreed,
            made)) {
        return error;
    }
    inherit(context, parent, *made);
    return {};
}

} // namespace

Error make_agreed_inter(Context& context, const comm::RankMap& local, const comm::RankMap& remote,
                        bool first, const coll::NewCommunicator& agreed,
                        comm::Communicator*& made) {
    made = context.communicators.insert_inter(agreed.context, agreed.local_context, local, remote,
                                              first);
    if (made == nullptr) {
        coll::give_back(context.rank, agreed);
        return fail(MPI_ERR_NO_MEM, "no memory for another communicator");
    }
    retain_members(context, *made);
    return {};
}

Error make_of_members(Context& context, const comm::Communicator& parent,
                      const std::vector<int>& members, const coll::Channel& channel,
                      comm::Communicator*& made) {
    coll::NewCommunicator agreed;
    if (Error error = coll::agree_among(channel, members, coll::Kind::intra, agreed)) {
        return error;
    }
    return make_of_agreed_members(context, parent, members, agreed, made);
}

Error make_of_first(Context& context, comm::Communicator& parent, int count,
                    comm::Communicator*& made) {
    coll::NewCommunicator agreed;
    if (count < parent.size()) {
        std::vector<int> members(static_cast<std::size_t>(count));
        std::iota(members.begin(), members.end(), 0);
        return make_of_members(context, parent, members,
                               coll::Channel(context.messages, parent, coll::Tag::agreement), made);
    }
    if (Error error =
            coll::agree_on_duplicate(context.messages, parent, coll::Kind::intra, agreed)) {
        return error;
    }
    if (Error error = make_agreed(context, parent.map(), agreed, made)) {
        return error;
    }
    inherit(context, parent, *made);
    return {};
}

Error make_of_colour(Context& context, comm::Communicator& parent, int colour, int key,
                     comm::Communicator*& made) {
    made = nullptr;
    coll::NewCommunicator agreed;
    std::vector<int> members;
    if (Error error =
            coll::agree_on_split(context.messages, parent, colour, key, members, agreed)) {
        return error;
    }
    return members.empty() ? Error()
                           : make_of_agreed_members(context, parent, members, agreed, made);
}

// --- Groups

Error group_compare(Context&, comm::Group& group1, comm::Group& group2, int* result) {
    *result = comm::compare(group1.map, group2.map);
    return {};
}

Error group_difference(Context& context, comm::Group& group1, comm::Group& group2,
                       MPI_Group* newgroup) {
    return give(context, comm::difference_of(group1.map, group2.map), group1.session, newgroup);
}

Error group_excl(Context& context, comm::Group& group, int n, const int ranks[],
                 MPI_Group* newgroup) {
    comm::RankMap made;
    if (Error error = comm::exclude(group.map, n, ranks, made)) {
        return error;
    }
    return give(context, std::move(made), group.session, newgroup);
}

Error group_free(Context& context, comm::Group& group) {
    context.communicators.remove(group);
    return {};
}

Error group_incl(Context& context, comm::Group& group, int n, const int ranks[],
                 MPI_Group* newgroup) {
    comm::RankMap made;
    if (Error error = comm::include(group.map, n, ranks, made)) {
        return error;
    }
    return give(context, std::move(made), group.session, newgroup);
}

Error group_intersection(Context& context, comm::Group& group1, comm::Group& group2,
                         MPI_Group* newgroup) {
    return give(context, comm::intersection_of(group1.map, group2.map), group1.session, newgroup);
}

Error group_range_excl(Context& context, comm::Group& group, int n, int ranges[][3],
                       MPI_Group* newgroup) {
    comm::RankMap made;
    if (Error error = comm::exclude_ranges(group.map, n, ranges, made)) {
        return error;
    }
    return give(context, std::move(made), group.session, newgroup);
}

Error group_range_incl(Context& context, comm::Group& group, int n, int ranges[][3],
                       MPI_Group* newgroup) {
    comm::RankMap made;
    if (Error error = comm::include_ranges(group.map, n, ranges, made)) {
        return error;
    }
    return give(context, std::move(made), group.session, newgroup);
}

Error group_rank(Context&, comm::Group& group, int* rank) {
    *rank = group.rank;
    return {};
}

Error group_size(Context&, comm::Group& group, int* size) {
    *size = group.size();
    return {};
}

Error group_translate_ranks(Context&, comm::Group& group1, int n, const int ranks1[],
                            comm::Group& group2, int ranks2[]) {
    return comm::translate(group1.map, n, ranks1, group2.map, ranks2);
}

Error group_union(Context& context, comm::Group& group1, comm::Group& group2, MPI_Group* newgroup) {
    return give(context, comm::union_of(group1.map, group2.map), group1.session, newgroup);
}

// --- Communicators: what they are

Error comm_compare(Context&, comm::Communicator& comm1, comm::Communicator& comm2, int* result) {
    if (&comm1 == &comm2) {
        *result = MPI_IDENT;
        return {};
    }
    if (comm1.inter() != comm2.inter()) {
        *result = MPI_UNEQUAL;
        return {};
    }
    int groups = comm::compare(comm1.map(), comm2.map());
    if (comm1.inter() && groups != MPI_UNEQUAL) {
        const int remote = comm::compare(comm1.peer_map(), comm2.peer_map());
        groups = remote == MPI_IDENT ? groups : remote;
    }
    *result = groups == MPI_IDENT ? MPI_CONGRUENT : groups;
    return {};
}

Error comm_get_name(Context&, comm::Communicator* comm, char* comm_name, int* resultlen) {
    const char* name = comm == nullptr ? "MPI_COMM_NULL" : comm->name();
    std::strcpy(comm_name, name);
    *resultlen = static_cast<int>(std::strlen(name));
    return {};
}

Error comm_set_name(Context&, comm::Communicator& comm, const char* comm_name) {
    comm.set_name({comm_name, strnlen(comm_name, MPI_MAX_OBJECT_NAME - 1)});
    return {};
}

Error comm_group(Context& context, comm::Communicator& comm, MPI_Group* group) {
    return give(context, comm.map(), comm.session, group);
}

Error comm_rank(Context&, comm::Communicator& comm, int* rank) {
    *rank = comm.rank();
    return {};
}

Error comm_size(Context&, comm::Communicator& comm, int* size) {
    *size = comm.size();
    return {};
}

Error comm_remote_group(Context& context, comm::Communicator& comm, MPI_Group* group) {
    return comm.inter() ? give(context, comm.peer_map(), comm.session, group)
                        : no_intercommunicator();
}

Error comm_remote_size(Context&, comm::Communicator& comm, int* size) {
    if (!comm.inter()) {
        return no_intercommunicator();
    }
    *size = comm.peers();
    return {};
}

Error comm_test_inter(Context&, comm::Communicator& comm, int* flag) {
    *flag = comm.inter() ? 1 : 0;
    return {};
}

// --- Communicators: making and freeing

Error comm_create(Context& context, comm::Communicator& comm, comm::Group& group,
                  MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    if (comm.inter()) {
        std::vector<int> members;
        if (Error error = members_of(comm, group, members)) {
            return error;
        }
        // The new group has the members of `group`, in its order.
        return split_inter(context, comm, group.rank == MPI_UNDEFINED ? MPI_UNDEFINED : 0,
                           group.rank, newcomm);
    }
    // Groups of one call are disjoint or equal: their first members tell them apart.
    int colour = MPI_UNDEFINED;
    Error wrong = first_member_of(comm, group, colour);
    comm::Communicator* made = nullptr;
    // A rank with a wrong argument takes part, so that the others do not wait for it.
    Error error =
        make_of_colour(context, comm, wrong || group.rank == MPI_UNDEFINED ? MPI_UNDEFINED : colour,
                       group.rank, made);
    if (wrong) {
        error.drop();
        return wrong;
    }
    return give(context, error, made, newcomm);
}

Error comm_create_group(Context& context, comm::Communicator& comm, comm::Group& group, int tag,
                        MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    if (comm.inter()) {
        return fail(MPI_ERR_COMM, "the communicator is an intercommunicator");
    }
    std::vector<int> members;
    if (Error error = members_of(comm, group, members)) {
        return error;
    }
    if (group.rank == MPI_UNDEFINED) {
        return {};
    }
    // The program's tag keeps concurrent calls of threads apart; its upper bits make room for ours.
    const int offset = tag % static_cast<int>(coll::Tag::create_group);
    const coll::Channel channel(context.messages, comm, coll::Tag::create_group, offset);
    comm::Communicator* made = nullptr;
    return give(context, make_of_members(context, comm, members, channel, made), made, newcomm);
}

namespace {

// The duplicate without what hangs on it.
Error make_duplicate(Context& context, comm::Communicator& comm, comm::Communicator*& made) {
    coll::NewCommunicator agreed;
    if (comm.inter()) {
        comm::Communicator united = comm::united_of(comm);
        if (Error error =
                coll::agree_on_duplicate(context.messages, united, coll::Kind::inter, agreed)) {
            return error;
        }
        return make_agreed_inter(context, comm.map(), comm.peer_map(), comm.first(), agreed, made);
    }
    if (Error error = coll::agree_on_duplicate(context.messages, comm, coll::Kind::intra, agreed)) {
        return error;
    }
    return make_agreed(context, comm.map(), agreed, made);
}

} // namespace

Error comm_dup_with_info(Context& context, comm::Communicator& comm, comm::Info* info,
                         MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    comm::Communicator* made = nullptr;
    if (Error error = make_duplicate(context, comm, made)) {
        return error;
    }
    if (Error error = duplicate_attached(context, comm, *made, false)) {
        // The attributes copied so far go unseen by their delete functions' errors: there is one
        // to report already.
        release_attached(context, *made).drop();
        give_up(context, *made);
        return error;
    }
    made->topology = comm.topology;
    if (info != nullptr) {
        made->info = new comm::Info(*info);
    }
    *newcomm = context.communicators.handle_of(*made);
    return {};
}

Error comm_dup(Context& context, comm::Communicator& comm, MPI_Comm* newcomm) {
    return comm_dup_with_info(context, comm, nullptr, newcomm);
}

Error comm_split(Context& context, comm::Communicator& comm, int color, int key,
                 MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    if (comm.inter()) {
        return split_inter(context, comm, color, key, newcomm);
    }
    comm::Communicator* made = nullptr;
    Error error = make_of_colour(context, comm, color < 0 ? MPI_UNDEFINED : color, key, made);
    if (color < 0 && color != MPI_UNDEFINED) {
        error.drop();
        return fail(MPI_ERR_ARG, "color %d is neither ≥ 0 nor MPI_UNDEFINED", color);
    }
    return give(context, error, made, newcomm);
}

Error comm_free(Context& context, comm::Communicator& comm) {
    if (&comm == &context.communicators.world() || &comm == &context.communicators.self()) {
        return fail(MPI_ERR_COMM, "%s cannot be freed",
                    &comm == &context.communicators.world() ? "MPI_COMM_WORLD" : "MPI_COMM_SELF");
    }
    // The attributes' delete functions may still use the communicator, and one that fails keeps it.
    if (Error error = release_attached(context, comm)) {
        return error;
    }
    give_up(context, comm);
    return {};
}

Error comm_disconnect(Context& context, comm::Communicator& comm) {
    if (&comm == &context.communicators.world() || &comm == &context.communicators.self()) {
        return comm_free(context, comm); // which refuses
    }
    if (comm.send_buffer != nullptr) {
        comm.send_buffer->flush(context.messages);
    }
    // Nobody sends any more when all have come here.
    if (coll::spans_nodes(context.rank, comm.map()) ||
        coll::spans_nodes(context.rank, comm.peer_map())) {
        if (Error error = coll::Collectives(context.messages, comm).barrier()) {
            return error;
        }
        comm.set_disconnected();
    }
    return comm_free(context, comm);
}

} // namespace warren::mpi
