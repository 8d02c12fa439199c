#include "mpi/coll/levels.hpp"

#include <algorithm>
#include <utility>

#include "mpi/coll/agreement.hpp"
#include "mpi/coll/algorithms.hpp"
#include "mpi/coll/choice.hpp"
#include "mpi/coll/collectives.hpp"
#include "mpi/coll/tuning.hpp"

namespace warren::coll {

namespace {

std::uint32_t node_of(message::Engine& engine, const comm::Communicator& communicator, int rank) {
    const node::Endpoints endpoints(engine.rank().segment);
    return endpoints.map().node_of(endpoints.world_rank(communicator.endpoint(rank)));
}

// A communicator of some ranks, this one among them.
Error make_level(message::Engine& engine, const comm::Communicator& parent,
                 const std::vector<int>& members, std::unique_ptr<comm::Communicator>& made) {
    NewCommunicator agreed;
    if (Error error =
            agree_among(Channel(engine, parent, Tag::agreement), members, Kind::intra, agreed)) {
        return error;
    }
    const auto own = std::find(members.begin(), members.end(), parent.rank()) - members.begin();
    made = std::make_unique<comm::Communicator>(
        agreed.context, parent.map().select(members.data(), static_cast<int>(members.size())),
        static_cast<int>(own));
    expect_place(engine.rank(), *made);
    return {};
}

void end_level(Rank& rank, const std::unique_ptr<comm::Communicator>& level) {
    if (level != nullptr) {
        give_back(rank, {.context = level->context(), .local_context = 0});
    }
}

std::unique_ptr<Levels> make_levels(message::Engine& engine, comm::Communicator& communicator) {
    auto made = std::make_unique<Levels>();
    std::vector<int> leaders;
    const std::uint32_t own_node = node_of(engine, communicator, communicator.rank());
    for (int rank = 0; rank < communicator.size(); ++rank) {
        const std::uint32_t node = node_of(engine, communicator, rank);
        if (node == own_node) {
            made->here.push_back(rank);
        }
        if (std::find(made->nodes.begin(), made->nodes.end(), node) == made->nodes.end()) {
            if (node == own_node) {
                made->own = static_cast<int>(leaders.size());
            }
            made->nodes.push_back(node);
            leaders.push_back(rank);
        }
    }
    const auto nodes = static_cast<int>(leaders.size());
    if (nodes == 1 || nodes == communicator.size()) {
        return nullptr;
    }
    Error error;
    if (made->here.size() > 1) {
        error = make_level(engine, communicator, made->here, made->node);
    }
    if (made->here[0] == communicator.rank()) {
        Error its = make_level(engine, communicator, leaders, made->leaders);
        if (error) {
            its.drop();
        } else {
            error = its;
        }
    }
    Error failed =
        Collectives(engine, communicator).agree(error, "another rank could not make its levels");
    if (failed) {
        failed.drop();
        end_level(engine.rank(), made->node);
        end_level(engine.rank(), made->leaders);
        return nullptr;
    }
    return made;
}

// Whether the place has levels in place of what a collective slot needs.
bool may_have_levels(const Rank& rank, const comm::Communicator& communicator) {
    return rank.size != rank.world_size && !communicator.inter() &&
           communicator.place.slot == comm::CollectivePlace::none;
}

} // namespace

Levels* find_levels(message::Engine& engine, comm::Communicator& communicator) {
    if (!may_have_levels(engine.rank(), communicator)) {
        return nullptr;
    }
    comm::CollectivePlace& place = communicator.place;
    if (place.operations > levels_from) {
        return place.levels;
    }
    if (++place.operations <= levels_from) {
        return nullptr;
    }
    place.levels = nullptr; // while they are made
    place.levels = make_levels(engine, communicator).release();
    return place.levels;
}

void end_levels(Rank& rank, comm::Communicator& communicator) {
    if (!may_have_levels(rank, communicator) || communicator.place.operations <= levels_from) {
        return;
    }
    const std::unique_ptr<Levels> levels(std::exchange(communicator.place.levels, nullptr));
    if (levels != nullptr) {
        end_level(rank, levels->node);
        end_level(rank, levels->leaders);
    }
}

int TwoLevels::leader_of(int rank) const {
    const std::uint32_t node = node_of(engine_, communicator_, rank);
    return static_cast<int>(std::find(levels_.nodes.begin(), levels_.nodes.end(), node) -
                            levels_.nodes.begin());
}

int TwoLevels::place_here(int rank) const {
    return static_cast<int>(std::find(levels_.here.begin(), levels_.here.end(), rank) -
                            levels_.here.begin());
}

template <typename Operation, typename Plan>
Error TwoLevels::go_on(Error before, comm::Communicator& level, Operation operation, Plan plan) {
    Collectives collectives(engine_, level);
    return before ? collectives.refuse(before, plan) : operation(collectives);
}

Error TwoLevels::bcast_on_node(Error before, const Buffer& buffer, int root) {
    return go_on(
        before, *levels_.node,
        [&](Collectives& collectives) { return collectives.bcast(buffer, root); },
        [&](Steps& steps) { coll::bcast(steps, buffer, root); });
}

Error TwoLevels::barrier() {
    const auto pass = [](Collectives& collectives) { return collectives.barrier(); };
    const auto plan = [](Steps& steps) { coll::barrier(steps); };
    Error error;
    if (levels_.node != nullptr) {
        error = go_on(error, *levels_.node, pass, plan);
    }
    if (levels_.leaders != nullptr) {
        error = go_on(error, *levels_.leaders, pass, plan);
    }
    return levels_.node != nullptr ? go_on(error, *levels_.node, pass, plan) : error;
}

Error TwoLevels::bcast(const Buffer& buffer, int root) {
    const int root_leader = leader_of(root);
    const bool is_near = root_leader == levels_.own;
    // Data of a leader goes to the other nodes first, which is the longer way.
    const bool starts_here = is_near && levels_.here[0] != root;
    Error error;
    if (starts_here && levels_.node != nullptr) {
        error = bcast_on_node(error, buffer, place_here(root));
    }
    if (levels_.leaders != nullptr) {
        error = go_on(
            error, *levels_.leaders,
            [&](Collectives& collectives) { return collectives.bcast(buffer, root_leader); },
            [&](Steps& steps) { coll::bcast(steps, buffer, root_leader); });
    }
    if (!starts_here && levels_.node != nullptr) {
        error = bcast_on_node(error, buffer, 0);
    }
    return error;
}

Error TwoLevels::reduce(const Reduction& reduction, const void* in, void* out, int root) {
    const int root_leader = leader_of(root);
    const bool leads = levels_.leaders != nullptr;
    const bool is_root = communicator_.rank() == root;
    Scratch of_node;
    Scratch of_all;
    Error error;
    if (leads) {
        error = of_node.allocate(reduction.count, reduction.type);
        if (!error && !is_root) {
            error = of_all.allocate(reduction.count, reduction.type);
        }
    }
    const auto at = [&](const void* from, void* to, int place) {
        return [&reduction, from, to, place](Collectives& collectives) {
            return collectives.reduce(from, to, reduction.count, reduction.type, reduction.op,
                                      place);
        };
    };
    const auto plan = [&](const void* from, void* to, int place) {
        return [&reduction, from, to, place](Steps& steps) {
            coll::reduce(steps, reduction, from, to, place);
        };
    };
    const void* part = in;
    if (levels_.node != nullptr) {
        error = go_on(error, *levels_.node, at(in, of_node.base(), 0), plan(in, of_node.base(), 0));
        part = of_node.base();
    }
    void* const all = is_root ? out : of_all.base();
    if (leads) {
        error = go_on(error, *levels_.leaders, at(part, all, root_leader),
                      plan(part, all, root_leader));
    }
    // From the leader of the root's node to the root.
    if (levels_.own != root_leader || levels_.here[0] == root || (!leads && !is_root)) {
        return error;
    }
    const Channel channel(engine_, communicator_, Tag::reduce);
    Error moved = leads ? channel.send(error ? no_data() : of_all.buffer(), root)
                        : channel.receive({out, reduction.count, &reduction.type}, levels_.here[0]);
    if (error) {
        moved.drop();
        return error;
    }
    return moved;
}

Error TwoLevels::allreduce(const Reduction& reduction, const void* in, void* out) {
    Error error;
    const void* part = in;
    if (levels_.node != nullptr) {
        error = go_on(
            error, *levels_.node,
            [&](Collectives& collectives) {
                return collectives.reduce(in, out, reduction.count, reduction.type, reduction.op,
                                          0);
            },
            [&](Steps& steps) { coll::reduce(steps, reduction, in, out, 0); });
        part = out;
    }
    if (levels_.leaders != nullptr) {
        error = go_on(
            error, *levels_.leaders,
            [&](Collectives& collectives) {
                return collectives.allreduce(part, out, reduction.count, reduction.type,
                                             reduction.op);
            },
            [&](Steps& steps) { coll::allreduce(steps, reduction, part, out); });
    }
    return levels_.node != nullptr
               ? bcast_on_node(error, {out, reduction.count, &reduction.type}, 0)
               : error;
}

} // namespace warren::coll
