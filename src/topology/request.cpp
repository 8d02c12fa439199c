#include "topology/request.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "topology/mapping.hpp"

namespace warren::topology {

namespace {

// mpiexec may be stopped by its user, or a disk may be slow; then the rank discovers by itself.
constexpr int patience_ms = 30'000;

bool is_sealed(int file) {
    const int seals = fcntl(file, F_GET_SEALS);
    return seals < 0 || (seals & image_seals) == image_seals;
}

// A program may have closed the descriptor, and a connection of its own have the number.
bool is_launchers(int socket) {
    int type = 0;
    socklen_t type_bytes = sizeof type;
    sockaddr_un peer{};
    socklen_t peer_bytes = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &type_bytes) == 0 &&
           type == SOCK_SEQPACKET &&
           getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_bytes) == 0 &&
           peer.sun_family == AF_UNIX && peer_bytes == sizeof(sa_family_t); // without a name
}

} // namespace

void request_image(int file) {
    const char* text = std::getenv(socket_variable);
    if (text == nullptr || is_sealed(file)) {
        return;
    }
    const int socket = std::atoi(text);
    if (!is_launchers(socket)) {
        return;
    }
    const char* rank = std::getenv("WARREN_RANK");
    const ImageRequest request{.rank = rank != nullptr ? std::atoi(rank) : -1};
    // A full socket has requests enough.
    const bool sent = send(socket, &request, sizeof request, MSG_DONTWAIT | MSG_NOSIGNAL) ==
                      static_cast<ssize_t>(sizeof request);
    if (!sent && errno != EAGAIN && errno != EPIPE) {
        return;
    }
    pollfd end{.fd = socket, .events = POLLRDHUP, .revents = 0};
    while (poll(&end, 1, patience_ms) < 0 && errno == EINTR) {
    }
}

} // namespace warren::topology
