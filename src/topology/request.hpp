// How the ranks of a job get mpiexec to make the topology image, which nobody has made before one
// of them asks: discovery takes longer than starting a few ranks, and most programs never want it.
//
// All ranks inherit one end of a socket (WARREN_TOPOLOGY_SOCKET), and an empty memory file
// (WARREN_TOPOLOGY). Who wants the image sends a request, and waits until mpiexec shuts the socket
// down for writing: then the file is filled and sealed, or mpiexec could not make an image, or has
// gone. That is seen by all ranks, and by those that ask later, at once.
// Thread rule: any thread of any process.
#pragma once

#include <cstdint>

namespace warren::topology {

inline constexpr const char* socket_variable = "WARREN_TOPOLOGY_SOCKET";

struct ImageRequest {
    static constexpr std::uint32_t magic_number = 0x57495231;

    std::uint32_t magic = magic_number;
    std::int32_t rank = -1;
};

// Asks for the image in `file`, if the environment says how and it isn't there yet, and waits.
void request_image(int file);

} // namespace warren::topology
