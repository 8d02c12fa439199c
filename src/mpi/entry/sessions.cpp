#include "mpi/entry/sessions.hpp"

#include <cstring>
#include <mutex>
#include <strings.h>
#include <utility>

#include "mpi/entry/error_handlers.hpp"
#include "mpi/entry/failure.hpp"
#include "mpi/entry/info.hpp"
#include "mpi/entry/memory_kinds.hpp"
#include "mpi/entry/new_communicator.hpp"
#include "mpi/entry/release.hpp"

namespace warren::mpi {

namespace {

using Kind = comm::ErrorHandler::Kind;

struct Level {
    int value;
    const char* name;
};
constexpr Level levels[] = {{MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"},
                            {MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"},
                            {MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"},
                            {MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"}};

// The level that the hints ask for; the highest if they don't.
Error find_level(const comm::Info* info, int& value) {
    value = MPI_THREAD_MULTIPLE;
    const std::string* wanted = info != nullptr ? info->find("thread_level") : nullptr;
    if (wanted == nullptr) {
        return {};
    }
    for (const Level& level : levels) {
        if (*wanted == level.name) {
            value = level.value;
            return {};
        }
    }
    return fail(MPI_ERR_INFO_VALUE, "the info key thread_level has the value \"%s\", not a level",
                wanted->c_str());
}

constexpr const char* world_set = "mpi://WORLD";
constexpr const char* own_set = "mpi://SELF";
constexpr const char* sets[] = {world_set, own_set};

// The processes of a set; names of this scheme do not depend on case.
Error find_set(const Context& context, const char* name, comm::RankMap& members) {
    if (strcasecmp(name, world_set) == 0) {
        members = context.communicators.own_world().members();
        return {};
    }
    if (strcasecmp(name, own_set) == 0) {
        members = comm::RankMap::affine(context.rank.index, 1, 1);
        return {};
    }
    return fail(MPI_ERR_ARG, "\"%s\" is not the name of a process set", name);
}

// A communicator of the whole job that exists everywhere without having been made: what others are
// made over.
comm::Communicator common_ground(const Context& context) {
    return comm::Communicator(comm::groups_context, context.communicators.own_world().members(),
                              static_cast<int>(context.rank.world_rank));
}

// A number for a name, by which concurrent calls are told apart (FNV-1a).
int tag_of(const char* name) {
    std::uint32_t hash = 2166136261u;
    for (; *name != '\0'; ++name) {
        hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619u;
    }
    return static_cast<int>((hash ^ hash >> 29) % static_cast<std::uint32_t>(1 << 29));
}

Error check_from_group(const comm::Group& group, const comm::ErrorHandler& errhandler) {
    if (Error error = check_kind(errhandler, Kind::communicator, "communicators")) {
        return error;
    }
    if (group.size() > 0 && group.rank == MPI_UNDEFINED) {
        return fail(MPI_ERR_GROUP, "the calling process is not in the group");
    }
    return {};
}

// The communicator of a group, made over the common ground.
Error make_of_group(Context& context, const comm::Group& group, const char* stringtag,
                    comm::Communicator*& made) {
    const comm::Communicator ground = common_ground(context);
    std::vector<int> members;
    members.reserve(static_cast<std::size_t>(group.size()));
    for (int rank = 0; rank < group.size(); ++rank) {
        members.push_back(ground.map().rank_of(group.map[rank]));
        if (members.back() == MPI_UNDEFINED) {
            return fail(MPI_ERR_UNSUPPORTED_OPERATION,
                        "rank %d of the group is of another world: MPI_Intercomm_merge makes "
                        "communicators of several worlds",
                        rank);
        }
    }
    return make_of_members(
        context, ground, members,
        coll::Channel(context.messages, ground, coll::Tag::create_group, tag_of(stringtag)), made);
}

void finish(Context& context, comm::Communicator& made, const comm::Info* info,
            comm::ErrorHandler& errhandler) {
    set_handler(context, made.error_handler, errhandler);
    if (info != nullptr) {
        made.info = new comm::Info(*info);
    }
}

} // namespace

Error session_init(comm::Info* info, comm::ErrorHandler& errhandler, MPI_Session* session) {
    *session = MPI_SESSION_NULL;
    if (Error error = check_kind(errhandler, Kind::session, "sessions")) {
        return error;
    }
    int level;
    if (Error error = find_level(info, level)) {
        return error;
    }
    Context* context = nullptr;
    if (Error error = open_context(level, context)) {
        return error;
    }
    const std::lock_guard guard(context->rank.lock);
    comm::Session* made = context->sessions.insert(level);
    if (made == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory for a session");
    }
    const std::string* kinds = info != nullptr ? info->find(memory_kinds_key) : nullptr;
    made->memory_kinds = granted_memory_kinds(kinds != nullptr ? *kinds : "");
    set_handler(*context, made->error_handler, errhandler);
    *session = context->sessions.handle_of(*made);
    return {};
}

Error session_finalize(Context& context, comm::Session& session) {
    bool last = false;
    {
        const std::lock_guard guard(context.rank.lock);
        if (session.send_buffer != nullptr) {
            session.send_buffer->flush(context.messages); // the memory is the program's again
        }
        last = context.sessions.live() == 1 && life() != Life::running;
        if (last) {
            context.ports.close_all();
            context.messages.flush();
        }
        {
            const std::lock_guard lock(context.process.mutex);
            if (session.error_handler != nullptr) {
                context.error_handlers.release(*session.error_handler);
            }
        }
        context.sessions.remove(session);
    }
    if (last) {
        close_context();
    }
    return {};
}

Error session_get_info(Context& context, comm::Session& session, MPI_Info* info_used) {
    comm::Info info;
    for (const Level& level : levels) {
        if (level.value == session.thread_level) {
            info.set("thread_level", level.name);
        }
    }
    info.set(memory_kinds_key, session.memory_kinds);
    const std::lock_guard lock(context.process.mutex);
    return make_info(context.process, &info, info_used);
}

Error session_get_num_psets(Context&, comm::Session&, comm::Info*, int* npset_names) {
    *npset_names = static_cast<int>(std::size(sets));
    return {};
}

Error session_get_nth_pset(Context&, comm::Session&, comm::Info*, int n, int* pset_len,
                           char* pset_name) {
    if (n < 0 || n >= static_cast<int>(std::size(sets))) {
        return fail(MPI_ERR_ARG, "n = %d is not in 0 … %zu", n, std::size(sets) - 1);
    }
    if (*pset_len < 0) {
        return fail(MPI_ERR_ARG, "pset_len = %d is negative", *pset_len);
    }
    const std::size_t length = std::strlen(sets[n]);
    if (*pset_len > 0) {
        if (pset_name == nullptr) {
            return fail(MPI_ERR_ARG, "pset_name is a null pointer");
        }
        const std::size_t given = std::min(length, static_cast<std::size_t>(*pset_len) - 1);
        std::memcpy(pset_name, sets[n], given);
        pset_name[given] = '\0';
    }
    *pset_len = static_cast<int>(length) + 1;
    return {};
}

Error session_get_pset_info(Context& context, comm::Session&, const char* pset_name,
                            MPI_Info* info) {
    comm::RankMap members;
    if (Error error = find_set(context, pset_name, members)) {
        return error;
    }
    comm::Info facts;
    facts.set("mpi_size", std::to_string(members.size()));
    const std::lock_guard lock(context.process.mutex);
    return make_info(context.process, &facts, info);
}

Error group_from_session_pset(Context& context, comm::Session& session, const char* pset_name,
                              MPI_Group* newgroup) {
    *newgroup = MPI_GROUP_NULL;
    comm::RankMap members;
    if (Error error = find_set(context, pset_name, members)) {
        return error;
    }
    *newgroup =
        context.communicators.insert_group(std::move(members), context.sessions.handle_of(session));
    return *newgroup != MPI_GROUP_NULL ? Error()
                                       : fail(MPI_ERR_NO_MEM, "no memory for another group");
}

Error comm_create_from_group(Context& context, comm::Group& group, const char* stringtag,
                             comm::Info* info, comm::ErrorHandler& errhandler, MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    if (Error error = check_from_group(group, errhandler)) {
        return error;
    }
    if (group.size() == 0) {
        return {};
    }
    comm::Communicator* made = nullptr;
    if (Error error = make_of_group(context, group, stringtag, made)) {
        return error;
    }
    made->session = group.session;
    finish(context, *made, info, errhandler);
    *newcomm = context.communicators.handle_of(*made);
    return {};
}

Error intercomm_create_from_groups(Context& context, comm::Group& local_group, int local_leader,
                                   MPI_Group remote_group, int remote_leader, const char* stringtag,
                                   comm::Info* info, comm::ErrorHandler& errhandler,
                                   MPI_Comm* newintercomm) {
    *newintercomm = MPI_COMM_NULL;
    if (Error error = check_from_group(local_group, errhandler)) {
        return error;
    }
    if (local_group.size() == 0) {
        return {};
    }
    if (local_leader < 0 || local_leader >= local_group.size()) {
        return fail(MPI_ERR_RANK, "local_leader = %d is not in 0 … %d", local_leader,
                    local_group.size() - 1);
    }
    // The remote group has a meaning at the leader only, which finds the other leader in it.
    int other = MPI_PROC_NULL;
    if (local_group.rank == local_leader) {
        const comm::Group* remote = context.communicators.find(remote_group);
        if (remote != nullptr && remote_leader >= 0 && remote_leader < remote->size()) {
            other = context.communicators.own_world().members().rank_of(remote->map[remote_leader]);
        }
    }
    comm::Communicator* local = nullptr;
    if (Error error = make_of_group(context, local_group, stringtag, local)) {
        return error;
    }
    const comm::Communicator ground = common_ground(context);
    comm::Communicator* made = nullptr;
    Error error = connect(context, *local, local_leader, &ground, other, tag_of(stringtag), made);
    give_up(context, *local);
    if (error) {
        return error;
    }
    made->session = local_group.session;
    finish(context, *made, info, errhandler);
    *newintercomm = context.communicators.handle_of(*made);
    return {};
}

Error session_set_errhandler(Context& context, comm::Session& session,
                             comm::ErrorHandler& errhandler) {
    if (Error error = check_kind(errhandler, Kind::session, "sessions")) {
        return error;
    }
    set_handler(context, session.error_handler, errhandler);
    return {};
}

Error session_get_errhandler(Context& context, comm::Session& session, MPI_Errhandler* errhandler) {
    *errhandler = share_handler(context, session.error_handler, context.error_handlers.fatal());
    return {};
}

Error session_call_errhandler(Context& context, comm::Session& session, int errorcode) {
    call_handler(context, session, errorcode);
    return {};
}

} // namespace warren::mpi
