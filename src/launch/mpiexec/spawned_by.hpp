// SpawnedBy: the other end of an mpiexec that runs a spawned world: the rank that waits for it
// (mpi/job/spawn_request.hpp).
//
// Until the world has connected, its failures are that rank's: they go through the connection, and
// become an MPI error there. Thread rule: mpiexec's only thread.
#pragma once

#include <cstdint>
#include <string>

namespace warren::launch {

class SpawnedBy {
  public:
    SpawnedBy() = default;
    SpawnedBy(const SpawnedBy&) = delete;
    SpawnedBy& operator=(const SpawnedBy&) = delete;
    ~SpawnedBy();

    // Reads the variables of a spawned world's mpiexec, and takes them out of the environment. In
    // an mpiexec that a rank has started itself, it goes on in a child of its own.
    void read_environment();

    // Whether this mpiexec runs a spawned world.
    bool is_spawned() const { return !port_.empty(); }
    const std::string& port() const { return port_; }
    // Ranks that use the processors already.
    std::uint32_t others() const { return others_; }

    // Says a failure to the rank that waits. False: nobody waits.
    bool tell(const std::string& failure);
    // A failure has been told: it is the rank's, and not this mpiexec's.
    bool has_told() const { return told_; }

    // A descriptor that is readable when the rank says something, or has ended; -1: none.
    int descriptor() const { return connection_; }
    // Reads it. True: the rank has ended, and this world ends with it.
    bool rank_has_ended();

  private:
    void close_connection();

    std::string port_;
    std::uint32_t others_ = 0;
    int connection_ = -1;
    bool ends_with_rank_ = false;
    bool connected_ = false;
    bool told_ = false;
};

} // namespace warren::launch
