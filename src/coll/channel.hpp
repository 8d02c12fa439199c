// Channel: messages between the ranks of one communicator for one collective operation.
//
// The algorithms of this room speak in ranks of the communicator; here is the one place where these
// become world ranks and envelopes of the engine. All operations of a communicator may share a tag:
// they are called in one order by all members, and messages between two ranks stay in order. Tags
// still differ by operation, for who looks at a program that hangs or mixes its calls up.
// Thread rule: under the rank's lock; waits release it while they give the processor away.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "message/engine.hpp"
#include "message/request.hpp"

namespace warren::coll {

using message::Buffer;

enum class Tag : std::int32_t {
    barrier = 1,
    bcast,
    gather,
    scatter,
    allgather,
    alltoall,
    reduce,
    allreduce,
    reduce_scatter,
    scan,
    agreement, // on a new communicator
    // Above it: MPI_Comm_create_group with the program's tag, of which several may be under way.
    create_group = 1 << 29,
    // The same of MPI_Intercomm_create, between the leaders.
    create_inter = 1 << 30
};

// `bytes` bytes of contiguous memory.
Buffer bytes_of(void* base, MPI_Count bytes);
Buffer bytes_of(const void* base, MPI_Count bytes);

class Channel {
  public:
    Channel(message::Engine& engine, const comm::Communicator& communicator, Tag tag,
            std::int32_t tag_offset = 0)
        : engine_(engine),
          communicator_(communicator),
          tag_(static_cast<std::int32_t>(tag) + tag_offset) {}

    int rank() const { return communicator_.rank(); }
    int size() const { return communicator_.size(); }
    message::Engine& engine() const { return engine_; }
    const comm::Communicator& communicator() const { return communicator_; }

    Error send(const Buffer& buffer, int to) const;
    Error receive(const Buffer& buffer, int from) const;
    // Both at once: no order of the peers' calls can block it.
    Error exchange(const Buffer& out, int to, const Buffer& in, int from) const;

  private:
    friend class Batch;

    message::Envelope envelope(int source) const {
        return {communicator_.collective_context(), source, tag_};
    }

    message::Engine& engine_;
    const comm::Communicator& communicator_;
    const std::int32_t tag_;
};

// Messages that are all under way at once. finish() must be called, also after an error of start.
class Batch {
  public:
    explicit Batch(const Channel& channel) : channel_(channel) {}
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    void start_send(const Buffer& buffer, int to);
    void start_receive(const Buffer& buffer, int from);
    // Waits for all; the first error of any of them.
    Error finish();

  private:
    void start(message::Request* request);
    void keep(Error error);

    const Channel& channel_;
    std::vector<message::Request*> requests_;
    Error first_error_;
};

} // namespace warren::coll
