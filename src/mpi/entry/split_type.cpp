// MPI_Comm_split_type: by shared memory, by hardware, by process sets.

#include <mutex>
#include <strings.h>

#include "mpi/coll/collectives.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/entry/communicators.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/info.hpp"
#include "mpi/job/hardware.hpp"

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

int guided_colour(const Context& context, const comm::Info* info) {
    const std::string* resource = info != nullptr ? info->find(resource_key) : nullptr;
    Hardware kind;
    if (resource == nullptr) {
        return MPI_UNDEFINED;
    }
    if (*resource == "mpi_shared_memory") {
        return node_of(context);
    }
    return node::find_hardware(*resource, kind)
               ? colour_of(context, node::find_hardware_place(), kind)
               : MPI_UNDEFINED;
}

// A process set instead of hardware, if the hints name one.
int set_colour(const Context& context, const comm::Info* info) {
    const std::string* set = info != nullptr ? info->find("mpi_pset_name") : nullptr;
    if (set == nullptr) {
        return guided_colour(context, info);
    }
    if (strcasecmp(set->c_str(), "mpi://WORLD") == 0) {
        return 0;
    }
    return strcasecmp(set->c_str(), "mpi://SELF") == 0 ? static_cast<int>(context.rank.world_rank)
                                                       : MPI_UNDEFINED;
}

// The largest kind of resource of which the ranks use more than one instance: that makes every part
// smaller than the whole. False: there is none.
Error find_level(Context& context, comm::Communicator& comm, const HardwarePlace& own,
                 Hardware& kind, bool& found) {
    std::vector<HardwarePlace> places(static_cast<std::size_t>(comm.size()));
    places[static_cast<std::size_t>(comm.rank())] = own;
    const coll::Blocks blocks(coll::bytes_of(places.data(), sizeof(HardwarePlace)));
    if (Error error =
            coll::Collectives(context.messages, comm).allgather(blocks[comm.rank()], blocks)) {
        return error;
    }
    found = false;
    for (int level = 0; level < node::hardware_kinds && !found; ++level) {
        for (const HardwarePlace& place : places) {
            found |= place.instance[level] != places[0].instance[level];
        }
        kind = static_cast<Hardware>(level);
    }
    return {};
}

// Ranks of a new communicator learn the resource's name from the hints that they have given.
Error split_unguided(Context& context, comm::Communicator& comm, int key, comm::Info* info,
                     MPI_Comm* newcomm) {
    const HardwarePlace own = node::find_hardware_place();
    Hardware kind{};
    bool found = false;
    if (comm.inter()) {
        return comm_split(context, comm, MPI_UNDEFINED, key, newcomm);
    }
    if (Error error = find_level(context, comm, own, kind, found)) {
        return error;
    }
    if (Error error = comm_split(
            context, comm, found ? colour_of(context, own, kind) : MPI_UNDEFINED, key, newcomm)) {
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
        return comm_split(context, comm, MPI_UNDEFINED, key, newcomm);
    case MPI_COMM_TYPE_SHARED:
        return comm_split(context, comm, node_of(context), key, newcomm);
    case MPI_COMM_TYPE_HW_GUIDED:
        return comm_split(context, comm, guided_colour(context, info), key, newcomm);
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
        return comm_split(context, comm, set_colour(context, info), key, newcomm);
    case MPI_COMM_TYPE_HW_UNGUIDED:
        return split_unguided(context, comm, key, info, newcomm);
    default:
        return fail(MPI_ERR_ARG, "split_type %d is not one of MPI_COMM_TYPE_…", split_type);
    }
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
