#include "launch/mpiexec/topology_publication.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "base/futex.hpp"
#include "launch/mpiexec/errors.hpp"
#include "topology/discovery/named_source.hpp"
#include "topology/mapping.hpp"

namespace warren::launch {

TopologyPublication::~TopologyPublication() {
    for (const int descriptor : {file_, reader_, socket_, socket_of_ranks_}) {
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
}

Error TopologyPublication::open() {
    if (Error error = topology::make_image_file(file_)) {
        return error;
    }
    // Sealed or not: ranks can't write to it. Inherited, as their end of the socket.
    reader_ = ::open(("/proc/self/fd/" + std::to_string(file_)).c_str(), O_RDONLY);
    int ends[2] = {-1, -1};
    if (reader_ < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return fail(exit_failure, "descriptors for the topology: %s", std::strerror(errno));
    }
    socket_ = ends[0];
    socket_of_ranks_ = ends[1];
    fcntl(socket_, F_SETFL, O_NONBLOCK);
    fcntl(socket_of_ranks_, F_SETFD, 0);
    return {};
}

Error TopologyPublication::make(const std::string& source, std::string& note) {
    const std::uint64_t start = monotonic_ns();
    is_made_ = true;
    std::vector<std::byte> image;
    std::string refused;
    Error error = discovery::named_image(source, true, image, refused);
    if (!error) {
        error = topology::fill_image_file(file_, image);
    }
    shutdown(socket_, SHUT_WR);
    if (!error) {
        char text[96];
        std::snprintf(text, sizeof text, "the topology image of %zu bytes was made in %.1f ms",
                      image.size(), static_cast<double>(monotonic_ns() - start) * 1e-6);
        note = text;
        note += refused.empty() ? "" : ", without measured values: " + refused;
    }
    return error;
}

} // namespace warren::launch
