#include "coll/agreement.hpp"

#include <algorithm>

#include "coll/collectives.hpp"
#include "coll/shared.hpp"

namespace warren::coll {

NewCommunicator take_new(Rank& rank, int members) {
    NewCommunicator made;
    // Two contexts: of the program's messages and the library's.
    made.context = rank.header().next_context.fetch_add(2, std::memory_order_relaxed);
    if (members > 1) {
        made.slot = SharedSlot::acquire(rank.segment, members);
    }
    return made;
}

Error agree_on_duplicate(message::Engine& engine, comm::Communicator& parent,
                         NewCommunicator& agreed) {
    if (parent.rank() == 0) {
        agreed = take_new(engine.rank(), parent.size());
    }
    return Collectives(engine, parent).bcast(bytes_of(&agreed, sizeof agreed), 0);
}

Error agree_among(const Channel& channel, const std::vector<int>& members,
                  NewCommunicator& agreed) {
    const int size = static_cast<int>(members.size());
    const int own = static_cast<int>(std::find(members.begin(), members.end(), channel.rank()) -
                                     members.begin());
    const Buffer data = bytes_of(&agreed, sizeof agreed);
    const auto member = [&](int index) { return members[static_cast<std::size_t>(index)]; };
    if (own == 0) {
        agreed = take_new(channel.engine().rank(), size);
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
    return {};
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
    if (Error error = Collectives(engine, parent).allgather(blocks)) {
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
