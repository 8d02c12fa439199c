#include "topology/request.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "topology/mapping.hpp"

namespace warren::topology {

namespace {

// mpiexec may be stopped by its user, or a disk may be slow; then the rank discovers by itself.
constexpr int patience_ms = 30'000;

bool is_sealed(int file) {
    const int seals = fcntl(file, F_GET_SEALS);
    return seals < 0 || (seals & image_seals) == image_seals;
}

} // namespace

void request_image(int file) {
    const char* text = std::getenv(socket_variable);
    if (text == nullptr || is_sealed(file)) {
        return;
    }
    const int socket = std::atoi(text);
    const char* rank = std::getenv("WARREN_RANK");
    const ImageRequest request{.rank = rank != nullptr ? std::atoi(rank) : -1};
    // A full socket has requests enough. A program may have closed the descriptor, and another
    // thing have its number: what is no such socket refuses, or is at its end.
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
