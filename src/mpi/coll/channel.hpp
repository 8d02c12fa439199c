// Channel: messages between the ranks of one communicator, one at a time, for what is not a
// collective operation of all of its ranks (agreement.hpp).
//
// Thread rule: under the rank's lock; waits release it while they give the processor away.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "mpi/coll/steps.hpp"

namespace warren::coll {

class Channel {
  public:
    Channel(message::Engine& engine, const comm::Communicator& communicator, Tag tag,
            std::int32_t tag_offset = 0)
        : engine_(engine),
          communicator_(communicator),
          tag_(static_cast<std::int32_t>(tag) + tag_offset) {}

    int rank() const { return communicator_.rank(); }
    message::Engine& engine() const { return engine_; }
    std::uint32_t endpoint(int rank) const { return communicator_.endpoint(rank); }

    Error send(const Buffer& buffer, int to) const;
    Error receive(const Buffer& buffer, int from) const;

  private:
    message::Envelope envelope(int source) const {
        return {communicator_.collective_context(), source, tag_};
    }

    message::Engine& engine_;
    const comm::Communicator& communicator_;
    const std::int32_t tag_;
};

// The error of a message inside a collective operation; none for a success.
Error failure_of(const message::Outcome& outcome);
// As above, for a message of `expected` bytes, and no fewer: those that failed send nothing.
Error failure_of(const message::Outcome& outcome, MPI_Count expected);
Error too_short(int source, MPI_Count bytes, MPI_Count expected);
// For a complete request only.
inline bool is_short(const message::Request& request) {
    return request.operation == message::Operation::receive &&
           request.outcome.bytes != static_cast<MPI_Count>(request.bytes);
}

} // namespace warren::coll
