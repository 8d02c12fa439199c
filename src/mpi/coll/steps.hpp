// Steps: the interface by which a collective algorithm is written. An algorithm is a function over
// Steps. For the calling rank it states, in order, the messages to send and receive and the data to
// copy and combine. Immediate does the steps at once (immediate.hpp: blocking calls). Schedule
// records them to be done later, once or many times (schedule.hpp: nonblocking and persistent
// calls). So each algorithm is written once.
//
// An algorithm may rely on this, and no more:
//  * A step takes place after those before it. start_send and start_receive only begin; finish()
//    ends all that were begun.
//  * A step reads its data when it takes place, perhaps after the algorithm's function has
//    returned. An algorithm therefore never reads data itself, and its own memory is scratch().
//  * After a failure, the remaining steps only inform others: empty messages replace data, and
//    the receiver takes them for a failure in turn. So all ranks that depend on the data learn of
//    the failure, and nobody waits for ever. An algorithm has no errors to check.
// Out of memory: std::bad_alloc.
// Thread rule: under the rank's lock.
#pragma once

#include <cstdint>
#include <forward_list>

#include "mpi/coll/scratch.hpp"
#include "mpi/comm/communicator.hpp"
#include "mpi/message/engine.hpp"
#include "mpi/message/request.hpp"
#include "mpi/op/op.hpp"

namespace warren::coll {

using message::Buffer;

// Tags of a blocking operation's messages. Each operation has its own, so that messages which a
// failed or mismatched call left behind are not taken for those of a later call of another kind,
// and so that a report of a hanging program names the operation.
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
    neighbours,
    partitioned, // announcements of partitioned operations
    // MPI_Comm_idup: several may be under way, with a tag each.
    duplicate = 1 << 26,
    // Operations that are under way together have a tag each: number n of the nonblocking ones of a
    // communicator, modulo the distance to the next line, and of the persistent ones, which live as
    // long as the program likes.
    nonblocking = 1 << 27,
    persistent = 1 << 28,
    // Above it: MPI_Comm_create_group with the program's tag, of which several may be under way.
    create_group = 1 << 29,
    // The tag of MPI_Intercomm_create, between the leaders.
    create_inter = 1 << 30
};

// A reduction's arguments that are the same at all ranks.
struct Reduction {
    MPI_Count count;
    const datatype::Datatype& type;
    const Op& op;
};

// `bytes` bytes of contiguous memory.
inline Buffer bytes_of(void* base, MPI_Count bytes) {
    return {base, bytes, &datatype::basic(MPI_BYTE)};
}
inline Buffer bytes_of(const void* base, MPI_Count bytes) {
    return bytes_of(const_cast<void*>(base), bytes);
}

// The message of a rank that has failed.
inline Buffer no_data() {
    return bytes_of(static_cast<void*>(nullptr), 0);
}

class Steps {
  public:
    Steps(const Steps&) = delete;
    Steps& operator=(const Steps&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; } // of the own group
    bool inter() const { return communicator_.inter(); }
    int peers() const { return communicator_.peers(); }
    const comm::Communicator& communicator() const { return communicator_; }
    // A tool's choice (choice.hpp).
    std::uint8_t choice(Tag operation) const {
        return engine_.rank().algorithms[static_cast<std::size_t>(operation)];
    }
    // Whether ranks take turns on their processors: then the number of waits of each rank counts
    // most.
    // All ranks must get one answer, so it is false where nodes or worlds may differ.
    bool crowded() const {
        const Rank& rank = engine_.rank();
        return rank.oversubscribed() && rank.size == rank.world_size &&
               !node::ContextIds::is_spanning(communicator_.context());
    }

    // Which operation begins.
    virtual void name(Tag) {}
    // This rank can't do its part. Called before its first step.
    virtual void refuse(Error error) = 0;

    // Messages are between ranks of the communicator. Those of an intercommunicator are with the
    // remote group; these two functions change to the own group, and back to the peers.
    void among_own_group() { speaking_ = &communicator_.local(); }
    void among_peers() { speaking_ = &communicator_; }

    virtual void start_send(const Buffer& buffer, int to) = 0;
    virtual void start_receive(const Buffer& buffer, int from) = 0;
    virtual void finish() = 0;
    virtual void send(const Buffer& buffer, int to) = 0;
    virtual void receive(const Buffer& buffer, int from) = 0;
    // Both at once: no order of the peers' calls can block it.
    virtual void exchange(const Buffer& out, int to, const Buffer& in, int from) = 0;

    // The data of `from`, in the layout of `to`, which has room for it.
    virtual void copy(const Buffer& from, const Buffer& to) = 0;
    // inout[i] = in[i] op inout[i]
    virtual void combine(const Reduction& reduction, const void* in, void* inout,
                         MPI_Count count) = 0;

    // Keeps a datatype as long as the operation, for callers whose own caller doesn't.
    void keep(const datatype::Datatype& type);

    // Memory that lasts as long as the operation: elements with their gaps, or bytes.
    Buffer scratch(MPI_Count count, const datatype::Datatype& type);
    std::byte* scratch(MPI_Count bytes);

  protected:
    Steps(message::Engine& engine, const comm::Communicator& communicator)
        : engine_(engine),
          communicator_(communicator),
          rank_(communicator.rank()),
          size_(communicator.size()),
          speaking_(&communicator) {}
    ~Steps();

    const comm::Communicator& speaking() const { return *speaking_; }

    message::Engine& engine_;
    const comm::Communicator& communicator_;

  private:
    const int rank_;
    const int size_;
    const comm::Communicator* speaking_; // where messages go
    std::forward_list<Scratch> scratch_;
    std::forward_list<const datatype::Datatype*> kept_;
};

} // namespace warren::coll
