// OtherWorlds: a rank's way to processes of other worlds, which its engine gets when it first has
// to do with any (mpi/transport/bridge). Thread rule: under the rank's lock.
#pragma once

#include "base/error.hpp"
#include "mpi/message/engine.hpp"

namespace warren::message {

class OtherWorlds {
  public:
    // Opens the way at the first call. Error: there is none, MPI_ERR_OTHER or
    // MPI_ERR_UNSUPPORTED_OPERATION.
    static Error open(Engine& engine);
    // Null: it has not been opened.
    static transport::bridge::Bridge* bridge(const Engine& engine) {
        return engine.core_.transport.bridge();
    }
    // The rank is in MPI again after Engine::flush, by another session.
    static void come_back(const Engine& engine) {
        if (transport::bridge::Bridge* const its = bridge(engine)) {
            its->come_back();
        }
    }
};

} // namespace warren::message
