#include "mpi/entry/launcher.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "mpi.h"
#include "mpi/job/local_socket.hpp"
#include "mpi/job/spawn_request.hpp"

extern char** environ;

namespace warren::mpi {

namespace {

// How long mpiexec may be busy with the requests of others.
constexpr std::uint64_t mpiexec_patience_ns = 10'000'000'000;

// mpiexec as it is installed beside this library, or else the one of PATH.
std::string mpiexec_path() {
    Dl_info own = {};
    if (dladdr(reinterpret_cast<void*>(&mpiexec_path), &own) != 0 && own.dli_fname != nullptr) {
        const std::string library = own.dli_fname;
        const std::size_t slash = library.rfind('/');
        if (slash != std::string::npos) {
            std::string path = library.substr(0, slash) + "/../bin/mpiexec";
            if (access(path.c_str(), X_OK) == 0) {
                return path;
            }
        }
    }
    return "mpiexec";
}

Error no_mpiexec(const std::string& path, int reason) {
    return fail(MPI_ERR_SPAWN, "%s, which starts processes, can't be started: %s", path.c_str(),
                std::strerror(reason));
}

// The environment of an mpiexec that belongs to no job.
std::vector<std::string> environment_of_mpiexec(const std::string& port, int connection) {
    std::vector<std::string> settings;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        settings.emplace_back(*entry);
    }
    settings.push_back(std::string(node::spawn_variable) + "=" + std::to_string(connection) +
                       " 1 1");
    settings.push_back(std::string(node::parent_variable) + "=" + port);
    return settings;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) {
        pointers.push_back(text.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

// Closes the connections to jobs that have ended meanwhile.
void close_ended(std::vector<int>& connections) {
    std::erase_if(connections, [](int connection) {
        pollfd place = {.fd = connection, .events = 0, .revents = 0};
        const bool has_ended = ::poll(&place, 1, 0) > 0 && (place.revents & POLLHUP) != 0;
        if (has_ended) {
            ::close(connection);
        }
        return has_ended;
    });
}

} // namespace

Launcher::~Launcher() {
    for (const int connection : kept_) {
        ::send(connection, &node::spawn_released, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        ::close(connection);
    }
}

Error Launcher::ask(const std::string& port, const std::vector<std::string>& words,
                    const std::function<void()>& pause, Request& made) {
    std::string packet = port + '\0';
    for (const std::string& word : words) {
        packet += word + '\0';
    }
    if (packet.size() > node::spawn_request_limit) {
        return fail(MPI_ERR_SPAWN,
                    "commands, arguments and values of info keys have %zu bytes together; %zu are "
                    "possible",
                    packet.size(), node::spawn_request_limit);
    }
    made.own = !has_mpiexec_;
    if (made.own) {
        return start_mpiexec(port, words, made.connection);
    }
    const std::string mpiexec = node::launcher_socket_of(world_);
    const std::uint64_t limit = monotonic_ns() + mpiexec_patience_ns;
    made.connection = node::connect_to(mpiexec, SOCK_SEQPACKET);
    while (made.connection < 0 && errno == EAGAIN && monotonic_ns() < limit) {
        pause();
        made.connection = node::connect_to(mpiexec, SOCK_SEQPACKET);
    }
    if (made.connection < 0) {
        return fail(MPI_ERR_SPAWN, "this job's mpiexec, which starts processes, can't be asked: %s",
                    node::text_of_socket_error(errno).c_str());
    }
    if (::send(made.connection, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
        // It may have closed the connection at once, and said why.
        std::string reason = std::strerror(errno);
        std::string said;
        if (has_failed(made, said) && !said.empty()) {
            reason = said;
        }
        ::close(made.connection);
        return fail(MPI_ERR_SPAWN, "mpiexec does not take the request: %s", reason.c_str());
    }
    return {};
}

// The new mpiexec starts itself again below init (WARREN_SPAWN), so that the program has no child
// that it does not know.
Error Launcher::start_mpiexec(const std::string& port, const std::vector<std::string>& words,
                              int& connection) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return no_mpiexec("mpiexec", errno);
    }
    connection = ends[0];
    fcntl(connection, F_SETFL, fcntl(connection, F_GETFL) | O_NONBLOCK);
    const std::string path = mpiexec_path();
    std::vector<std::string> arguments = words;
    arguments.insert(arguments.begin(), path);
    std::vector<std::string> settings = environment_of_mpiexec(port, ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], ends[1]); // kept open
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    pid_t pid = -1;
    const int reason = posix_spawnp(&pid, path.c_str(), &actions, nullptr,
                                    pointers_to(arguments).data(), pointers_to(settings).data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (reason != 0) {
        ::close(connection);
        return no_mpiexec(path, reason);
    }
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return {};
}

bool Launcher::has_failed(const Request& request, std::string& reason) {
    char text[1024];
    ssize_t got = ::recv(request.connection, text, sizeof text, MSG_DONTWAIT);
    if (got < 0 && errno == ECONNRESET) {
        // It has closed the connection without reading the request; its answer comes behind that.
        got = ::recv(request.connection, text, sizeof text, MSG_DONTWAIT);
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    reason.assign(text, got > 0 ? static_cast<std::size_t>(got) : 0);
    return true;
}

void Launcher::end(const Request& request) {
    ::close(request.connection);
}

bool Launcher::end_connected(const Request& request, std::string& reason) {
    ::send(request.connection, &node::spawn_connected, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    // mpiexec can tell no more from here on: it says failures itself. One told before is read.
    shutdown(request.connection, SHUT_RD);
    const bool failed = has_failed(request, reason) && !reason.empty();
    if (!failed && request.own) {
        close_ended(kept_);
        kept_.push_back(request.connection);
    } else {
        ::close(request.connection);
    }
    return !failed;
}

} // namespace warren::mpi
