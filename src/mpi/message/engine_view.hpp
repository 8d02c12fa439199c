// EngineView: what tools (mpi/tool) look at and change in a rank's engine, and what few others ask.
//
// While observed, every message takes the ways that count it. Thread rule: under the rank's lock.
#pragma once

#include <cstdint>

#include "mpi/message/engine.hpp"

namespace warren::message {

class EngineView {
  public:
    explicit EngineView(Engine& engine) : engine_(engine) {}

    void observe(bool by_tool) {
        const bool on = by_tool || engine_.core_.rank.profile.on();
        engine_.core_.rank.lock.observe(on, by_tool);
        engine_.core_.outbox.observe(on);
    }

    std::uint32_t posted() const { return engine_.receiver_.posted(); }
    const UnexpectedMessages& unexpected() const { return engine_.receiver_.unexpected(); }
    std::uint32_t pending_sends() const { return engine_.core_.outbox.count(); }
    std::size_t requests() const { return engine_.core_.requests.live(); }
    Transport& transport() { return engine_.core_.transport; }
    const LostPeers& lost() const { return engine_.lost_; }

  private:
    Engine& engine_;
};

} // namespace warren::message
