// The reason of a wait for other ranks of a window, for mpiexec's account of a hang.
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

} // namespace warren::rma
