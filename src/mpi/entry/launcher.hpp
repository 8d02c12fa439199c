// Launcher: a rank's way to have processes started: by its mpiexec, or by one that it starts.
//
// Thread rule: under the rank's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace warren::mpi {

class Launcher {
  public:
    // `world`: of this process, which an mpiexec has started if `has_mpiexec`.
    Launcher(std::uint64_t world, bool has_mpiexec) : world_(world), has_mpiexec_(has_mpiexec) {}
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;
    ~Launcher();

    // Asks for a world that connects to this port. `words` as for mpiexec, without its name. Errors
    // (MPI_ERR_SPAWN): there is no mpiexec, it does not answer, or the words are too long. `pause`
    // is called between attempts, while mpiexec is busy with the requests of others.
    struct Request {
        int connection = -1;
        bool own = false; // to an mpiexec that was started here
    };
    Error ask(const std::string& port, const std::vector<std::string>& words,
              const std::function<void()>& pause, Request& made);
    // Whether the world can't come any more; the reason, or "".
    static bool has_failed(const Request& request, std::string& reason);
    // The world has failed: the connection is no longer needed.
    static void end(const Request& request);
    // The world has connected: from now on its failures are its mpiexec's to say. False: it has
    // failed before, and the connection has ended; the reason, or "".
    bool end_connected(const Request& request, std::string& reason);

  private:
    static Error start_mpiexec(const std::string& port, const std::vector<std::string>& words,
                               int& connection);

    const std::uint64_t world_;
    const bool has_mpiexec_;
    std::vector<int> kept_; // of launchers whose jobs end with this process
};

} // namespace warren::mpi
