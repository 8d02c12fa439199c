#include "mpi/comm/communicator.hpp"

#include <algorithm>
#include <vector>

namespace warren::comm {

void Communicator::set_name(std::string_view name) {
    name_.reset(name.empty() ? nullptr : new char[name.size() + 1]);
    if (name_ != nullptr) {
        std::copy(name.begin(), name.end(), name_.get());
        name_[name.size()] = '\0';
    }
}

Communicator united_of(const Communicator& inter) {
    const RankMap& head = inter.first() ? inter.map() : inter.peer_map();
    const RankMap& tail = inter.first() ? inter.peer_map() : inter.map();
    std::vector<std::uint32_t> processes;
    processes.reserve(static_cast<std::size_t>(head.size()) +
                      static_cast<std::size_t>(tail.size()));
    for (const RankMap* map : {&head, &tail}) {
        for (int rank = 0; rank < map->size(); ++rank) {
            processes.push_back((*map)[rank]);
        }
    }
    // Library's messages have the next context: the local group's, of the program's messages.
    return Communicator(inter.local().context() - 1, RankMap::of(processes),
                        inter.rank() + (inter.first() ? 0 : head.size()));
}

Communicators::Communicators(World own_world, TableShelf shelf)
    : own_world_(std::move(own_world)),
      shelf_(shelf),
      world_(world_context, shared(own_world_.members()), static_cast<int>(own_world_.rank())),
      self_(self_context, RankMap::affine(own_world_.endpoint(), 1, 1), 0) {
    world_.set_name("MPI_COMM_WORLD");
    self_.set_name("MPI_COMM_SELF");
    world_.place.slot = own_world_.is_one_node() ? 0 : CollectivePlace::none;
}

MPI_Comm Communicators::handle_of(const Communicator& communicator) const {
    if (&communicator == &world_) {
        return MPI_COMM_WORLD;
    }
    if (&communicator == &self_) {
        return MPI_COMM_SELF;
    }
    return static_cast<MPI_Comm>(HandleTable<Communicator>::handle_of(communicator));
}

MPI_Comm Communicators::communicator_of_integer(int integer) const {
    for (MPI_Comm predefined : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
        if (reinterpret_cast<std::intptr_t>(predefined) == integer) {
            return predefined;
        }
    }
    void* handle = made_.from_integer(static_cast<std::uint32_t>(integer));
    return handle != nullptr ? static_cast<MPI_Comm>(handle) : MPI_COMM_NULL;
}

Communicator* Communicators::insert(std::uint32_t context, const RankMap& map) {
    return made_.insert(context, shared(map), map.find(own_world_.endpoint()));
}

Communicator* Communicators::insert_inter(std::uint32_t context, std::uint32_t local_context,
                                          const RankMap& local, const RankMap& remote, bool first) {
    return made_.insert(context, shared(remote),
                        std::make_unique<Communicator>(local_context, shared(local),
                                                       local.find(own_world_.endpoint())),
                        first);
}

void Communicators::destroy(Communicator& communicator) {
    if (&communicator != &world_ && &communicator != &self_) {
        made_.remove(communicator);
    }
}

MPI_Group Communicators::handle_of(const Group& group) const {
    return &group == &empty_ ? MPI_GROUP_EMPTY
                             : static_cast<MPI_Group>(LateHandleTable<Group>::handle_of(group));
}

MPI_Group Communicators::group_of_integer(int integer) const {
    if (reinterpret_cast<std::intptr_t>(MPI_GROUP_EMPTY) == integer) {
        return MPI_GROUP_EMPTY;
    }
    void* handle = groups_.from_integer(static_cast<std::uint32_t>(integer));
    return handle != nullptr ? static_cast<MPI_Group>(handle) : MPI_GROUP_NULL;
}

MPI_Group Communicators::insert_group(RankMap map, MPI_Session session) {
    if (map.size() == 0) {
        return MPI_GROUP_EMPTY;
    }
    const Group* group = groups_.insert(shared(std::move(map)), own_world_.endpoint(), session);
    return group != nullptr ? handle_of(*group) : MPI_GROUP_NULL;
}

void Communicators::remove(Group& group) {
    if (&group != &empty_) {
        groups_.remove(group);
    }
}

} // namespace warren::comm
