// What mpiexec and the first process of a program say to each other when the program's other ranks
// are copies of that process (forked_start.hpp), on a socket pair of whole messages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::launch {

// In the environment of the first process: the number of its socket.
inline constexpr char copies_variable[] = "WARREN_FORKED_START";

inline constexpr std::uint32_t copies_magic = 0x79706f43; // "Copy"

// From mpiexec; with it come the descriptors of standard input, output, errors, and the lifeline.
struct CopyRequest {
    std::uint32_t magic = copies_magic;
    std::uint32_t rank = 0;
    std::int32_t lifeline_number = -1;
    std::uint32_t processor_bytes = 0; // of `processors`; 0: where the first process may run
    std::uint8_t processors[1024] = {};
};
inline constexpr std::size_t copy_descriptors = 4;

// To mpiexec. The first says only that copies can be made; then there is one for each request, in
// their order, when the copy has been made.
struct CopyReply {
    static constexpr std::uint32_t ready = 0xffffffff;

    std::uint32_t magic = copies_magic;
    std::uint32_t rank = ready;
    std::int32_t pid = 0;
    std::int32_t error_number = 0; // 0: it has been
};

} // namespace warren::launch
