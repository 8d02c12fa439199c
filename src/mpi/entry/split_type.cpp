// MPI_Comm_split_type: by shared memory, by hardware, by process sets.

#include <algorithm>
#include <mutex>
#include <strings.h>
#include <vector>

#include "mpi/coll/collectives.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/entry/communicators.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/info.hpp"
#include "mpi/job/hardware.hpp"
#include "mpi/job/world_identity.hpp"

namespace warren::mpi {

namespace {

using node::Hardware;
using node::HardwarePlace;

constexpr const char* resource_key = "mpi_hw_resource_type";

int node_of(const Context& context) {
    return static_cast<int>(context.rank.bootstrap().numbers().node);
}

// The colour of the instance of a resource that this rank runs on; MPI_UNDEFINED if it may run on
// several, or there is no such resource.
int colour_of(const Context& context, const HardwarePlace& place, Hardware kind) {
    const std::int32_t instance = place.instance[static_cast<int>(kind)];
    constexpr int instances_of_node = 1 << 16; // more than there are
    return instance == HardwarePlace::several
               ? MPI_UNDEFINED
               : node_of(context) % (1 << 15) * instances_of_node + instance;
}

// Whether the communicator has members of other worlds, as all of its members then find.
bool spans_worlds(const Context& context, const comm::Communicator& comm) {
    const auto has_foreigner = [&](const comm::RankMap& members) {
        for (int rank = 0; rank < members.size(); ++rank) {
            if (comm::World::endpoint_of(members[rank]) >= context.rank.world_size) {
                return true;
            }
        }
        return false;
    };
    return context.rank.meets_other_worlds &&
           (has_foreigner(comm.map()) || (comm.inter() && has_foreigner(comm.peer_map())));
}

// Colours of the parts of a communicator whose ranks have something in common.
struct Common {
    int memory; // of one node and world
    int world;
    int self;
};

// Finds the colours in a communicator of several worlds: the first rank of each part.
Error find_common(Context& context, comm::Communicator& comm, Common& common) {
    struct Home {
        std::uint64_t world;
        std::int64_t node;
    };
    if (comm.inter()) {
        common = {.memory = MPI_UNDEFINED,
                  .world = MPI_UNDEFINED,
                  .self = MPI_UNDEFINED}; // nothing with the other side
        return {};
    }
    std::vector<Home> homes(static_cast<std::size_t>(comm.size()));
    const Home own = {.world = node::world_number(context.rank.segment), .node = node_of(context)};
    homes[static_cast<std::size_t>(comm.rank())] = own;
    const coll::Blocks blocks(coll::bytes_of(homes.data(), sizeof(Home)));
    if (Error error =
            coll::Collectives(context.messages, comm).allgather(blocks[comm.rank()], blocks)) {
        return error;
    }
    const auto first = [&](auto is_common) {
        return static_cast<int>(std::find_if(homes.begin(), homes.end(), is_common) -
                                homes.begin());
    };
    common.world = first([&](const Home& its) { return its.world == own.world; });
    common.memory =
        first([&](const Home& its) { return its.world == own.world && its.node == own.node; });
    return {};
}

int guided_colour(const Context& context, const Common& common, const comm::Info* info) {
    const std::string* resource = info != nullptr ? info->find(resource_key) : nullptr;
    Hardware kind;
    if (resource == nullptr) {
        return MPI_UNDEFINED;
    }
    if (*resource == "mpi_shared_memory") {
        return common.memory;
    }
    return node::find_hardware(*resource, kind)
               ? colour_of(context, node::find_hardware_place(), kind)
               : MPI_UNDEFINED;
}

// A process set instead of hardware, if the hints name one.
int set_colour(const Context& context, const Common& common, const comm::Info* info) {
    const std::string* set = info != nullptr ? info->find("mpi_pset_name") : nullptr;
    if (set == nullptr) {
        return guided_colour(context, common, info);
    }
    if (strcasecmp(set->c_str(), "mpi://WORLD") == 0) {
        return common.world;
    }
    return strcasecmp(set->c_str(), "mpi://SELF") == 0 ? common.self : MPI_UNDEFINED;
}

// A rank's part in the search for a level; one that asks for MPI_UNDEFINED has none.
struct LevelPlace {
    HardwarePlace place;
    std::int32_t takes_part;
};

// The largest kind of resource of which the ranks that take part use more than one instance: that
// makes every part smaller than the whole. False: there is none.
Error find_level(Context& context, comm::Communicator& comm, const LevelPlace& own, Hardware& kind,
                 bool& found) {
    std::vector<LevelPlace> places(static_cast<std::size_t>(comm.size()));
    places[static_cast<std::size_t>(comm.rank())] = own;
    const coll::Blocks blocks(coll::bytes_of(places.data(), sizeof(LevelPlace)));
    if (Error error =
            coll::Collectives(context.messages, comm).allgather(blocks[comm.rank()], blocks)) {
        return error;
    }
    std::erase_if(places, [](const LevelPlace& its) { return its.takes_part == 0; });
    found = false;
    for (int level = 0; level < node::hardware_kinds && !found; ++level) {
        for (const LevelPlace& its : places) {
            found |= its.place.instance[level] != places[0].place.instance[level];
        }
        kind = static_cast<Hardware>(level);
    }
    return {};
}

// Whether some rank asks to split by an unnamed resource: then those that ask for MPI_UNDEFINED
// take part in the search for it, too.
Error find_unguided(Context& context, comm::Communicator& comm, int split_type, bool& unguided) {
    const std::int32_t own = split_type == MPI_COMM_TYPE_HW_UNGUIDED ? 1 : 0;
    std::int32_t any = own;
    if (!comm.inter()) {
        if (Error error = coll::Collectives(context.messages, comm)
                              .allreduce(&own, &any, 1, datatype::basic(MPI_INT32_T),
                                         coll::Op(coll::OpKind::max))) {
            return error;
        }
    }
    unguided = any != 0;
    return {};
}

// Ranks of a new communicator learn the resource's name from the hints that they have given.
Error split_unguided(Context& context, comm::Communicator& comm, bool takes_part, int key,
                     comm::Info* info, MPI_Comm* newcomm) {
    const LevelPlace own = {.place = node::find_hardware_place(), .takes_part = takes_part ? 1 : 0};
    Hardware kind{};
    bool found = false;
    if (comm.inter()) {
        return comm_split(context, comm, MPI_UNDEFINED, key, newcomm);
    }
    if (Error error = find_level(context, comm, own, kind, found)) {
        return error;
    }
    const int colour = found && takes_part ? colour_of(context, own.place, kind) : MPI_UNDEFINED;
    if (Error error = comm_split(context, comm, colour, key, newcomm)) {
        return error;
    }
    if (comm::Communicator* made = context.communicators.find(*newcomm)) {
        if (made->info == nullptr) {
            made->info = new comm::Info();
        }
        made->info->set(resource_key, node::hardware_name(kind));
        if (info != nullptr) {
            const std::lock_guard lock(context.process.mutex);
            info->set(resource_key, node::hardware_name(kind));
        }
    }
    return {};
}

} // namespace

Error comm_split_type(Context& context, comm::Communicator& comm, int split_type, int key,
                      comm::Info* info, MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    switch (split_type) {
    case MPI_UNDEFINED:
    case MPI_COMM_TYPE_SHARED:
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
    case MPI_COMM_TYPE_HW_UNGUIDED:
        break;
    default:
        return fail(MPI_ERR_ARG, "split_type %d is not one of MPI_COMM_TYPE_…", split_type);
    }
    bool unguided = false;
    if (Error error = find_unguided(context, comm, split_type, unguided)) {
        return error;
    }
    if (unguided) {
        return split_unguided(context, comm, split_type == MPI_COMM_TYPE_HW_UNGUIDED, key, info,
                              newcomm);
    }
    Common common = {.memory = node_of(context), .world = 0, .self = comm.rank()};
    if (spans_worlds(context, comm)) {
        if (Error error = find_common(context, comm, common)) {
            return error;
        }
    }
    const int colour =
        split_type == MPI_COMM_TYPE_SHARED            ? common.memory
        : split_type == MPI_COMM_TYPE_HW_GUIDED       ? guided_colour(context, common, info)
        : split_type == MPI_COMM_TYPE_RESOURCE_GUIDED ? set_colour(context, common, info)
                                                      : MPI_UNDEFINED;
    return comm_split(context, comm, colour, key, newcomm);
}

Error get_hw_resource_info(Process& process, MPI_Info* hw_info) {
    const HardwarePlace place = node::find_hardware_place();
    comm::Info facts;
    facts.set("mpi_shared_memory", "true");
    for (int kind = 0; kind < node::hardware_kinds; ++kind) {
        facts.set(node::hardware_name(static_cast<Hardware>(kind)),
                  place.instance[kind] != HardwarePlace::several ? "true" : "false");
    }
    return make_info(process, &facts, hw_info);
}

} // namespace warren::mpi
