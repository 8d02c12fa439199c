// TopologyPublication: the topology image that a job's ranks share (warren/topology.h), in a memory
// file that all of them inherit.
//
// It is made when the first rank asks for it (topology/request.hpp), or before any rank starts when
// the user names a source, so that a wrong one is an error at once. A job that never asks pays for
// two descriptors. Nothing has a name, so nothing stays behind.
// Thread rule: mpiexec's only thread.
#pragma once

#include <string>

#include "base/error.hpp"

namespace warren::launch {

class TopologyPublication {
  public:
    TopologyPublication() = default;
    ~TopologyPublication();
    TopologyPublication(const TopologyPublication&) = delete;
    TopologyPublication& operator=(const TopologyPublication&) = delete;

    // Makes the file and the socket.
    Error open();

    // Makes the image of a source (topology/discovery/named_source.hpp) and seals the file; in any
    // case nobody waits any longer. `note` is what to say with -v.
    Error make(const std::string& source, std::string& note);
    bool is_made() const { return is_made_; }

    // Descriptors that ranks inherit: the file, read-only, and their end of the socket.
    int file_of_ranks() const { return reader_; }
    int socket_of_ranks() const { return socket_of_ranks_; }
    // Where requests and reports come from. It doesn't block.
    int socket() const { return socket_; }

  private:
    int file_ = -1;
    int reader_ = -1;
    int socket_ = -1;
    int socket_of_ranks_ = -1;
    bool is_made_ = false; // or can't be
};

} // namespace warren::launch
