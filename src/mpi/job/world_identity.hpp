// WorldIdentity: what processes of other worlds call this one, and who has spawned it.
//
// A process is known outside of its world by a ProcessName, the world's number and the rank there.
// The name leads to the process's local socket (mpi/job/local_socket.hpp), so nobody has to keep
// addresses. Thread rule: the launcher fills the region before any rank attaches; constant then,
// but for `connected`.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/error.hpp"
#include "mpi/job/node_map.hpp"
#include "mpi/job/segment.hpp"

namespace warren::node {

struct ProcessName {
    std::uint64_t world;
    std::uint32_t rank;
    std::uint32_t unused = 0; // it travels

    friend bool operator==(const ProcessName&, const ProcessName&) = default;
    friend auto operator<=>(const ProcessName&, const ProcessName&) = default;
};

inline constexpr std::size_t port_name_limit = 128; // with the final 0

struct WorldIdentity {
    std::uint64_t number; // random, never 0
    // 1: a rank talks, or may talk, with other worlds: that all ranks wait is no deadlock then.
    std::atomic<std::uint32_t> connected;
    std::uint32_t spawned;         // 1: parent_port is the spawning process's
    std::uint32_t initial_handler; // 0: MPI_ERRORS_ARE_FATAL, 1: …_ABORT, 2: …_RETURN
    std::uint32_t unused;
    char parent_port[port_name_limit]; // empty: nobody has spawned this world
};
inline constexpr RegionId<WorldIdentity> world_identity{19};

// The beginning of the text with which a rank ends its job because another world has ended, and
// whether an end was of this kind: that world's mpiexec has said more.
inline constexpr const char* lost_world_text = "another world has ended: ";
inline bool is_lost_world(const char* end_text) {
    return std::strstr(end_text, lost_world_text) != nullptr;
}

// The world's number, the same on all of its nodes.
inline std::uint64_t world_number(const Segment& segment) {
    const NodePlace& place = *segment.at(node_place);
    return place.nodes > 1 ? place.secret : segment.at(world_identity)->number;
}

} // namespace warren::node
