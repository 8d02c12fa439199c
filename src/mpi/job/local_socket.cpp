#include "mpi/job/local_socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace warren::node {

namespace {

// The first character of an abstract name is 0.
socklen_t fill(const std::string& name, sockaddr_un& address) {
    address = {};
    address.sun_family = AF_UNIX;
    const std::size_t bytes = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), bytes);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
}

// Connections of other users that are closed before this user's work goes on.
constexpr int strangers_at_once = 64;

int open_socket(int type) {
    return socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int close_with(int descriptor, int reason) {
    close(descriptor);
    errno = reason;
    return -1;
}

} // namespace

std::string socket_of(const ProcessName& process) {
    char text[48];
    std::snprintf(text, sizeof text, "warren.%016llx.%u",
                  static_cast<unsigned long long>(process.world), process.rank);
    return text;
}

std::string launcher_socket_of(std::uint64_t world) {
    char text[48];
    std::snprintf(text, sizeof text, "warren.%016llx.mpiexec",
                  static_cast<unsigned long long>(world));
    return text;
}

std::string port_name_start(std::uint64_t world) {
    char text[48];
    std::snprintf(text, sizeof text, "warren:%016llx:", static_cast<unsigned long long>(world));
    return text;
}

int listen_at(const std::string& name, int type, int backlog) {
    const int made = open_socket(type);
    if (made < 0) {
        return -1;
    }
    sockaddr_un address;
    const socklen_t length = fill(name, address);
    if (bind(made, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
        (backlog > 0 && listen(made, backlog) != 0)) {
        return close_with(made, errno);
    }
    return made;
}

int connect_to(const std::string& name, int type) {
    const int made = open_socket(type);
    if (made < 0) {
        return -1;
    }
    sockaddr_un address;
    const socklen_t length = fill(name, address);
    if (connect(made, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
        return close_with(made, errno);
    }
    return is_own_user(made) ? made : close_with(made, EPERM);
}

int connect_patiently(const std::string& name, int type, int patience_ms) {
    int made = connect_to(name, type);
    for (int waited_ms = 0; made < 0 && errno == EAGAIN && waited_ms < patience_ms; ++waited_ms) {
        usleep(1000);
        made = connect_to(name, type);
    }
    return made;
}

int accept_own(int listener) {
    for (int strangers = 0; strangers < strangers_at_once;) {
        const int taken = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (taken < 0 && (errno == EINTR || errno == ECONNABORTED)) {
            continue;
        }
        if (taken < 0 || is_own_user(taken)) {
            return taken;
        }
        close(taken);
        ++strangers;
    }
    errno = EAGAIN;
    return -1;
}

bool lacks_descriptors(int reason) {
    return reason == EMFILE || reason == ENFILE || reason == ENOMEM || reason == ENOBUFS;
}

std::string text_of_socket_error(int reason) {
    switch (reason) {
    case EMFILE:
        return "this process has no descriptor left; a higher limit helps (ulimit -n)";
    case EAGAIN:
        return "its queue of connections is full";
    case ECONNREFUSED:
        return "nobody listens there";
    case EPERM:
        return "it is another user's";
    default:
        return std::strerror(reason);
    }
}

bool is_own_user(int connection) {
    ucred other = {};
    socklen_t bytes = sizeof other;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &bytes) == 0 &&
           other.uid == geteuid();
}

} // namespace warren::node
