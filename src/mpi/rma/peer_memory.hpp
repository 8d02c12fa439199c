// PeerMemory: memory of another process of the node, which the kernel copies from and to
// (process_vm_readv and its like).
//
// Failure: MPI_ERR_RMA_RANGE if there is no memory, or not all of it. If the kernel refuses such
// copies, nothing has been done, and refusal() says why. Thread rule: a value of one call.
#pragma once

#include <cstdint>

#include "mpi/job/segment.hpp"
#include "mpi/rma/target_memory.hpp"

namespace warren::rma {

class PeerMemory final : public AccessibleMemory {
  public:
    // `layout` has addresses of the peer.
    PeerMemory(std::uint32_t peer, const Buffer& layout, SharedMutex& mutex, const MutexUser& user)
        : AccessibleMemory(layout, mutex, user),
          pid_(user.segment->slot(peer).pid.load(std::memory_order_relaxed)),
          peer_(peer) {}

    Error read(void* to, MPI_Count first, MPI_Count bytes) override {
        return copy(to, first, bytes, false);
    }
    Error write(const void* from, MPI_Count first, MPI_Count bytes) override {
        return copy(const_cast<void*>(from), first, bytes, true);
    }

    // Why the kernel refuses, as errno; 0: it doesn't.
    int refusal() const { return refusal_; }

  private:
    Error copy(void* own, MPI_Count first, MPI_Count bytes, bool writes);
    // Reads pieces with what is between them. False: they are too far apart.
    bool read_span(std::byte* to, const iovec* pieces, std::size_t count) const;
    Error failed(int reason);

    const int pid_;
    const std::uint32_t peer_;
    int refusal_ = 0;
};

} // namespace warren::rma
