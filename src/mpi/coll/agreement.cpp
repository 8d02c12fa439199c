#include "mpi/coll/agreement.hpp"

#include <algorithm>

#include "mpi/coll/collectives.hpp"
#include "mpi/coll/slot_pool.hpp"
#include "mpi/coll/small_collectives.hpp"
#include "mpi/job/context_ids.hpp"

namespace warren::coll {

bool spans_nodes(const Rank& rank, const comm::RankMap& members) {
    if (rank.size == rank.world_size && !rank.meets_other_worlds) {
        return false;
    }
    for (int member = 0; member < members.size(); ++member) {
        if (members[member] >= rank.size) {
            return true;
        }
    }
    return false;
}

NewCommunicator take_new(Rank& rank, int members, Kind kind, bool spans) {
    NewCommunicator made;
    const auto take = [&] {
        node::Bootstrap& bootstrap = rank.bootstrap();
        if (!spans) {
            return bootstrap.take_context(static_cast<std::uint32_t>(members));
        }
        return rank.meets_other_worlds ? bootstrap.connecting_contexts().take()
                                       : bootstrap.take_spanning_context();
    };
    made.context = take();
    if (kind == Kind::inter && made.context != 0) {
        made.local_context = take();
        if (made.local_context == 0) {
            // A node's number is lost with its users, which is the least of the worries then.
            give_back_connecting(rank, made);
            made.context = 0;
        }
    }
    return made;
}

void give_back(Rank& rank, const NewCommunicator& agreed) {
    for (const std::uint32_t context : {agreed.context, agreed.local_context}) {
        const std::uint32_t slot = rank.bootstrap().give_back_context(context);
        if (slot != 0 && slot != slot_pool::refused) {
            slot_pool::give_back(rank.segment, slot - 1);
        }
    }
}

void give_back_connecting(Rank& rank, const NewCommunicator& agreed) {
    for (const std::uint32_t context : {agreed.context, agreed.local_context}) {
        rank.bootstrap().connecting_contexts().give_back(context);
    }
}

void expect_place(const Rank&, comm::Communicator& made) {
    if (made.size() > 1 && !made.inter()) {
        made.place.slot = node::ContextIds::is_spanning(made.context())
                              ? comm::CollectivePlace::none
                              : comm::CollectivePlace::unknown;
    }
}

namespace {

Error check(const NewCommunicator& agreed) {
    return agreed.context != 0 ? Error()
                               : fail(MPI_ERR_NO_MEM,
                                      "no number for another communicator: %u live on this node, "
                                      "or its memory is exhausted",
                                      node::context_limit);
}

} // namespace

Error agree_on_duplicate(message::Engine& engine, comm::Communicator& parent, Kind kind,
                         NewCommunicator& agreed) {
    if (parent.rank() == 0) {
        agreed =
            take_new(engine.rank(), parent.size(), kind, spans_nodes(engine.rank(), parent.map()));
    }
    if (Error error = Collectives(engine, parent).bcast(bytes_of(&agreed, sizeof agreed), 0)) {
        return error;
    }
    return check(agreed);
}

Error agree_among(const Channel& channel, const std::vector<int>& members, Kind kind,
                  NewCommunicator& agreed) {
    const int size = static_cast<int>(members.size());
    const int own = static_cast<int>(std::find(members.begin(), members.end(), channel.rank()) -
                                     members.begin());
    const Buffer data = bytes_of(&agreed, sizeof agreed);
    const auto member = [&](int index) { return members[static_cast<std::size_t>(index)]; };
    if (own == 0) {
        Rank& rank = channel.engine().rank();
        const bool spans = std::any_of(members.begin(), members.end(),
                                       [&](int its) { return channel.endpoint(its) >= rank.size; });
        agreed = take_new(rank, size, kind, spans);
    }
    // A binomial tree over the members.
    int distance = 1;
    while (distance < size && (own & distance) == 0) {
        distance *= 2;
    }
    if (own != 0) {
        if (Error error = channel.receive(data, member(own - distance))) {
            return error;
        }
    }
    for (distance /= 2; distance > 0; distance /= 2) {
        if (own + distance < size) {
            if (Error error = channel.send(data, member(own + distance))) {
                return error;
            }
        }
    }
    return check(agreed);
}

Error agree_on_split(message::Engine& engine, comm::Communicator& parent, int colour, int key,
                     std::vector<int>& members, NewCommunicator& agreed) {
    if (slot_pool::find(engine.rank().segment, parent)) {
        SmallCollectives slot(engine, parent);
        agreed.context = slot.split(colour, key, members);
        if (Error error = slot.outcome()) {
            return error;
        }
        return members.empty() ? Error() : check(agreed);
    }
    if (Error error = find_members(engine, parent, colour, key, members)) {
        return error;
    }
    if (members.empty()) {
        return {};
    }
    return agree_among(Channel(engine, parent, Tag::agreement), members, Kind::intra, agreed);
}

Error find_members(message::Engine& engine, comm::Communicator& parent, int colour, int key,
                   std::vector<int>& members) {
    struct Choice {
        int colour;
        int key;
    };
    std::vector<Choice> choices(static_cast<std::size_t>(parent.size()));
    choices[static_cast<std::size_t>(parent.rank())] = {colour, key};
    const Blocks blocks(bytes_of(choices.data(), sizeof(Choice)));
    if (Error error = Collectives(engine, parent).allgather(blocks[parent.rank()], blocks)) {
        return error;
    }
    members.clear();
    if (colour == MPI_UNDEFINED) {
        return {};
    }
    for (int rank = 0; rank < parent.size(); ++rank) {
        if (choices[static_cast<std::size_t>(rank)].colour == colour) {
            members.push_back(rank);
        }
    }
    // Stable: equal keys stay in the order of ranks.
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
        return choices[static_cast<std::size_t>(a)].key < choices[static_cast<std::size_t>(b)].key;
    });
    return {};
}

} // namespace warren::coll
