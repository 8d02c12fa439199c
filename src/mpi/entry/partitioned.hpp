// Partitioned communication (MPI 5.0, 4.2): one message whose parts its sender's threads give free
// one by one, and whose parts its receiver may use one by one.
//
// An operation pair is a message space of its own, a context number (mpi/job/context_ids.hpp) that
// the sender takes when it makes its request, and announces to the receiver by a small message; in
// it, each of the SENDER's partitions is a message whose tag is its number. So partitions leave as
// they get ready, whatever the receiver's are, and neither they nor the next round's can be
// mistaken for others. Announcements of one communicator and peer come in the order of the sender's
// calls; the receiver gives each to the first of its requests with that tag that has none. Every
// receive takes one announcement from there, if perhaps another's.
//
// Thread rule: under the rank's lock: threads that call MPI_Pready at once take turns.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"

namespace warren::mpi {

// A rank's partitioned messages that have been announced to it, and the receives that wait for
// announcements.
class PartitionedMatching {
  public:
    struct Receive;

    PartitionedMatching();
    PartitionedMatching(const PartitionedMatching&) = delete;
    PartitionedMatching& operator=(const PartitionedMatching&) = delete;
    ~PartitionedMatching();

    // Adds a receive, which is matched now or later, and awaits one more announcement.
    Error add(Context& context, Receive& receive, comm::Communicator& comm);
    // Gives the announcements that have come to their receives.
    void match(Context& context);
    // The request of a receive is gone; what may still be announced to it goes with it.
    void end(Context& context, Receive& receive);

  private:
    struct Notice;
    static void arrived(message::Request& request);

    // (Few at a time, and mostly none at all: an empty vector has no memory, as a deque has.)
    std::vector<std::unique_ptr<Notice>> awaited_;
    std::vector<std::unique_ptr<Notice>> announced_; // and not matched yet
    std::vector<Receive*> unmatched_;                // in the order of their making
};

Error psend_init(Context& context, const void* buf, int partitions, MPI_Count count,
                 const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                 comm::Info* info, MPI_Request* request);
Error precv_init(Context& context, void* buf, int partitions, MPI_Count count,
                 const datatype::Datatype& datatype, int dest, int tag, comm::Communicator& comm,
                 comm::Info* info, MPI_Request* request);

// MPI_ERR_REQUEST: not a send that has been started; MPI_ERR_ARG: no partition of it, or one that
// is ready already. Nothing has been done then.
Error pready(Context& context, int partition, message::Request& request);
Error pready_range(Context& context, int partition_low, int partition_high,
                   message::Request& request);
Error pready_list(Context& context, int length, const int array_of_partitions[],
                  message::Request& request);
// A null request has arrived, and so has one that is not active.
Error parrived(Context& context, message::Request* request, int partition, int* flag);

// Starting and freeing partitioned requests, for MPI_Start and MPI_Request_free. Freeing a send
// gives MPI_ERR_REQUEST while some partitions are not ready, as it could never end.
Error start_partitioned(Context& context, message::Request& request);
Error check_free_partitioned(const message::Request& request);

} // namespace warren::mpi
