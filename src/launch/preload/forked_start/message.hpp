// Messages between mpiexec and the first process of a program whose other ranks are forked from
// that process (forked_start.hpp). They use a socket pair that keeps message boundaries.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::launch {

// In the environment of the first process: the number of its socket.
inline constexpr char forked_start_variable[] = "WARREN_FORKED_START";

inline constexpr std::uint32_t forked_start_magic = 0x6b726f46; // "Fork"

// From mpiexec; with it come the descriptors of standard input, output, errors, and the lifeline.
struct ForkRequest {
    std::uint32_t magic = forked_start_magic;
    std::uint32_t rank = 0;       // on its node: for the reply
    std::uint32_t world_rank = 0; // WARREN_RANK
    std::int32_t lifeline_number = -1;
    std::uint32_t processor_bytes = 0; // of `processors`; 0: where the first process may run
    std::uint8_t processors[1024] = {};
};
inline constexpr std::size_t fork_descriptors = 4;

// To mpiexec. The first reply says that the process can be forked. Then each request gets a reply,
// in order, after the fork.
struct ForkReply {
    static constexpr std::uint32_t ready = 0xffffffff;

    std::uint32_t magic = forked_start_magic;
    std::uint32_t rank = ready;
    std::int32_t pid = 0;
    std::int32_t error_number = 0; // 0: the process exists
};

} // namespace warren::launch
