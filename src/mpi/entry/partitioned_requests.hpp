// The requests of partitioned communication: what partitioned.cpp has in common with the halves
// partitioned_send.cpp and partitioned_receive.cpp.
//
// Each request has its state as its attachment; its messages are requests of the engine that nobody
// else knows. Thread rule: under the rank's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "mpi/entry/partitioned.hpp"
#include "mpi/entry/requests.hpp"

namespace warren::mpi {

// A sender's announcement to its receiver: plain memory, which travels as bytes.
struct Announcement {
    std::uint32_t context; // of the messages, one per partition of the sender
    std::int32_t tag;
    std::int32_t partitions;
    std::int32_t unused;
    std::int64_t partition_bytes;
};

// The common part of partitioned sends and receives.
struct Partitioned {
    Partitioned(bool is_send, const message::Buffer& one_partition, int count)
        : sends(is_send), partition(one_partition), partitions(count) {}

    const bool sends;
    const message::Buffer partition; // the first one
    const int partitions;
    // Messages under way by number; null: none, or it has ended.
    std::vector<message::Request*> messages;
    int ended = 0; // all messages below this one have
};

struct PartitionedSend : Partitioned {
    using Partitioned::Partitioned;

    std::uint32_t context = 0;
    std::vector<bool> ready;
    int ready_count = 0;
};

struct PartitionedMatching::Receive : Partitioned {
    using Partitioned::Partitioned;

    std::uint32_t comm_context = 0;
    int source = 0;
    int tag = 0;
    bool matched = false;
    bool orphan = false; // the request is gone
    Announcement announcement;
    bool posted = false; // this round's receives
    int error_class = MPI_SUCCESS;
    // All data as it came, when messages begin or end inside elements of a type with gaps.
    std::unique_ptr<std::byte[]> staged;

    MPI_Count bytes() const { return partitions * partition.bytes(); }
    // The bytes before a message; at most all that there are.
    MPI_Count begin_of(int number) const {
        return std::min(number * announcement.partition_bytes, bytes());
    }
    message::Buffer buffer_of(int number);
    void post(Context& context, message::Request& request);
    void end_message(message::Engine& engine, int number);
    void give_up(message::Engine& engine);
    bool arrived(message::Engine& engine, int number);
};

using PartitionedReceive = PartitionedMatching::Receive;

inline Partitioned& partitioned_of(const message::Request& request) {
    return *static_cast<Partitioned*>(request.attachment);
}
inline PartitionedSend& partitioned_send_of(const message::Request& request) {
    return static_cast<PartitionedSend&>(partitioned_of(request));
}
inline PartitionedReceive& partitioned_receive_of(const message::Request& request) {
    return static_cast<PartitionedReceive&>(partitioned_of(request));
}

// The pair's messages: from its only sender, tagged with the partition's number.
inline message::Envelope envelope_of(std::uint32_t context, int partition) {
    return {.context = context, .source = 0, .tag = partition};
}

Error check_partitions(int partitions);
Error check_partition(const Partitioned& state, int partition);
// Whether a call for sends, or for receives, may have this request.
Error check_partitioned(const message::Request& request, bool sends);

// Makes the request of either kind; its attachment is the caller's then.
Error make_partitioned(Context& context, Partitioned& state, int peer, int tag,
                       comm::Communicator& comm, message::Request*& request);

} // namespace warren::mpi
