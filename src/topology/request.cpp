#include "topology/request.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/futex.hpp"
#include "topology/mapping.hpp"

namespace warren::topology {

namespace {

// mpiexec may be stopped by its user, or a disk may be slow; then the rank discovers by itself.
constexpr std::uint64_t patience_ns = 30'000'000'000;

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

// Waits for one of the events, whatever signals come; returns what has happened, 0: the time is up.
short wait_for(int socket, short events, std::uint64_t end_ns) {
    for (;;) {
        const std::uint64_t now = monotonic_ns();
        if (now >= end_ns) {
            return 0;
        }
        pollfd end{.fd = socket, .events = events, .revents = 0};
        const int count = poll(&end, 1, static_cast<int>((end_ns - now) / 1'000'000 + 1));
        if (count > 0) {
            return end.revents;
        }
        if (count < 0 && errno != EINTR) {
            return 0;
        }
    }
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
    const std::uint64_t end_ns = monotonic_ns() + patience_ns;
    for (;;) {
        // It may be full, of other ranks' requests and reports: ours follows them.
        const bool sent = send(socket, &request, sizeof request, MSG_DONTWAIT | MSG_NOSIGNAL) ==
                          static_cast<ssize_t>(sizeof request);
        const bool is_full = !sent && errno == EAGAIN;
        if (!sent && !is_full && errno != EPIPE && errno != EINTR) {
            return;
        }
        if (sent || errno == EPIPE) {
            wait_for(socket, POLLRDHUP, end_ns);
            return;
        }
        if ((wait_for(socket, POLLRDHUP | POLLOUT, end_ns) & POLLOUT) == 0) {
            return; // it has come without us, or takes too long
        }
    }
}

} // namespace warren::topology
