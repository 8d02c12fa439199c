// Waits for other ranks of a window: their reason, for mpiexec's account of a hang, and whether
// they are in vain.
#pragma once

#include <cstdint>

#include "mpi/comm/communicator.hpp"
#include "mpi/message/engine.hpp"

namespace warren::rma {

// `window` stands where the name of a communicator does; it lives as long as the wait.
inline WaitReason wait_reason(const message::Engine& engine, const comm::Communicator& communicator,
                              int peer, const char* window) {
    constexpr std::int32_t no_tag = INT32_MIN;
    return {.call = engine.current_call,
            .peer = peer,
            .tag = no_tag,
            .context = communicator.context(),
            .communicator_name = window};
}

// Whether a rank has ended while others go on (mpiexec --keep-going).
inline bool has_ended(message::Engine& engine, const comm::Communicator& communicator, int rank) {
    return engine.rank().has_ended(communicator.endpoint(rank));
}

} // namespace warren::rma
