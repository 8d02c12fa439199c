// Connections between worlds (MPI chapter 11.4 and 11.5): ports, accept, connect and join.

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <string>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "mpi/entry/dynamic_processes.hpp"
#include "mpi/entry/info.hpp"
#include "mpi/entry/other_worlds.hpp"
#include "mpi/entry/release.hpp"

namespace warren::mpi {

namespace {

// How long MPI_Comm_connect waits if nobody says otherwise.
constexpr std::uint64_t connect_patience_ns = 600'000'000'000;

// The root's arguments of a call of one side.
struct Place {
    const char* port_name;
    MPI_Info info;
};

Error parse_seconds(const char* what, const char* text, std::uint64_t& time_ns) {
    char* end = nullptr;
    const double seconds = std::strtod(text, &end);
    constexpr double most = 1e9;
    if (end == text || *end != '\0' || !(seconds > 0 && seconds <= most)) {
        return fail(MPI_ERR_INFO_VALUE, "%s is \"%.40s\", not a number of seconds above 0", what,
                    text);
    }
    // (0 ns would be for ever.)
    time_ns = std::max<std::uint64_t>(static_cast<std::uint64_t>(seconds * 1e9), 1);
    return {};
}

// Leaves it as it is if the info object has no such key.
Error find_patience(Context& context, MPI_Info handle, std::uint64_t& patience_ns) {
    comm::Info info;
    if (Error error = copy_info(context.process, handle, info)) {
        return error;
    }
    const std::string* const text = info.find("timeout");
    if (text == nullptr) {
        return {};
    }
    return parse_seconds("the info key timeout", text->c_str(), patience_ns);
}

// MPI_Comm_connect does not wait for ever (MPI 5.0, chapter 11).
Error find_default_patience(std::uint64_t& patience_ns) {
    patience_ns = connect_patience_ns;
    const char* const text = std::getenv("WARREN_CONNECT_TIMEOUT");
    return text == nullptr
               ? Error{}
               : parse_seconds("the variable WARREN_CONNECT_TIMEOUT", text, patience_ns);
}

Error parse_port(const char* port_name, PortName& port) {
    return port_name == nullptr ? fail(MPI_ERR_PORT, "port_name is a null pointer")
                                : PortName::parse(port_name, port);
}

// A port's number, if the port is open here.
Error find_own_port(const Context& context, const char* port_name, std::uint64_t& number) {
    PortName port;
    if (Error error = parse_port(port_name, port)) {
        return error;
    }
    if (port.process.world != node::world_number(context.rank.segment) ||
        port.process.rank != context.rank.world_rank || !context.ports.is_open(port.number)) {
        return fail(MPI_ERR_PORT, "this process has no open port \"%.80s\"", port_name);
    }
    number = port.number;
    return {};
}

Error accept_call(Context& context, void* arguments, Meeting& found) {
    const Place& place = *static_cast<Place*>(arguments);
    std::uint64_t number = 0;
    std::uint64_t patience_ns = 0;
    if (Error error = find_own_port(context, place.port_name, number)) {
        return error;
    }
    if (Error error = find_patience(context, place.info, patience_ns)) {
        return error;
    }
    return accept_at(context, number, patience_ns, found);
}

Error connect_call(Context& context, void* arguments, Meeting& found) {
    const Place& place = *static_cast<Place*>(arguments);
    PortName port;
    std::uint64_t patience_ns = 0;
    if (Error error = parse_port(place.port_name, port)) {
        return error;
    }
    if (Error error = find_default_patience(patience_ns)) {
        return error;
    }
    if (Error error = find_patience(context, place.info, patience_ns)) {
        return error;
    }
    return knock_at(context, port, patience_ns, found);
}

Error meet_by_port(Context& context, Place place, int root, comm::Communicator& comm,
                   FindOther find, MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    if (comm.inter()) {
        return fail(MPI_ERR_COMM, "the communicator is an intercommunicator");
    }
    comm::Communicator* made = nullptr;
    if (Error error = meet(context, comm, root, find, &place,
                           "the root has found no other side at the port", made)) {
        return error;
    }
    inherit(context, comm, *made);
    *newcomm = context.communicators.handle_of(*made);
    return {};
}

} // namespace

Error open_port(Context& context, comm::Info*, char* port_name) {
    if (Error error = message::OtherWorlds::open(context.messages)) {
        return error;
    }
    PortName port = {.process = {.world = node::world_number(context.rank.segment),
                                 .rank = context.rank.world_rank}};
    if (Error error = context.ports.open(port.number)) {
        return error;
    }
    const std::string text = port.text();
    static_assert(node::port_name_limit <= MPI_MAX_PORT_NAME);
    std::memcpy(port_name, text.c_str(), text.size() + 1);
    return {};
}

Error close_port(Context& context, const char* port_name) {
    std::uint64_t number = 0;
    if (Error error = find_own_port(context, port_name, number)) {
        return error;
    }
    context.ports.close(number);
    return {};
}

Error comm_accept(Context& context, const char* port_name, MPI_Info info, int root,
                  comm::Communicator& comm, MPI_Comm* newcomm) {
    return meet_by_port(context, {port_name, info}, root, comm, accept_call, newcomm);
}

Error comm_connect(Context& context, const char* port_name, MPI_Info info, int root,
                   comm::Communicator& comm, MPI_Comm* newcomm) {
    return meet_by_port(context, {port_name, info}, root, comm, connect_call, newcomm);
}

// --- Join

namespace {

// The first that both sides of a socket write: who has the larger number opens the port, of which
// the other one reads the name.
struct JoinWord {
    std::uint64_t magic;
    std::uint64_t number;
    char port_name[node::port_name_limit];
};
constexpr std::uint64_t join_magic = 0x316e696f4a727261; // "arrJoin1"
// A side writes it that can't join, or that can't reach the other side's port.
constexpr std::uint64_t join_refusal = 0x306e696f4a727261; // "arrJoin0"

// How often a side looks into the socket at least: while it waits at its port, for a refusal.
constexpr std::uint64_t join_look_ns = 20'000'000;
// How long a side that has given up waits for the refusal of the other one, whose call ends when it
// finds the port closed.
constexpr std::uint64_t refusal_patience_ns = 2'000'000'000;

// Anything else may never become ready to read or write, as one end of a pipe.
Error check_socket(int fd) {
    int type = 0;
    socklen_t bytes = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0) {
        return fail(MPI_ERR_ARG, "fd = %d: %s", fd, std::strerror(errno));
    }
    return type == SOCK_STREAM ? Error{} : fail(MPI_ERR_ARG, "fd = %d is not a stream socket", fd);
}

bool is_ready(int fd, short event) {
    pollfd polled = {.fd = fd, .events = event, .revents = 0};
    return poll(&polled, 1, 0) > 0;
}

// Waits until something can be read, or written; false: not before the time `limit`, ns; 0: there
// is none. (A socket that does not block is waited for, too.) Messages and other threads of the
// rank go on meanwhile: one of them may be the other side, or what that waits for.
bool await(Context& context, int fd, short event, std::uint64_t limit) {
    std::uint64_t pause_ns = shortest_pause_ns;
    while (!is_ready(fd, event)) {
        if (limit != 0 && monotonic_ns() >= limit) {
            return false;
        }
        pause_between_attempts(context, pause_ns);
        pause_ns = std::min(2 * pause_ns, join_look_ns);
    }
    return true;
}

Error move_all(Context& context, int fd, void* data, std::size_t bytes, bool writes) {
    constexpr std::uint64_t no_limit = 0;
    auto* at = static_cast<char*>(data);
    while (bytes > 0) {
        await(context, fd, writes ? POLLOUT : POLLIN, no_limit);
        context.rank.lock.unlock();
        const ssize_t done = writes ? ::send(fd, at, bytes, MSG_NOSIGNAL) // an end is no signal
                                    : read(fd, at, bytes);
        const int reason = errno;
        context.rank.lock.lock();
        if (done > 0) {
            at += done;
            bytes -= static_cast<std::size_t>(done);
        } else if (done == 0 || (reason != EINTR && reason != EAGAIN)) {
            return fail(MPI_ERR_ARG, "fd = %d: %s", fd,
                        done == 0 ? "the other side has closed the socket" : std::strerror(reason));
        }
    }
    return {};
}

// One side's part of MPI_Comm_join.
struct Joining {
    int fd;
    PortName own;
    JoinWord other;
};

Error not_joining(const Joining& joining) {
    return fail(MPI_ERR_ARG, "fd = %d: the other side is not in MPI_Comm_join", joining.fd);
}

// Tells the other side which port this one has, or that it has none, and hears the same.
Error exchange_words(Context& context, Joining& joining, Error own) {
    JoinWord word = {
        .magic = own ? join_refusal : join_magic, .number = joining.own.number, .port_name = {}};
    const std::string name = joining.own.text();
    std::memcpy(word.port_name, name.c_str(), name.size() + 1);
    JoinWord& other = joining.other;
    Error error = move_all(context, joining.fd, &word, sizeof word, true);
    error = error ? error : move_all(context, joining.fd, &other, sizeof other, false);
    if (own) {
        error.drop();
        return own;
    }
    if (!error && other.magic == join_refusal) {
        return fail(MPI_ERR_PORT, "the other side can't join");
    }
    if (!error && (other.magic != join_magic || other.number == word.number ||
                   std::memchr(other.port_name, '\0', sizeof other.port_name) == nullptr)) {
        return not_joining(joining);
    }
    return error;
}

// Reads why the other side does not come.
Error read_refusal(Context& context, const Joining& joining) {
    std::uint64_t word = 0;
    Error error = move_all(context, joining.fd, &word, sizeof word, false);
    if (error) {
        return error;
    }
    return word == join_refusal ? fail(MPI_ERR_PORT, "the other side can't reach this process")
                                : not_joining(joining);
}

// Closes the port and takes the refusal that follows out of the socket, which is the program's
// after the call.
void leave_port(Context& context, const Joining& joining) {
    context.ports.close(joining.own.number);
    if (await(context, joining.fd, POLLIN, monotonic_ns() + refusal_patience_ns)) {
        read_refusal(context, joining).drop();
    }
}

// Waits at the own port until the other side has come, or has said that it can't.
Error accept_joining(Context& context, void* arguments, Meeting& found) {
    const Joining& joining = *static_cast<Joining*>(arguments);
    std::uint64_t patience_ns = 0;
    if (Error error = find_default_patience(patience_ns)) {
        return error;
    }
    const std::uint64_t limit = monotonic_ns() + patience_ns;
    while (true) {
        Error error = accept_at(context, joining.own.number, join_look_ns, found);
        if (!error) {
            return error;
        }
        if (!context.ports.is_open(joining.own.number)) {
            leave_port(context, joining);
            return error;
        }
        error.drop();
        if (monotonic_ns() >= limit) {
            leave_port(context, joining);
            return fail(MPI_ERR_PORT, "the other side has not come within %.3f s",
                        static_cast<double>(patience_ns) * 1e-9);
        }
        // Nothing of the program's can be here: the other side leaves its call after it has come.
        if (is_ready(joining.fd, POLLIN)) {
            return read_refusal(context, joining);
        }
    }
}

// Goes to the other side's port, or tells it why it does not.
Error connect_joining(Context& context, void* arguments, Meeting& found) {
    Joining& joining = *static_cast<Joining*>(arguments);
    PortName port;
    std::uint64_t patience_ns = 0;
    Error error = PortName::parse(joining.other.port_name, port);
    error = error ? error : find_default_patience(patience_ns);
    error = error ? error : knock_at(context, port, patience_ns, found);
    if (error) {
        std::uint64_t word = join_refusal;
        move_all(context, joining.fd, &word, sizeof word, true).drop();
    }
    return error;
}

} // namespace

Error comm_join(Context& context, int fd, MPI_Comm* intercomm) {
    *intercomm = MPI_COMM_NULL;
    if (Error error = check_socket(fd)) {
        return error;
    }
    Joining joining = {.fd = fd, .own = {}, .other = {}};
    char port_name[MPI_MAX_PORT_NAME] = {};
    Error opened = open_port(context, nullptr, port_name);
    opened = opened ? opened : PortName::parse(port_name, joining.own);
    Error error = exchange_words(context, joining, opened);
    if (!error) {
        comm::Communicator& self = context.communicators.self();
        comm::Communicator* made = nullptr;
        const bool accepts = joining.own.number > joining.other.number;
        error =
            meet(context, self, 0, accepts ? accept_joining : connect_joining, &joining, "", made);
        if (!error) {
            inherit(context, self, *made);
            *intercomm = context.communicators.handle_of(*made);
        }
    }
    context.ports.close(joining.own.number);
    return error;
}

} // namespace warren::mpi
