#include "mpi/entry/other_worlds.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <unistd.h>

#include "base/futex.hpp"
#include "mpi/calls.hpp"
#include "mpi/coll/collectives.hpp"
#include "mpi/entry/new_communicator.hpp"
#include "mpi/entry/release.hpp"
#include "mpi/job/local_socket.hpp"

namespace warren::mpi {

namespace {

// How long a port's process may be busy with the connections of others.
constexpr std::uint64_t patience_to_reach_ns = 10'000'000'000;
// How long a caller that was offered a connection has to answer, at least.
constexpr std::uint64_t answer_patience_ns = 2'000'000'000;
// How long the mpiexec of a parent that can't be reached any more has to end this world, and to say
// why.
constexpr std::uint64_t parent_patience_ns = 2'000'000'000;

void change_members(Context& context, const comm::Communicator& communicator,
                    void (transport::bridge::Bridge::*change)(std::uint32_t)) {
    transport::bridge::Bridge* const bridge = message::OtherWorlds::bridge(context.messages);
    if (bridge == nullptr) {
        return;
    }
    const auto visit = [&](const comm::RankMap& map) {
        for (int rank = 0; rank < map.size(); ++rank) {
            const std::uint32_t endpoint = comm::World::endpoint_of(map[rank]);
            if (endpoint >= context.rank.world_size) {
                (bridge->*change)(endpoint);
            }
        }
    };
    visit(communicator.peer_map());
    if (communicator.inter()) {
        visit(communicator.map());
    }
}

// The end of a time that begins now; 0: there is none.
std::uint64_t end_of(std::uint64_t patience_ns) {
    return patience_ns != 0 ? monotonic_ns() + patience_ns : 0;
}

bool is_over(std::uint64_t limit) {
    return limit != 0 && monotonic_ns() >= limit;
}

// Waits until done(), or this time; 0: for ever. Returns done(), which may not be true any more
// where another thread has come first.
template <typename Done>
bool wait_with_limit(Context& context, std::uint64_t limit, Done done) {
    message::Engine& engine = context.messages;
    const WaitReason reason = {.call = engine.current_call};
    if (limit == 0) {
        engine.wait_until(done, reason);
        return done();
    }
    // Nobody rings when the time is over.
    transport::bridge::Bridge& bridge = *message::OtherWorlds::bridge(engine);
    bridge.wake_at(limit);
    engine.wait_until([&] { return done() || monotonic_ns() >= limit; }, reason);
    bridge.forget_wake(limit);
    return done();
}

// Connects to a port's process. Its queue of connections may be full for a while.
Error reach_endpoint(Context& context, std::uint32_t endpoint, std::uint64_t limit) {
    transport::bridge::Bridge& bridge = *message::OtherWorlds::bridge(context.messages);
    const std::uint64_t own_limit = end_of(patience_to_reach_ns);
    int reason = bridge.reach(endpoint);
    while (reason == EAGAIN && !is_over(limit) && !is_over(own_limit)) {
        pause_between_attempts(context);
        reason = bridge.reach(endpoint);
    }
    switch (reason) {
    case 0:
        return {};
    case ECONNREFUSED:
        return fail(MPI_ERR_PORT, "the port's process has ended, or is on another node");
    default:
        return fail(node::lacks_descriptors(reason) ? MPI_ERR_OTHER : MPI_ERR_PORT,
                    "the port's process can't be reached: %s",
                    node::text_of_socket_error(reason).c_str());
    }
}

// A Finding is the root's, as the other ranks of its side hear it. Some bytes of an error's text
// are for what these add.
struct Finding {
    std::int32_t error_class = MPI_SUCCESS;
    char text[MPI_MAX_ERROR_STRING - 100] = {};
};

// All ranks have the root's error, so that it doesn't matter which of them ends the job first.
Error tell_finding(coll::Collectives& among, bool is_root, int root, Error own,
                   const char* others) {
    Finding finding;
    if (own) {
        ErrorRecord* const record = own.take();
        finding.error_class = record->error_class;
        record->text.copy(finding.text, sizeof finding.text - 1);
        own = Error::adopt(record);
    }
    Error error = among.bcast(coll::bytes_of(&finding, sizeof finding), root);
    if (own) {
        error.drop();
        return own;
    }
    if (error || is_root || finding.error_class == MPI_SUCCESS) {
        return error;
    }
    return fail(finding.error_class, "%s: %s", others, finding.text);
}

} // namespace

void pause_between_attempts(Context& context, std::uint64_t pause_ns) {
    if (message::OtherWorlds::bridge(context.messages) != nullptr) {
        wait_with_limit(context, end_of(pause_ns), [] { return false; });
        return;
    }
    context.rank.lock.unlock();
    usleep(static_cast<useconds_t>(pause_ns / 1'000));
    context.rank.lock.lock();
}

std::vector<node::ProcessName> names_of(const Context& context,
                                        const std::vector<std::uint32_t>& endpoints) {
    const transport::bridge::Bridge* const bridge = message::OtherWorlds::bridge(context.messages);
    const node::Endpoints world(context.rank.segment);
    const std::uint64_t number = node::world_number(context.rank.segment);
    std::vector<node::ProcessName> names;
    names.reserve(endpoints.size());
    for (const std::uint32_t endpoint : endpoints) {
        names.push_back(endpoint < context.rank.world_size
                            ? node::ProcessName{.world = number, .rank = world.world_rank(endpoint)}
                            : bridge->name_of(endpoint));
    }
    return names;
}

Error endpoints_of(Context& context, const std::vector<node::ProcessName>& names,
                   std::vector<std::uint32_t>& endpoints) {
    const node::Endpoints world(context.rank.segment);
    const std::uint64_t number = node::world_number(context.rank.segment);
    endpoints.clear();
    endpoints.reserve(names.size());
    for (const node::ProcessName& name : names) {
        if (name.world == number && name.rank < context.rank.world_size) {
            endpoints.push_back(world.of(name.rank));
            continue;
        }
        if (name.world == number) {
            return fail(MPI_ERR_INTERN, "a process names rank %u of this world, which has %u",
                        name.rank, context.rank.world_size);
        }
        if (Error error = message::OtherWorlds::open(context.messages)) {
            return error;
        }
        endpoints.push_back(message::OtherWorlds::bridge(context.messages)->endpoint_of(name));
    }
    return {};
}

void retain_members(Context& context, const comm::Communicator& made) {
    change_members(context, made, &transport::bridge::Bridge::retain);
}

void release_members(Context& context, const comm::Communicator& ended) {
    change_members(context, ended, &transport::bridge::Bridge::release);
}

Error meet(Context& context, comm::Communicator& comm, int root, FindOther find, void* arguments,
           const char* others, comm::Communicator*& made) {
    coll::Collectives among(context.messages, comm);
    if (Error error = among.agree(message::OtherWorlds::open(context.messages),
                                  "another rank has no way to other worlds")) {
        return error;
    }
    Meeting meeting;
    const bool is_root = comm.rank() == root;
    Error error = is_root ? find(context, arguments, meeting) : Error{};
    error = tell_finding(among, is_root, root, error, others);
    if (error) {
        return error;
    }
    if (is_root) {
        // The other side's root, as a communicator's only rank.
        const comm::Communicator peer(meeting.context,
                                      comm::RankMap::affine(meeting.endpoint, 1, 1), 0);
        retain_members(context, peer); // its end is noticed from now on
        error = connect(context, comm, root, &peer, 0, 0, made);
        release_members(context, peer);
        const coll::NewCommunicator met = {.context = meeting.context, .local_context = 0};
        coll::give_back(context.rank, met);
        if (!error) {
            // Each of the two roots has all that the other one had to say.
            coll::give_back_connecting(context.rank, met);
        }
    } else {
        error = connect(context, comm, root, nullptr, 0, 0, made);
    }
    return error;
}

Error accept_at(Context& context, std::uint64_t port, std::uint64_t patience_ns, Meeting& found) {
    Ports& ports = context.ports;
    const std::uint64_t limit = end_of(patience_ns);
    const auto done = [&] { return ports.first_caller(port) != nullptr || !ports.is_open(port); };
    do {
        wait_with_limit(context, limit, done);
        if (!ports.is_open(port)) {
            return fail(MPI_ERR_PORT, "the port was closed");
        }
        // (Another thread may have taken the caller.)
        if (ports.first_caller(port) != nullptr && accept_first(context, port, limit, found)) {
            return {};
        }
    } while (!is_over(limit));
    return fail(MPI_ERR_PORT, "nobody has connected within %.3f s",
                static_cast<double>(patience_ns) * 1e-9);
}

bool accept_first(Context& context, std::uint64_t port, std::uint64_t limit, Meeting& found) {
    Ports& ports = context.ports;
    const Ports::Caller caller = ports.accept(port);
    // A caller that comes at the end of the time gets some to answer, or it would find a port
    // closed that is open.
    const std::uint64_t answered =
        limit == 0 ? 0 : std::max(limit, monotonic_ns() + answer_patience_ns);
    wait_with_limit(context, answered, [&] { return ports.word_of(caller) != Ports::Word::none; });
    const bool confirmed = ports.word_of(caller) == Ports::Word::confirmed;
    ports.forget(caller);
    found = {.endpoint = caller.endpoint, .context = caller.context};
    return confirmed;
}

Error knock_at(Context& context, const PortName& port, std::uint64_t patience_ns, Meeting& found) {
    const std::uint64_t limit = end_of(patience_ns);
    std::vector<std::uint32_t> endpoint;
    if (port.process.world == node::world_number(context.rank.segment) &&
        port.process.rank >= context.rank.world_size) {
        return fail(MPI_ERR_PORT, "the port's process is not there");
    }
    if (Error error = endpoints_of(context, {port.process}, endpoint)) {
        return error;
    }
    found.endpoint = endpoint.front();
    if (Error error = reach_endpoint(context, found.endpoint, limit)) {
        return error;
    }
    const coll::NewCommunicator taken =
        coll::take_new(context.rank, 2, coll::Kind::intra, found.endpoint >= context.rank.size);
    found.context = taken.context;
    if (found.context == 0) {
        return fail(MPI_ERR_NO_MEM, "no number for another communicator");
    }
    Ports& ports = context.ports;
    const std::uint32_t token = ports.ask(found.endpoint, port.number, found.context);
    wait_with_limit(context, limit, [&] {
        return ports.state(token) != Ports::State::waits || ports.has_ended(found.endpoint);
    });
    wait_with_limit(context, 0, [&] {
        return ports.state(token) != Ports::State::confirmed || ports.has_ended(found.endpoint);
    });
    const Ports::State state = ports.state(token);
    const bool has_left = state <= Ports::State::confirmed && ports.has_ended(found.endpoint);
    ports.end(token);
    if (state == Ports::State::accepted) {
        return {};
    }
    coll::give_back(context.rank, taken);
    coll::give_back(context.rank, taken); // also the other root's share
    coll::give_back_connecting(context.rank, taken);
    return has_left ? fail(MPI_ERR_PORT, "the port's process has ended")
           : state == Ports::State::refused
               ? fail(MPI_ERR_PORT, "there is no such port, or it has been closed")
               : fail(MPI_ERR_PORT, "the port has not been accepted at within %.3f s",
                      static_cast<double>(patience_ns) * 1e-9);
}

Error meet_parent(Context& context) {
    const node::WorldIdentity& identity = *context.rank.segment.at(node::world_identity);
    if (identity.spawned == 0) {
        return {};
    }
    PortName port;
    if (Error error = PortName::parse(identity.parent_port, port)) {
        return error;
    }
    comm::Communicator* made = nullptr;
    comm::Communicator& world = context.communicators.world();
    const FindOther find = [](Context& its, void* arguments, Meeting& found) {
        Error error = knock_at(its, *static_cast<PortName*>(arguments), 0, found);
        if (error && error.error_class() == MPI_ERR_PORT) {
            pause_between_attempts(its, parent_patience_ns);
        }
        return error;
    };
    if (Error error =
            meet(context, world, 0, find, &port, "rank 0 has not reached the parent", made)) {
        return error;
    }
    made->set_name("MPI_COMM_PARENT");
    context.parent = context.communicators.handle_of(*made);
    return {};
}

} // namespace warren::mpi
