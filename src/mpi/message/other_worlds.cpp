#include "mpi/message/other_worlds.hpp"

#include <algorithm>

#include "mpi/message/tuning.hpp"

namespace warren::message {

Error OtherWorlds::open(Engine& engine) {
    Core& core = engine.core_;
    if (core.transport.bridge() != nullptr) {
        return {};
    }
    // Room by steps, so that few endpoints are copied often.
    const auto grow = [&core, room = core.rank.world_size](std::uint32_t endpoints) mutable {
        if (endpoints > room) {
            room = std::max(endpoints, room + room / 2 + endpoints_at_once);
            core.peers.grow(room);
            core.transport.grow(room);
        }
    };
    const auto forget = [&core](std::vector<std::uint32_t>& ended) { core.peers.forget(ended); };
    if (Error error = core.transport.open_bridge({.grow = grow, .forget = forget})) {
        return error;
    }
    if (core.transport.network() == nullptr) {
        engine.stepping_.never_empty();
    }
    return {};
}

} // namespace warren::message
